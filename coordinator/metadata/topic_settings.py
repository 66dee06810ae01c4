"""What the broker's configuration says about new topics.

The rules for each of them, and the topics that are created automatically: internal ones when their
coordinator is needed first, others when a request names one that is missing.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType

from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError
from odradek.config.topic_config import TopicConfig
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.topic_names import (
    CONSUMER_OFFSETS_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)

from .configs import Configs
from .topic_creation import NewTopic, TopicRules
from .topics import Topic


def topic_rules(
    config: BrokerConfig,
    node_id: int,
    directories: Sequence[bytes],
    cordoned: Collection[bytes] = (),
    replica_ids: Sequence[int] = (),
    live_ids: Collection[int] = (),
    factor_of: Callable[[Topic], int] = attrgetter("replication_factor"),
) -> TopicRules:
    """Make the rules for new topics.

    `directories`: the directory.ids of those online. `cordoned`: of those that get no new
    partitions (cordoned.log.dirs). `replica_ids`: the nodes that clients see, of
    which `live_ids` live.
    `factor_of`: the replication factor of a topic, as they see it.
    """

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
        replica_ids=replica_ids,
        live_ids=live_ids,
        factor_of=factor_of,
    )


def stored_config(config: BrokerConfig, configs: Configs, topic: str) -> TopicConfig:
    """The configuration of a topic. Raises ConfigError with its name.

    The log may have an override that is not valid, from another version of Kafka.
    """
    try:
        return config.stored_topic_config(configs.of_topic(topic))
    except ConfigError as error:
        raise ConfigError(f"topic {topic}: {error}") from None


def automatic_topic(config: BrokerConfig, name: str) -> NewTopic:
    """Return the topic to create when a request names a missing one.

    Kafka: AutoTopicCreationManager.creatableTopic.
    """
    make_internal = _INTERNAL_TOPICS.get(name)
    return NewTopic(name=name) if make_internal is None else make_internal(config)


def _consumer_offsets(config: BrokerConfig) -> NewTopic:
    """Kafka: GroupCoordinatorService.groupMetadataTopicConfigs."""
    return NewTopic(
        name=CONSUMER_OFFSETS_TOPIC,
        partition_count=config.offsets_topic_num_partitions,
        replication_factor=1,  # there is one broker
        configs={
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.offsets_topic_segment_bytes),
        },
    )


def _transaction_state(config: BrokerConfig) -> NewTopic:
    """Kafka: TransactionStateManager.transactionTopicConfigs."""
    return NewTopic(
        name=TRANSACTION_STATE_TOPIC,
        partition_count=config.transaction_state_log_num_partitions,
        replication_factor=1,  # there is one broker
        configs={
            "unclean.leader.election.enable": "false",
            "compression.type": "uncompressed",
            "cleanup.policy": "compact",
            "min.insync.replicas": str(config.transaction_state_log_min_isr),
            "segment.bytes": str(config.transaction_state_log_segment_bytes),
        },
    )


def _share_group_state(config: BrokerConfig) -> NewTopic:
    """Kafka: ShareCoordinatorService.shareGroupStateTopicConfigs."""
    return NewTopic(
        name=SHARE_GROUP_STATE_TOPIC,
        partition_count=config.share_coordinator_state_topic_num_partitions,
        replication_factor=1,  # there is one broker
        configs={
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "segment.bytes": str(config.share_coordinator_state_topic_segment_bytes),
            "min.insync.replicas": str(config.share_coordinator_state_topic_min_isr),
            "retention.ms": "-1",
        },
    )


# How each internal topic is created.
_INTERNAL_TOPICS: Mapping[str, Callable[[BrokerConfig], NewTopic]] = MappingProxyType(
    {
        CONSUMER_OFFSETS_TOPIC: _consumer_offsets,
        TRANSACTION_STATE_TOPIC: _transaction_state,
        SHARE_GROUP_STATE_TOPIC: _share_group_state,
    }
)
