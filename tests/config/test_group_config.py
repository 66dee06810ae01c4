"""Settings of groups and of client metrics subscriptions."""

import pytest

from odradek.config.broker_config import BrokerConfig
from odradek.config.broker_keys import broker_keys
from odradek.config.client_metrics_config import InvalidSubscriptionError, check_client_metrics
from odradek.config.describe import ConfigSource, describe_client_metrics, describe_group
from odradek.config.errors import ConfigError
from odradek.config.group_config import GROUP_KEYS, GROUP_SYNONYMS, check_group, group_values

BROKER = BrokerConfig.from_texts(
    {"group.consumer.session.timeout.ms": "50000", "group.consumer.assignment.interval.ms": "9"}
)


def test_a_group_inherits_from_its_broker() -> None:
    values = group_values(BROKER, {"share.delivery.count.limit": "7", "key.of.the.future": "1"})
    assert values["consumer.session.timeout.ms"] == 50_000
    assert values["consumer.heartbeat.interval.ms"] == 5_000
    assert values["share.delivery.count.limit"] == 7
    assert values["consumer.assignment.interval.ms"] == 9
    assert "key.of.the.future" not in values


def test_defaults_are_those_of_the_brokers_keys() -> None:
    names = dict(GROUP_SYNONYMS)
    assert names.pop("streams.assignor.name") == "group.streams.assignors"  # its first
    for name, synonym in names.items():
        key = broker_keys()[synonym]
        assert (GROUP_KEYS[name].default, GROUP_KEYS[name].type) == (key.default, key.type)


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("no.such.key", "1", "Unknown group config name: no.such.key"),
        ("consumer.session.timeout.ms", "1", "group.consumer.min.session.timeout.ms"),
        ("consumer.session.timeout.ms", "60001", "group.consumer.max.session.timeout.ms"),
        ("consumer.session.timeout.ms", "long", "consumer.session.timeout.ms"),
        ("share.record.lock.duration.ms", "60001", "group.share.max.record.lock.duration.ms"),
        ("streams.num.standby.replicas", "3", "group.streams.max.standby.replicas"),
        ("streams.assignment.interval.ms", "15001", "group.streams.max.assignment.interval.ms"),
        ("streams.num.warmup.replicas", "21", "group.streams.max.warmup.replicas"),
        (
            "streams.task.offset.interval.ms",
            "14999",
            "group.streams.min.task.offset.interval.ms",
        ),
        ("streams.rack.aware.assignment.tags", "zone, rack , zone", "duplicate tag keys"),
        ("streams.assignor.name", "mine", r"Registered assignors are: \[sticky\]"),
        ("errors.deadletterqueue.topic.name", "__dlq", "must not start with '__'"),
        ("share.auto.offset.reset", "by_duration:", "by_duration"),
        ("share.auto.offset.reset", "by_duration:-PT1H", "by_duration"),
        ("share.auto.offset.reset", "by_duration:PT", "by_duration"),
        ("share.auto.offset.reset", "BY_DURATION:P1D", "by_duration"),
        ("share.auto.offset.reset", "by_duration:P99999999999999999999D", "by_duration"),
        ("share.auto.offset.reset", f"by_duration:P{'9' * 5000}D", "by_duration"),
        ("share.auto.offset.reset", "by_duration:PT-0.0001S", "by_duration"),
    ],
)
def test_values_beyond_the_brokers_bounds_are_refused(name: str, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        check_group(BROKER, {name: text})


def test_what_streams_groups_of_44_may_have() -> None:
    settings = {
        "streams.num.warmup.replicas": "20",
        "streams.task.offset.interval.ms": "15000",
        "streams.acceptable.recovery.lag": "0",
        "streams.rack.aware.assignment.tags": "zone,rack",
        "streams.assignor.name": "sticky",
        "streams.assignor.offload.enable": "false",
        "errors.deadletterqueue.topic.name": "",
        "errors.deadletterqueue.copy.record.enable": "true",
    }
    check_group(BROKER, settings)
    entries = {entry.name: entry.value for entry in describe_group(BROKER, settings)}
    assert settings.items() <= entries.items()


def test_a_session_outlives_a_heartbeat() -> None:
    broker = BrokerConfig.from_texts({"group.share.min.session.timeout.ms": "1000"})
    check_group(broker, {"share.session.timeout.ms": "5001"})
    with pytest.raises(ConfigError, match=r"greater than share\.heartbeat"):
        check_group(broker, {"share.session.timeout.ms": "5000"})


@pytest.mark.parametrize(
    "text", ["earliest", "latest", "by_duration:P1DT2H3M4.5S", "by_duration:p-1dt24h0.5s"]
)
def test_where_a_share_group_may_begin(text: str) -> None:
    check_group(BROKER, {"share.auto.offset.reset": text})


def test_a_group_is_described_with_where_its_values_come_from() -> None:
    settings = {
        "group.share.assignment.interval.ms": "3",
        "group.consumer.assignment.interval.ms": "15001",  # beyond the file's upper bound
    }
    dynamic = [(ConfigSource.DYNAMIC_BROKER, settings)]
    entries = describe_group(BROKER, {"share.isolation.level": "read_committed"}, dynamic)
    found = {entry.name: (entry.value, entry.source) for entry in entries}
    assert list(found) == [name for name, key in GROUP_KEYS.items() if not key.internal]
    assert found["streams.assignor.name"] == ("sticky", ConfigSource.DEFAULT)
    assert found["share.isolation.level"] == ("read_committed", ConfigSource.GROUP)
    assert found["consumer.session.timeout.ms"] == ("50000", ConfigSource.STATIC_BROKER)
    assert found["share.assignment.interval.ms"] == ("3", ConfigSource.DYNAMIC_BROKER)
    assert found["consumer.assignment.interval.ms"] == ("15000", ConfigSource.DYNAMIC_BROKER)
    assert found["share.auto.offset.reset"] == ("latest", ConfigSource.DEFAULT)


def test_client_metrics_are_described_without_an_heir() -> None:
    found = {entry.name: entry for entry in describe_client_metrics({"metrics": "a, b"})}
    assert (found["metrics"].value, found["metrics"].source) == ("a,b", ConfigSource.CLIENT_METRICS)
    assert (found["interval.ms"].value, found["interval.ms"].synonyms) == ("300000", ())


@pytest.mark.parametrize(
    "overrides",
    [
        {"no.such.key": "1"},
        {"interval.ms": "99"},
        {"interval.ms": "3600001"},
        {"match": "client_id"},
        {"match": "client_id=a=b"},
        {"match": "client_id=["},
        {"match": "client_id=" + "(" * 10_000},
        {"match": "client_id=a{99999999999}"},
        {"match": "client_id=(a+)+(?!b)"},  # what RE2 does not have
        {"match": "client_id=(a+)\\1"},
        {"match": "client_id=" + "|".join(["[ab]*a[ab]{100}"] * 10)},
        {"match": ",".join(["client_id=a\\pL"] * 101)},
        {"metrics": "a,,b"},
    ],
)
def test_a_subscription_that_makes_no_sense_is_refused(overrides: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        check_client_metrics(overrides)


def test_the_interval_of_a_subscription_is_checked_before_its_patterns() -> None:
    with pytest.raises(InvalidSubscriptionError):
        check_client_metrics({"match": "client_id=[", "interval.ms": "99"})


def test_a_subscription_may_match_by_patterns() -> None:
    check_client_metrics({"match": "client_id=x.*, client_software_name = Java", "metrics": ""})
