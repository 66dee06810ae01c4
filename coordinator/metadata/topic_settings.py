"""The rules for new topics, and the topics created automatically, by the broker's configuration."""

from collections.abc import Collection, Mapping, Sequence

from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC

from .topic_creation import NewTopic, TopicRules


def topic_rules(
    config: BrokerConfig,
    node_id: int,
    directories: Sequence[bytes],
    cordoned: Collection[bytes] = (),
) -> TopicRules:
    """Make the rules for new topics; `directories`: the directory.ids of those online."""

    def check_configs(overrides: Mapping[str, str]) -> None:
        try:
            config.topic_config(overrides)
        except ConfigError as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from None

    return TopicRules(
        node_id=node_id,
        directories=directories,
        cordoned=cordoned,
        default_partitions=config.num_partitions,
        default_replication_factor=config.default_replication_factor,
        check_configs=check_configs,
    )


def automatic_topic(config: BrokerConfig, name: str) -> NewTopic:
    """Return the topic to create when a request names a missing one.

    `__consumer_offsets` has its own settings, but one replica, because there is one broker. Kafka:
    AutoTopicCreationManager.creatableTopic, groupMetadataTopicConfigs.
    """
    if name == CONSUMER_OFFSETS_TOPIC:
        return NewTopic(
            name=name,
            partition_count=config.offsets_topic_num_partitions,
            replication_factor=1,
            configs={
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.offsets_topic_segment_bytes),
            },
        )
    return NewTopic(name=name)
