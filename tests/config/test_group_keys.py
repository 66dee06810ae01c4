"""How the keys of groups hang together, and what a start does with keys that do not."""

import pytest

from odradek.config.broker_config import BrokerConfig
from odradek.config.dynamic_settings import check_change, clamped_settings, effective_config
from odradek.config.errors import ConfigError
from odradek.config.group_config import check_group, group_values
from odradek.config.loading import load_config

STICKY = "org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor"
KIND_OF_GROUP = pytest.mark.parametrize("kind", ["consumer", "share", "streams"])


def load(**settings: str) -> BrokerConfig:
    """`max_size` stands for group.max.size."""
    overrides = [f"group.{name.replace('_', '.')}={text}" for name, text in settings.items()]
    return load_config(None, overrides).config


@KIND_OF_GROUP
@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (
            {"heartbeat.interval.ms": "4999"},
            "Invalid value 4999 for configuration group.{0}.heartbeat.interval.ms: "
            "must be at least group.{0}.min.heartbeat.interval.ms (5000)",
        ),
        (
            {"heartbeat.interval.ms": "15001"},
            "Invalid value 15000 for configuration group.{0}.max.heartbeat.interval.ms: "
            "must be at least group.{0}.heartbeat.interval.ms (15001)",
        ),
        (
            {"min.heartbeat.interval.ms": "15001"},
            "Invalid value 15000 for configuration group.{0}.max.heartbeat.interval.ms: "
            "must be at least group.{0}.min.heartbeat.interval.ms (15001)",
        ),
        ({"session.timeout.ms": "44999"}, "at least group.{0}.min.session.timeout.ms (45000)"),
        ({"session.timeout.ms": "60001"}, "at least group.{0}.session.timeout.ms (60001)"),
        ({"max.session.timeout.ms": "44999"}, "group.{0}.min.session.timeout.ms (45000)"),
        (
            {"min.session.timeout.ms": "1", "session.timeout.ms": "5000"},
            "greater than group.{0}.heartbeat.interval.ms (5000)",
        ),
        ({"assignment.interval.ms": "15001"}, "group.{0}.assignment.interval.ms (15001)"),
        ({"min.assignment.interval.ms": "1001"}, "group.{0}.min.assignment.interval.ms (1001)"),
        ({"max.assignment.interval.ms": "999"}, "group.{0}.assignment.interval.ms (1000)"),
    ],
)
def test_bounds_that_contradict_each_other_are_refused(
    kind: str, settings: dict[str, str], complaint: str
) -> None:
    overrides = [f"group.{kind}.{name}={text}" for name, text in settings.items()]
    with pytest.raises(ConfigError) as caught:
        load_config(None, overrides)
    assert complaint.format(kind) in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("num.standby.replicas=3", "must be at most group.streams.max.standby.replicas (2)"),
        ("num.warmup.replicas=21", "must be at most group.streams.max.warmup.replicas (20)"),
        (
            "task.offset.interval.ms=14999",
            "must be at least group.streams.min.task.offset.interval.ms (15000)",
        ),
        ("rack.aware.assignment.tags=a,b,a", "must not contain duplicate tag keys"),
        ("assignors=org.example.Mine", "must be sticky"),
        (f"assignors=sticky,{STICKY}", "must be sticky"),
    ],
)
def test_keys_of_streams_groups_that_contradict_each_other_are_refused(
    setting: str, complaint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(None, [f"group.streams.{setting}"])
    assert complaint in str(caught.value)


@KIND_OF_GROUP
def test_bounds_may_be_moved_together(kind: str) -> None:
    load_config(
        None,
        [
            f"group.{kind}.min.session.timeout.ms=100",
            f"group.{kind}.session.timeout.ms=100",
            f"group.{kind}.min.heartbeat.interval.ms=50",
            f"group.{kind}.heartbeat.interval.ms=50",
            f"group.{kind}.max.assignment.interval.ms=0",
            f"group.{kind}.assignment.interval.ms=0",
        ],
    )


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"coordinator_rebalance_protocols": "consumer"}, "the classic protocol"),
        ({"coordinator_rebalance_protocols": ""}, "one or more of"),
        ({"coordinator_rebalance_protocols": "classic,other"}, "classic"),
        ({"consumer_assignors": ""}, "one or more of"),
        ({"consumer_assignors": "uniform,sticky"}, "must be uniform or range"),
        ({"consumer_assignors": "com.example.Mine"}, "Invalid value com.example.Mine"),
        ({"consumer_migration_policy": "both"}, "must be one of: bidirectional"),
        ({"consumer_regex_refresh_interval_ms": "9999"}, "from 10000"),
        ({"consumer_max_size": "0"}, "from 1"),
        ({"share_assignors": "simple,simpler"}, "must be simple: other Java classes"),
        ({"share_dlq_manager_class_name": "com.example.Mine"}, "other classes cannot be loaded"),
        ({"share_delivery_count_limit": "10", "share_max_delivery_count_limit": "9"}, "most"),
        (
            {
                "share_min_record_lock_duration_ms": "30000",
                "share_record_lock_duration_ms": "20000",
            },
            "must be at most group.share.record.lock.duration.ms (20000)",
        ),
        ({"share_max_share_sessions": "199"}, "group.share.max.share.sessions (199)"),
        ({"streams_num_standby_replicas": "3"}, "group.streams.max.standby.replicas (2)"),
    ],
)
def test_what_kafka_would_not_start_with_is_refused(
    settings: dict[str, str], complaint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(**settings)
    assert complaint in str(caught.value)


def test_assignors_may_be_given_by_class() -> None:
    simple = "org.apache.kafka.coordinator.group.assignor.SimpleAssignor"
    config = load(share_assignors=simple, streams_assignors=STICKY)
    assert config.group_share_assignors == (simple,)
    check_group(config, {"streams.assignor.name": "sticky"})
    assert group_values(config, {})["streams.assignor.name"] == "sticky"


@pytest.mark.parametrize("text", ["UPGRADE", "upgrade", "Upgrade"])
def test_a_policy_may_be_written_in_any_case(text: str) -> None:
    assert load(consumer_migration_policy=text).group_consumer_migration_policy == "upgrade"


# -- the assignment interval, which may be set on a running broker ---------------------------------

FILE = BrokerConfig.from_texts(
    {
        "group.consumer.max.assignment.interval.ms": "2000",
        "group.share.min.assignment.interval.ms": "500",
    }
)


def test_an_assignment_interval_set_while_it_runs_counts() -> None:
    settings = {"group.consumer.assignment.interval.ms": "5"}
    check_change(FILE, {}, settings)
    assert effective_config(FILE, settings).group_consumer_assignment_interval_ms == 5


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("group.consumer.assignment.interval.ms", "2001"),
        ("group.share.assignment.interval.ms", "499"),
        ("group.streams.assignment.interval.ms", "15001"),
    ],
)
def test_an_assignment_interval_beyond_the_files_bounds_is_refused(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"Invalid dynamic configuration: .*{name}"):
        check_change(FILE, {}, {name: text})
    # What is there already is not in the way of another change.
    check_change(FILE, {name: text}, {name: text, "message.max.bytes": "7"})


def test_a_bound_counts_instead_of_a_setting_that_is_beyond_it_by_now() -> None:
    settings = {
        "group.consumer.assignment.interval.ms": "9000",
        "group.share.assignment.interval.ms": "1",
        "group.streams.assignment.interval.ms": "1",
        "message.max.bytes": "7",
    }
    assert clamped_settings(FILE, settings) == {
        "group.consumer.assignment.interval.ms": "2000",
        "group.share.assignment.interval.ms": "500",
    }
    config = effective_config(FILE, settings)
    assert (config.group_consumer_assignment_interval_ms, config.message_max_bytes) == (2_000, 7)
