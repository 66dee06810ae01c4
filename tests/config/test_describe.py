"""DescribeConfigs' content, compared with what Apache Kafka 4.4.0 answered for the same file."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from odradek.config.broker_config import BrokerConfig
from odradek.config.describe import (
    ConfigEntry,
    ConfigSource,
    Layers,
    describe_broker,
    describe_topic,
    merged,
)
from odradek.config.dynamic_settings import effective_config
from odradek.config.key import ConfigType
from odradek.config.properties import parse_properties

GOLDEN = Path(__file__).parents[1] / "golden" / "config"
BROKER = BrokerConfig.from_texts(parse_properties((GOLDEN / "describe.properties").read_bytes()))
OWN = {
    "retention.ms": "1000",
    "cleanup.policy": "delete , compact",
    "internal.segment.bytes": "5000",
    "min.cleanable.dirty.ratio": "0.00001",
    "preallocate": "TRUE",
    "segment.bytes": "2000000",
}
# A Kafka that was formatted with --standalone has this in its metadata log.
ELIGIBLE_LEADERS = [(ConfigSource.DYNAMIC_DEFAULT_BROKER, {"min.insync.replicas": "1"})]
SOURCES = {
    "DYNAMIC_TOPIC_CONFIG": ConfigSource.TOPIC,
    "DYNAMIC_DEFAULT_BROKER_CONFIG": ConfigSource.DYNAMIC_DEFAULT_BROKER,
    "STATIC_BROKER_CONFIG": ConfigSource.STATIC_BROKER,
    "DEFAULT_CONFIG": ConfigSource.DEFAULT,
}
# Keys that Kafka wants written; here they have a default, which is one synonym more.
REQUIRED_BY_KAFKA = {"node.id", "process.roles", "controller.listener.names"}


def kafkas(resource: str) -> dict[str, tuple[object, ...]]:
    found = {}
    for line in (GOLDEN / "describe.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if entry["resource"] == resource:
            found[entry["name"]] = (
                entry["value"],
                SOURCES[entry["source"]],
                0 if entry["type"] == "UNKNOWN" else ConfigType[entry["type"]],
                entry["read_only"],
                entry["sensitive"],
                tuple((name, value, SOURCES[source]) for name, value, source in entry["synonyms"]),
            )
    return found


def odradeks(entries: Iterable[ConfigEntry]) -> dict[str, tuple[object, ...]]:
    found = {}
    for entry in entries:
        synonyms = entry.synonyms
        if entry.name in REQUIRED_BY_KAFKA:
            synonyms = synonyms[:-1]
        found[entry.name] = (
            entry.value,
            entry.source,
            entry.type,
            entry.is_read_only,
            entry.is_sensitive,
            synonyms,
        )
    return found


def described_topic(
    written: BrokerConfig, overrides: Mapping[str, str], dynamic: Layers = ()
) -> Iterator[ConfigEntry]:
    effective = effective_config(written, merged(dynamic))
    return describe_topic(effective, overrides, written, dynamic)


def test_a_topic_without_overrides_is_described_as_by_kafka() -> None:
    assert odradeks(described_topic(BROKER, {}, ELIGIBLE_LEADERS)) == kafkas("plain")


def test_a_topic_with_overrides_is_described_as_by_kafka() -> None:
    assert odradeks(described_topic(BROKER, OWN, ELIGIBLE_LEADERS)) == kafkas("own")


def test_the_broker_is_described_as_by_kafka() -> None:
    described = odradeks(describe_broker(BROKER, ELIGIBLE_LEADERS))
    expected = kafkas("1")
    assert described.pop("odradek.validate.records")[0] == "headers"
    assert described.pop("odradek.nodes")[0] == "1"
    assert described.pop("odradek.nodes.racks")[0] == ""
    assert described.pop("odradek.create.topics")[0] == ""
    assert described.pop("odradek.min.free.bytes")[0] == str(64 << 20)
    assert described.pop("odradek.group.expire.on.disconnect")[0] == "false"
    assert described.pop("odradek.telemetry.topic")[0] is None
    assert described.pop("odradek.telemetry.max.series")[0] == "10000"
    assert described.pop("odradek.telemetry.max.client.series")[0] == "1000"

    assert described.pop("odradek.http.listener")[0] is None
    assert described.pop("odradek.http.hosts")[0] == ""
    assert described.pop("odradek.console")[0] == "false"
    assert described.pop("odradek.console.read.only")[0] == "false"
    assert described.pop("odradek.registry.listener")[0] is None
    assert described.pop("queued.max.request.bytes")[0] == str(256 << 20)
    assert expected.pop("queued.max.request.bytes")[0] == "-1"
    assert described == expected


def test_secrets_never_leave() -> None:
    by_name = {entry.name: entry for entry in describe_broker(BROKER)}
    for name in ("ssl.keystore.password", "made.up"):
        assert by_name[name].is_sensitive
        assert by_name[name].value is None
        assert [synonym.value for synonym in by_name[name].synonyms] == [None]


def test_documentation_is_there_for_every_known_key() -> None:
    documented = {entry.name: entry.documentation for entry in describe_broker(BROKER)}
    unknown = {name for name, text in documented.items() if not text}
    assert unknown == {"made.up", "listener.name.plaintext.max.connections"}


def test_a_config_made_in_python_shows_its_arguments_as_written() -> None:
    broker = BrokerConfig(log_retention_ms=5, log_dirs=("a", "b"))
    by_name = {entry.name: entry for entry in describe_broker(broker)}
    assert by_name["log.dirs"].value == "a,b"
    assert by_name["log.dirs"].source is ConfigSource.STATIC_BROKER
    retention = next(e for e in described_topic(broker, {}) if e.name == "retention.ms")
    assert (retention.value, retention.source) == ("5", ConfigSource.STATIC_BROKER)


def test_what_is_set_on_the_running_broker_comes_before_its_file() -> None:
    broker = BrokerConfig.from_texts({"log.retention.ms": "5"})
    dynamic = [
        (ConfigSource.DYNAMIC_BROKER, {"log.retention.ms": "7"}),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER, {"log.retention.ms": "6"}),
    ]
    for entry in (*described_topic(broker, {}, dynamic), *describe_broker(broker, dynamic)):
        if entry.name in ("retention.ms", "log.retention.ms"):
            assert (entry.value, entry.source) == ("7", ConfigSource.DYNAMIC_BROKER)
            assert [synonym.value for synonym in entry.synonyms][:3] == ["7", "6", "5"]
    assert broker.with_dynamic({"log.retention.ms": "7"}).topic_config({}).retention_ms == 7
    assert broker.with_dynamic({"log.retention.ms": "7"}).texts == broker.texts
