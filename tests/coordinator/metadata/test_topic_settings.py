"""From the broker's configuration to the rules for topics and the quorum."""

import pytest

from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError
from odradek.coordinator.metadata.broker_registration import Endpoint
from odradek.coordinator.metadata.configs import ConfigResourceType, Configs
from odradek.coordinator.metadata.metadata_format import controller_endpoint
from odradek.coordinator.metadata.topic_creation import CreatedTopic, NewTopic, create_topics
from odradek.coordinator.metadata.topic_settings import automatic_topic, stored_config, topic_rules
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.cluster_metadata import ConfigRecord
from tests.support.metadata import DIRECTORY, NODE, Metadata


def config(**texts: str) -> BrokerConfig:
    return BrokerConfig.from_texts({name.replace("_", "."): text for name, text in texts.items()})


def created(broker: BrokerConfig, wish: NewTopic) -> CreatedTopic | ApiError:
    rules = topic_rules(broker, NODE, [DIRECTORY])
    return Metadata().commit(create_topics(Metadata().state, [wish], rules))[wish.name]


def test_the_brokers_defaults_hold_for_new_topics() -> None:
    reply = created(config(num_partitions="7"), NewTopic(name="t"))
    assert isinstance(reply, CreatedTopic)
    assert reply.partition_count == 7


@pytest.mark.parametrize(
    ("overrides", "text"),
    [
        ({"retention.ms": "soon"}, "retention.ms"),
        ({"no.such.key": "1"}, "no.such.key"),
        ({"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"}, "min.compaction.lag.ms"),
    ],
)
def test_a_config_that_no_topic_may_have_is_invalid(overrides: dict[str, str], text: str) -> None:
    reply = created(config(), NewTopic(name="t", configs=overrides))
    assert isinstance(reply, ApiError)
    assert reply.code is ErrorCode.INVALID_CONFIG
    assert text in reply.message


def test_the_offsets_topic_is_shaped_by_its_own_keys_and_has_one_replica() -> None:
    broker = config(
        offsets_topic_num_partitions="3",
        offsets_topic_replication_factor="3",
        offsets_topic_segment_bytes="2097152",
    )
    wish = automatic_topic(broker, "__consumer_offsets")
    assert wish.configs == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "2097152",
    }
    reply = created(broker, wish)
    assert isinstance(reply, CreatedTopic)
    assert (reply.partition_count, reply.replication_factor) == (3, 1)


def test_any_other_automatic_topic_leaves_everything_open() -> None:
    assert automatic_topic(config(), "t") == NewTopic(name="t")


def test_the_voter_is_reached_where_the_file_says() -> None:
    broker = config(
        listeners="PLAINTEXT://localhost:9092,CONTROLLER://:19093",
        controller_listener_names="CONTROLLER",
    )
    assert controller_endpoint(broker) == Endpoint("CONTROLLER", "localhost", 19093)


def test_the_voter_is_reached_where_kafkas_own_file_says_when_ours_says_nothing() -> None:
    assert controller_endpoint(config()) == Endpoint("CONTROLLER", "localhost", 9093)


def test_the_error_of_a_stored_override_names_its_topic() -> None:
    configs = Configs()
    for name, value in (("good", "5"), ("bad", "soon")):
        record = ConfigRecord(
            resource_type=ConfigResourceType.TOPIC,
            resource_name=name,
            name="retention.ms",
            value=value,
        )
        configs.replay(record)
    assert stored_config(config(), configs, "good").retention_ms == 5
    with pytest.raises(ConfigError, match=r"^topic bad: Invalid value soon .* retention\.ms"):
        stored_config(config(), configs, "bad")
