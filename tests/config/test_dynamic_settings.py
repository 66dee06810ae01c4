"""What may be set on a running broker."""

import pytest

from odradek.config.broker_config import BrokerConfig
from odradek.config.dynamic_settings import (
    check_change,
    check_settings,
    effective_config,
    printable_value,
    usable_settings,
)
from odradek.config.errors import ConfigError
from odradek.config.key import HIDDEN

FILE = BrokerConfig.from_texts({"log.dirs": "/a,/b", "num.io.threads": "4"})


@pytest.mark.parametrize(
    ("name", "text", "of_one", "of_all"),
    [
        ("log.retention.ms", "5", True, True),
        ("log.retention.ms", "soon", False, False),
        ("log.retention.hours", "5", False, False),
        ("log.dirs", "/c", False, False),
        ("num.io.threads", "8", True, True),
        ("made.up", "anything", True, True),
        ("zookeeper.connect", "x", True, True),
        ("leader.replication.throttled.rate", "5", True, True),
        ("leader.replication.throttled.rate", "-1", False, False),
        ("ssl.keystore.location", "/k", False, False),
        ("listener.name.plaintext.ssl.keystore.location", "/k", True, False),
        ("listener.name.plaintext.max.connections", "5", True, True),
        ("listener.name.plaintext.max.connections", "five", False, False),
        ("principal.builder.class", "x", True, False),
        ("cordoned.log.dirs", "/a", True, False),
    ],
)
def test_which_key_may_be_set_on_one_broker_and_on_all(
    name: str, text: str, of_one: bool, of_all: bool
) -> None:
    for of_all_brokers, allowed in ((False, of_one), (True, of_all)):
        usable, problems = usable_settings({name: text}, of_all_brokers=of_all_brokers)
        assert bool(usable) == allowed
        assert len(problems) == (not allowed)
        if not allowed:
            with pytest.raises(ConfigError, match=name.replace(".", r"\.")):
                check_settings({name: text}, of_all_brokers=of_all_brokers)


def change(now: dict[str, str], then: dict[str, str]) -> None:
    check_change(FILE, now, then)


@pytest.mark.parametrize(
    ("now", "then"),
    [
        ({}, {"num.io.threads": "2"}),
        ({}, {"num.io.threads": "8"}),
        ({"num.io.threads": "8"}, {"num.io.threads": "16"}),
        ({"log.cleaner.threads": "2"}, {}),
        ({}, {"log.cleaner.threads": "2"}),
        ({}, {"cordoned.log.dirs": "/a"}),
        ({}, {"cordoned.log.dirs": "*"}),
        ({}, {"log.local.retention.ms": "5"}),
        ({}, {"listeners": "PLAINTEXT://:9092"}),
        (
            {"sasl.enabled.mechanisms": "PLAIN"},
            {"sasl.enabled.mechanisms": "PLAIN", "made.up": "1"},
        ),
    ],
)
def test_a_change_that_kafka_would_make(now: dict[str, str], then: dict[str, str]) -> None:
    change(now, then)


@pytest.mark.parametrize(
    ("now", "then"),
    [
        ({}, {"num.io.threads": "1"}),
        ({}, {"num.io.threads": "9"}),
        ({"num.io.threads": "16"}, {}),
        ({}, {"log.cleaner.threads": "3"}),
        ({}, {"max.connections": "0"}),
        ({}, {"max.connections.per.ip": "0"}),
        ({}, {"listener.name.plaintext.max.connections": "0"}),
        ({}, {"listener.name.plaintext.max.connection.creation.rate": "0"}),
        ({}, {"cordoned.log.dirs": "/c"}),
        ({}, {"cordoned.log.dirs": "*,/a"}),
        ({}, {"log.cleaner.dedupe.buffer.size": "1048576"}),
        ({}, {"max.connections.per.ip.overrides": "a b:1"}),
        ({}, {"log.local.retention.ms": "999999999999"}),
        ({}, {"log.retention.bytes": "5", "log.local.retention.bytes": "6"}),
        ({}, {"log.retention.ms": "0"}),
        ({}, {"log.cleaner.min.compaction.lag.ms": "9", "log.cleaner.max.compaction.lag.ms": "8"}),
        ({}, {"listeners": "PLAINTEXT://:9092,OTHER://:9093"}),
        ({}, {"principal.builder.class": "org.example.Principals"}),
    ],
)
def test_a_change_that_is_refused(now: dict[str, str], then: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="Invalid dynamic configuration: "):
        change(now, then)


def test_the_files_local_retention_is_only_checked_with_changes_of_logs() -> None:
    texts = {"log.retention.bytes": "5", "log.local.retention.bytes": "6"}
    file = BrokerConfig.from_texts(texts)
    check_change(file, {}, {"num.io.threads": "4"})
    check_change(file, {}, {"log.retention.bytes": "-5"})  # less than -1 is no limit, too
    with pytest.raises(ConfigError, match="must not exceed the total retention"):
        check_change(file, {}, {"log.preallocate": "true"})


def test_settings_come_before_the_file_and_listeners_stay_the_files() -> None:
    config = effective_config(FILE, {"message.max.bytes": "7", "listeners": "PLAINTEXT://:1"})
    assert config.message_max_bytes == 7
    assert config.listeners == FILE.listeners
    assert config.texts == FILE.texts
    assert effective_config(config, {}).message_max_bytes == 7


def test_a_secret_is_not_shown() -> None:
    assert printable_value("log.retention.ms", "5") == "5"
    assert printable_value("listener.name.x.ssl.key.password", "5") == HIDDEN
    assert printable_value("made.up", "5") == HIDDEN
