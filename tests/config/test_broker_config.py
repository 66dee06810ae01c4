"""The broker's configuration as a whole: keys that overrule keys, and keys that contradict keys."""

from pathlib import Path

import pytest

from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError


def broker(texts: dict[str, str]) -> BrokerConfig:
    return BrokerConfig.from_texts(texts)


def test_kafkas_defaults_hold_for_what_is_not_written() -> None:
    config = broker({})
    assert config.log_segment_bytes == 1 << 30
    assert config.num_partitions == 1
    assert config.group_initial_rebalance_delay_ms == 3000
    assert config.data_directories == (Path("/tmp/kafka-logs"),)
    assert config.open_listeners[0].port == 9092


@pytest.mark.parametrize(
    ("texts", "directories"),
    [
        ({"log.dir": "/a"}, ["/a"]),
        ({"log.dir": "/a, /b"}, ["/a", "/b"]),
        ({"log.dir": "/a", "log.dirs": "/b,/c"}, ["/b", "/c"]),
    ],
)
def test_log_dirs_overrule_log_dir(texts: dict[str, str], directories: list[str]) -> None:
    assert broker(texts).data_directories == tuple(map(Path, directories))


def test_the_metadata_log_lies_in_the_first_directory_unless_it_has_its_own() -> None:
    assert broker({"log.dirs": "/a,/b"}).metadata_directory == Path("/a")
    assert broker({"log.dirs": "/a", "metadata.log.dir": "/m"}).metadata_directory == Path("/m")


@pytest.mark.parametrize("name", ["node.id", "broker.id"])
def test_node_id_and_broker_id_are_the_same(name: str) -> None:
    config = broker({name: "7"})
    assert (config.node_id, config.broker_id) == (7, 7)


def test_node_id_and_broker_id_must_agree() -> None:
    with pytest.raises(ConfigError, match=r"value 2 for configuration broker.id: must equal"):
        broker({"node.id": "1", "broker.id": "2"})


@pytest.mark.parametrize(
    ("texts", "milliseconds"),
    [
        ({}, 168 * 3_600_000),
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.ms": "-9"}, -1),
    ],
)
def test_retention_ms_before_minutes_before_hours(texts: dict[str, str], milliseconds: int) -> None:
    assert broker(texts).topic_config({}).retention_ms == milliseconds


@pytest.mark.parametrize(
    ("texts", "roll", "jitter"),
    [
        ({"log.roll.hours": "2", "log.roll.jitter.hours": "1"}, 7_200_000, 3_600_000),
        ({"log.roll.hours": "2", "log.roll.ms": "5", "log.roll.jitter.ms": "0"}, 5, 0),
        ({"log.roll.jitter.hours": "1", "log.roll.jitter.ms": "6"}, 168 * 3_600_000, 6),
    ],
)
def test_roll_ms_before_hours(texts: dict[str, str], roll: int, jitter: int) -> None:
    topic = broker(texts).topic_config({})
    assert (topic.segment_ms, topic.segment_jitter_ms) == (roll, jitter)


def test_flush_interval_before_the_schedulers() -> None:
    assert broker({"log.flush.scheduler.interval.ms": "9"}).topic_config({}).flush_ms == 9
    both = {"log.flush.scheduler.interval.ms": "9", "log.flush.interval.ms": "8"}
    assert broker(both).topic_config({}).flush_ms == 8


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log.roll.ms", "0"),
        ("log.roll.jitter.ms", "-1"),
        ("log.retention.ms", "0"),
        ("log.retention.minutes", "0"),
        ("log.retention.hours", "0"),
        ("log.flush.interval.ms", "-1"),
        ("log.flush.scheduler.interval.ms", "-1"),
        ("max.connections.per.ip", "0"),
        ("max.connections.per.ip.overrides", "localhost:" + "9" * 5000),
        ("max.connections.per.ip.overrides", "localhost"),
        ("max.connections.per.ip.overrides", "localhost:many"),
        ("max.connections.per.ip.overrides", "[::1]:5"),
        ("max.connections.per.ip.overrides", "a host:5"),
        ("log.cleaner.threads", "0"),
        ("log.cleaner.dedupe.buffer.size", "1048576"),
        ("cordoned.log.dirs", "/nowhere"),
        ("cordoned.log.dirs", "*,/tmp/kafka-logs"),
        ("queued.max.request.bytes", "1000"),
        ("process.roles", "broker,zookeeper"),
        ("log.dirs", ""),
        ("listeners", "PLAINTEXT://:x"),
    ],
)
def test_a_bad_value_is_one_line_with_key_and_value_and_what_is_allowed(
    name: str, value: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        broker({name: value})
    message = str(caught.value)
    assert message.startswith("Invalid value ")
    assert f"for configuration {name}: " in message
    assert "\n" not in message


def test_retention_hours_may_be_zero_where_they_do_not_count() -> None:
    assert broker({"log.retention.hours": "0", "log.retention.ms": "5"}).topic_config({})


def test_compaction_lags_that_contradict_each_other_are_refused() -> None:
    lags = {"log.cleaner.min.compaction.lag.ms": "6", "log.cleaner.max.compaction.lag.ms": "5"}
    with pytest.raises(ConfigError, match=r"min.compaction.lag.ms \(6\) > max.*\(5\)"):
        broker(lags)


def test_connection_limits_of_single_hosts() -> None:
    texts = {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "a:1, ::1:2"}
    assert broker(texts).connection_limits == {"a": 1, "::1": 2}


def test_blanks_between_connection_limits_take_no_time() -> None:
    blanks = " \t" * 100_000  # minutes, if the time were quadratic
    limits = broker(
        {"max.connections.per.ip.overrides": f"{blanks}a{blanks}:{blanks}1{blanks},b:2"}
    )
    assert limits.connection_limits == {"a": 1, "b": 2}


def test_cordoned_directories_may_be_written_in_another_form() -> None:
    config = broker({"log.dirs": "/a,b", "cordoned.log.dirs": f"/a/,{Path.cwd()}/b"})
    assert config.cordoned_directories == {Path("/a"), Path.cwd() / "b"}
    all_of_them = broker({"log.dirs": "/a,b", "cordoned.log.dirs": "*"})
    assert all_of_them.cordoned_directories == config.cordoned_directories


@pytest.mark.parametrize(
    ("texts", "limit"),
    [
        ({}, 256 << 20),
        ({"queued.max.request.bytes": "-1"}, None),
        ({"queued.max.request.bytes": "200000000"}, 200_000_000),
        ({"socket.request.max.bytes": "500000000"}, 500_000_000),
    ],
)
def test_queued_bytes_leave_room_for_one_request(texts: dict[str, str], limit: int | None) -> None:
    assert broker(texts).queued_bytes_limit == limit


def test_one_node_has_one_replica_of_anything() -> None:
    config = broker({"default.replication.factor": "3"})
    assert config.default_replication_factor == 1
    assert config.offsets_topic_replication_factor == 1
    assert config.texts["default.replication.factor"] == "3"


def test_what_was_written_is_remembered_word_for_word() -> None:
    texts = {"log.cleanup.policy": "delete , compact", "made.up": " x ", "num.io.threads": "3"}
    assert broker(texts).texts == texts


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("log_segment_bytes", 5, "must be a whole number from 1048576"),
        ("log_segment_bytes", "2000000", "must be a whole number"),
        ("log_segment_bytes", None, "must be a whole number"),
        ("num_partitions", True, "must be a whole number"),
        ("auto_create_topics_enable", 1, "must be true or false"),
        ("log_dirs", ["/a"], "must be a comma-separated list"),
        ("log_dirs", (), "must be a comma-separated list of one or more"),
        ("compression_type", "tar", "must be one of: uncompressed"),
        ("log_roll_ms", 0, "must be at least 1"),
    ],
)
def test_a_config_made_in_python_is_checked_too(field: str, value: object, allowed: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig(**{field: value})
    assert f"for configuration {field.replace('_', '.')}: {allowed}" in str(caught.value)


def test_a_config_made_in_python_has_the_values_of_one_that_was_read() -> None:
    made = BrokerConfig(
        log_cleaner_min_cleanable_ratio=1, group_consumer_migration_policy="Upgrade", log_dirs=None
    )
    assert made.group_consumer_migration_policy == "upgrade"
    assert repr(made.log_cleaner_min_cleanable_ratio) == "1.0"
    assert made.given == {
        "log_cleaner_min_cleanable_ratio",
        "group_consumer_migration_policy",
        "log_dirs",
    }


def test_a_config_has_no_other_fields() -> None:
    with pytest.raises(TypeError, match="BrokerConfig has no field log_segment_byte"):
        BrokerConfig(log_segment_byte=1 << 30)  # type: ignore[call-arg] # a slip


def test_a_config_does_not_change() -> None:
    with pytest.raises(AttributeError, match="num_partitions cannot be changed"):
        broker({}).num_partitions = 5


def test_a_copy_has_the_given_values_of_the_original() -> None:
    config = BrokerConfig(num_partitions=2, broker_rack="a")
    copy = config.replace(num_partitions=3)
    assert (copy.num_partitions, copy.broker_rack, copy.given) == (3, "a", config.given)
    assert (config.num_partitions, copy == config) == (2, False)
    assert config.replace() == config
