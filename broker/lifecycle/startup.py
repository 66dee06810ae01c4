"""From data directories to logs and metadata that agree with each other.

The metadata is the truth: a partition without a log gets one, a log that no topic owns is put aside
(`-stray`), and every log learns the leader epoch it is written in from now on. What spans two
journals, like deleting a topic, is repaired here after a crash.

Kafka: BrokerMetadataPublisher.initializeManagers, LogManager.isStrayReplica, Formatter.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from odradek.config.broker_config import BrokerConfig
from odradek.config.topic_config import TopicConfig, with_overrides
from odradek.coordinator.metadata.broker_registration import Endpoint
from odradek.coordinator.metadata.cluster_metadata import ClusterMetadata
from odradek.coordinator.metadata.controller import Controller
from odradek.coordinator.metadata.kraft_log import KraftLog, open_kraft_log
from odradek.coordinator.metadata.metadata_format import (
    controller_endpoint,
    format_metadata,
    is_formatted,
)
from odradek.coordinator.metadata.metadata_reading import MetadataReading
from odradek.coordinator.metadata.quorum import QuorumMember
from odradek.coordinator.metadata.topics import Partition, Topic
from odradek.protocol.errors import ApiError
from odradek.protocol.primitives import METADATA_TOPIC_ID, random_uuid
from odradek.storage.directories.data_directory import DataDirectory
from odradek.storage.directories.found_log import FoundLog
from odradek.storage.files import Files
from odradek.storage.log_manager import LogManager
from odradek.storage.moving.log_moves import KnownPartition, LogMoves
from odradek.storage.topic_names import is_internal

from .preflight import REASONS_TO_REFUSE, RefusedToStartError

logger = logging.getLogger("odradek.startup")


def open_metadata(
    config: BrokerConfig,
    log_manager: LogManager,
    files: Files,
    now_ms: int,
    reading: MetadataReading | None = None,
) -> KraftLog:
    """The metadata log; formatted where there is none yet.

    `reading`: what a survey has read of it.

    Raises RefusedToStartError, DirectoryError.
    """
    wanted = config.metadata_directory.absolute()
    home = next((one for one in log_manager.directories if one.path == wanted), None)
    if home is None:
        reason = log_manager.offline[wanted]
        raise RefusedToStartError(f"the metadata directory {wanted} is offline: {reason}")
    me = QuorumMember(
        node_id=config.node_id,
        directory_id=home.directory_id,
        endpoint=controller_endpoint(config),
    )
    if not is_formatted(files, home.path):
        format_metadata(files, home.path, me, now_ms)
    log_config = metadata_log_config(config)
    log = log_manager.open_metadata_log(METADATA_TOPIC_ID, log_config, now_ms=now_ms)
    try:
        kraft_log = open_kraft_log(
            log,
            files,
            log_manager.cluster_id,
            me,
            now_ms=now_ms,
            default_min_insync_replicas=config.min_insync_replicas,
            reading=reading,
        )
    except REASONS_TO_REFUSE as error:
        raise RefusedToStartError(f"{log.directory}: {error}") from error
    warn_of_what_is_not_enforced(kraft_log.metadata)
    return kraft_log


def metadata_log_config(config: BrokerConfig) -> TopicConfig:
    """What the metadata log is kept with: keys of its own, and Kafka's defaults for the rest.

    It has no retention of its own, see snapshot_keeping.py. Kafka: KafkaRaftLog.createLog.
    """
    settings = {
        "max.message.bytes": str(config.internal_metadata_max_batch_size_in_bytes),
        "segment.bytes": str(config.metadata_log_segment_bytes),
        "segment.ms": str(config.metadata_log_segment_ms),
        "retention.ms": "-1",
        "retention.bytes": "-1",
    }
    if config.internal_metadata_log_segment_bytes is not None:
        settings["internal.segment.bytes"] = str(config.internal_metadata_log_segment_bytes)
    return with_overrides(TopicConfig(), settings)


def warn_of_what_is_not_enforced(metadata: ClusterMetadata) -> None:
    """Say what the metadata asks for and nobody does; it stays there for Apache Kafka."""
    kept = metadata.kept
    if kept.acls:
        logger.warning(
            "%d ACLs are kept but not enforced, as the configuration names no authorizer",
            len(kept.acls),
        )
    for what, found in (
        ("client quotas", kept.quotas),
        ("SCRAM users", kept.scram_users),
        ("delegation tokens", kept.tokens),
    ):
        if found:
            logger.info("%d %s are kept, but not used", len(found), what)


def load_logs(
    config_of: Callable[[str], TopicConfig],
    log_manager: LogManager,
    metadata: ClusterMetadata,
    now_ms: int,
    *,
    large_may_wait: bool = False,
) -> None:
    """Open every partition's log with its topic's configuration, and put strays aside.

    `large_may_wait`: logs that take long to recover wait until the broker serves. Not internal
    ones, which are replayed before that, and none that is on its way to another directory.
    """

    def may_wait(log: FoundLog) -> bool:
        return large_may_wait and not is_internal(log.topic) and not log_manager.is_moving(log.key)

    log_manager.load_logs(config_of, now_ms=now_ms, may_wait=may_wait)
    strays = [
        log.key for log in log_manager.logs() if not is_known(metadata, *log.key, log.topic_id)
    ]
    strays += [
        log.key
        for log in log_manager.waiting()
        if not is_known(metadata, *log.key, log_manager.topic_id_in(log.path))
    ]
    for topic, partition in strays:
        logger.warning("%s-%d belongs to no topic: it is put aside", topic, partition)
    log_manager.move_aside(strays, now_ms=now_ms)


def settle_moves(
    config: BrokerConfig,
    config_of: Callable[[str], TopicConfig],
    moves: LogMoves,
    metadata: ClusterMetadata,
    now_ms: int,
) -> None:
    """Decide on the logs that were on their way to another directory."""

    def known(name: str, index: int) -> KnownPartition | None:
        topic = metadata.topics.get(name)
        if topic is None or index not in topic.partitions:
            return None
        return KnownPartition(topic.id, topic.partitions[index].directory_of(config.node_id))

    moves.settle(known, config_of, now_ms)


def is_known(metadata: ClusterMetadata, name: str, partition: int, topic_id: bytes | None) -> bool:
    """Whether the metadata has the partition, of this very topic."""
    topic = metadata.topics.get(name)
    if topic is None or partition not in topic.partitions:
        return False
    return topic_id is None or topic_id == topic.id


def lead_logs(
    config: BrokerConfig, log_manager: LogManager, metadata: ClusterMetadata, now_ms: int
) -> None:
    """Make the logs that are missing, and tell each its leader epoch; not those that wait."""
    waiting = {log.key for log in log_manager.waiting()}
    for topic in metadata.topics.values():
        topic_config = config.stored_topic_config(metadata.configs.of_topic(topic.name))
        for partition in topic.partitions.values():
            if (topic.name, partition.index) not in waiting:
                lead_log(config, log_manager, topic, partition, topic_config, now_ms)


def lead_log(
    config: BrokerConfig,
    log_manager: LogManager,
    topic: Topic,
    partition: Partition,
    topic_config: TopicConfig,
    now_ms: int,
) -> None:
    """Make the log if it is missing, and tell it its leader epoch, if this node leads it.

    One that may lie in a directory that is offline is not made, and answers KAFKA_STORAGE_ERROR.
    """
    is_missing = log_manager.find(topic.name, partition.index) is None
    if partition.leader != config.node_id and not (is_missing and log_manager.offline):
        return
    try:
        log_manager.create(
            topic.name,
            partition.index,
            topic.id,
            topic_config,
            now_ms=now_ms,
            leader_epoch=partition.leader_epoch,
            directory_id=partition.directory_of(config.node_id),
            is_new=False,
        )
    except ApiError as error:
        logger.error("%s-%d is offline: %s", topic.name, partition.index, error.message)


def register_broker(
    config: BrokerConfig,
    controller: Controller,
    log_manager: LogManager,
    endpoints: Sequence[Endpoint],
    directories: Sequence[DataDirectory],
    now_ms: int,
) -> int:
    """Register the broker in the metadata log, lead its partitions in a new epoch, and sync.

    `directories` are those that are online. Returns the broker epoch.
    """
    broker_epoch = controller.register_broker(
        incarnation_id=random_uuid(),
        endpoints=endpoints,
        directories=[directory.directory_id for directory in directories],
        cordoned=cordoned_ids(config, log_manager),
        rack=config.broker_rack,
        now_ms=now_ms,
    )
    controller.take_over(
        clean_shutdown=had_clean_shutdown(directories),
        directory_of=directories_of(log_manager),
        any_offline=bool(log_manager.offline),
        now_ms=now_ms,
    )
    lead_logs(config, log_manager, controller.metadata, now_ms)
    controller.assign_directories(directories_of(log_manager), now_ms)
    controller.log.flush(now_ms)
    return broker_epoch


def directories_of(log_manager: LogManager) -> dict[tuple[str, int], bytes]:
    """The directory.id of the log of each partition that has one."""
    found = {log.key: log.directory.directory_id for log in log_manager.not_open()}
    return found | {
        log.key: log_manager.directory_of(log).directory_id for log in log_manager.logs()
    }


def cordoned_ids(config: BrokerConfig, log_manager: LogManager) -> list[bytes]:
    """The directory.id of each online directory that gets no new partitions."""
    cordoned = config.cordoned_directories
    return [one.directory_id for one in log_manager.homes if one.path in cordoned]


def had_clean_shutdown(directories: Iterable[DataDirectory]) -> bool:
    """Whether every directory was closed as it should be."""
    return all(directory.had_clean_shutdown for directory in directories)
