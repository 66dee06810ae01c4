"""A topic's configuration: what it inherits, what may be set on it, and the words of a refusal."""

import pytest

from odradek.config.broker_config import SERVED_KEYS, BrokerConfig
from odradek.config.errors import ConfigError
from odradek.config.key import Value
from odradek.config.topic_config import BROKER_SYNONYMS, TOPIC_KEYS, TopicConfig

BROKER = BrokerConfig.from_texts({"message.max.bytes": "5000", "compression.type": "lz4"})


def test_without_a_word_a_topic_has_kafkas_defaults() -> None:
    assert BrokerConfig.from_texts({}).topic_config({}) == TopicConfig()


def test_a_topic_inherits_from_its_broker() -> None:
    topic = BROKER.topic_config({})
    assert (topic.max_message_bytes, topic.compression_type) == (5000, "lz4")


def test_what_is_set_on_a_topic_overrules_the_broker() -> None:
    topic = BROKER.topic_config({"max.message.bytes": " 6000", "cleanup.policy": "compact,delete"})
    assert topic.max_message_bytes == 6000
    assert topic.cleanup_policy == ("compact", "delete")
    assert topic.compression_type == "lz4"
    assert (topic.compact, topic.delete) == (True, True)


def test_every_key_with_a_broker_key_inherits_its_value_and_default() -> None:
    for name, synonyms in BROKER_SYNONYMS.items():
        broker_name, factor = synonyms[0]
        assert TOPIC_KEYS[name].type == SERVED_KEYS[broker_name].type, name
        last, factor = synonyms[-1]
        default: Value = SERVED_KEYS[last].default
        if isinstance(default, int) and not isinstance(default, bool):
            default *= factor
        assert TOPIC_KEYS[name].default == default, name


def test_a_cleanup_policy_may_be_empty() -> None:
    topic = BROKER.topic_config({"cleanup.policy": ""})
    assert (topic.cleanup_policy, topic.compact, topic.delete) == ((), False, False)


def test_an_unknown_name_is_refused_in_the_words_that_tools_look_for() -> None:
    with pytest.raises(ConfigError, match=r"^Unknown topic config name: retention\.mss$"):
        BROKER.topic_config({"retention.mss": "1"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("segment.bytes", "5"),
        ("retention.ms", "abc"),
        ("retention.ms", "-2"),
        ("cleanup.policy", "x"),
        ("cleanup.policy", "compact,"),
        ("compression.type", "GZIP"),
        ("compression.gzip.level", "0"),
        ("compression.lz4.level", "18"),
        ("compression.zstd.level", "23"),
        ("preallocate", "yes"),
        ("min.cleanable.dirty.ratio", "2"),
        ("segment.ms", "1_0"),
        ("min.insync.replicas", "0"),
        ("message.timestamp.type", "createtime"),
        ("leader.replication.throttled.replicas", "a"),
        ("remote.storage.enable", "true"),
    ],
)
def test_what_kafka_refuses_is_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BROKER.topic_config({name: value})
    message = str(caught.value)
    assert f"Invalid value {value} for configuration {name}: must be " in message
    assert "\n" not in message


def test_lags_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match="conflict topic config setting"):
        BROKER.topic_config({"min.compaction.lag.ms": "6", "max.compaction.lag.ms": "5"})


def test_what_is_stored_is_read_even_if_it_could_not_be_set_today() -> None:
    stored = {"brand.new": "1", "remote.storage.enable": "true", "retention.ms": "7"}
    topic = BROKER.stored_topic_config(stored)
    assert (topic.retention_ms, topic.remote_storage_enable) == (7, True)


def test_tests_may_have_segments_smaller_than_users() -> None:
    topic = BROKER.topic_config({"internal.segment.bytes": "100"})
    assert (topic.segment_bytes, topic.segment_size_bytes) == (1 << 30, 100)
    assert BROKER.topic_config({}).segment_size_bytes == 1 << 30


def test_a_compacted_log_rolls_before_its_records_are_due() -> None:
    lag = {"max.compaction.lag.ms": "1000"}
    assert BROKER.topic_config(lag).max_segment_ms == 7 * 24 * 3_600_000
    assert BROKER.topic_config(lag | {"cleanup.policy": "compact"}).max_segment_ms == 1000
