"""Opens metadata and logs at startup, and makes the logs agree with the metadata.

The metadata is the truth. A partition without a log gets one. A log that belongs to no topic is put
aside (its directory is renamed to `-stray`). Every log gets the leader epoch in which it is written
from now on. So an operation on both, like deleting a topic, is completed here after a crash.

Kafka: BrokerMetadataPublisher.initializeManagers, LogManager.isStrayReplica, Formatter.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.broker.common.effective_config import EffectiveConfig
from odradek.broker.disk.disk_executor import DiskExecutor
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
from odradek.coordinator.metadata.topic_settings import stored_config
from odradek.coordinator.metadata.topics import Partition, Topic
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.primitives import METADATA_TOPIC_ID, random_uuid
from odradek.storage.data_directory import DataDirectory, DirectoryError
from odradek.storage.directories.found_log import FoundLog
from odradek.storage.files import Files
from odradek.storage.log_manager import LogManager
from odradek.storage.moving.log_moves import KnownPartition, LogMoves
from odradek.storage.topic_names import is_internal
from odradek.storage.topic_partition import TopicPartition

from .preflight import REASONS_TO_REFUSE, RefusedToStartError

if TYPE_CHECKING:
    from odradek.broker.security.tls.tls_listeners import TlsListeners  # imported only if used

logger = logging.getLogger("odradek.startup")


def open_tls(
    effective_config: EffectiveConfig, disk: DiskExecutor, now_ms: Callable[[], int]
) -> TlsListeners | None:
    """The certificates of the TLS listeners, if there are any. Raises ConfigError."""
    config = effective_config.current
    if not any(listener.security_protocol.uses_tls for listener in config.open_listeners):
        return None
    # Imported here, because `cryptography` takes tens of milliseconds.
    from odradek.broker.security.tls.tls_listeners import TlsListeners

    tls = TlsListeners(config, disk, now_ms)
    effective_config.checks.append(tls.check_settings)
    effective_config.on_change.append(tls.update_config)
    return tls


def open_metadata(
    config: BrokerConfig,
    log_manager: LogManager,
    files: Files,
    now_ms: int,
    reading: MetadataReading | None,
) -> KraftLog:
    """Open the metadata log; format it if there is none yet.

    `reading` is what Preflight has read of the log. Raises RefusedToStartError, DirectoryError.
    """
    path = config.metadata_directory.absolute()
    online = {directory.path: directory for directory in log_manager.directories}
    if path not in online:
        reason = log_manager.offline[path]
        raise RefusedToStartError(f"the metadata directory {path} is offline: {reason}")
    this_member = QuorumMember(
        node_id=config.node_id,
        directory_id=online[path].directory_id,
        endpoint=controller_endpoint(config),
    )
    with metadata_on_disk(path):
        if not is_formatted(files, path):
            format_metadata(files, path, this_member, now_ms)
        log_config = metadata_log_config(config)
        log = log_manager.open_metadata_log(METADATA_TOPIC_ID, log_config, now_ms=now_ms)
        try:
            kraft_log = open_kraft_log(
                log,
                files,
                log_manager.cluster_id,
                this_member,
                now_ms=now_ms,
                default_min_insync_replicas=config.min_insync_replicas,
                reading=reading,
            )
        except REASONS_TO_REFUSE as error:
            raise RefusedToStartError(f"{log.directory}: {error}") from error
    log_unenforced_metadata(config, kraft_log.metadata)
    return kraft_log


@contextmanager
def metadata_on_disk(path: Path) -> Iterator[None]:
    """Raise DirectoryError if the disk fails or is full: the broker cannot start without it.

    Later, a full disk only refuses what has to be written.
    """
    try:
        yield
    except OSError as error:
        raise DirectoryError(f"the metadata directory {path} cannot be used: {error}") from error
    except ApiError as error:
        if error.code != ErrorCode.KAFKA_STORAGE_ERROR:
            raise
        raise DirectoryError(
            f"the metadata directory {path} cannot be used: {error.message}"
        ) from error


def metadata_log_config(config: BrokerConfig) -> TopicConfig:
    """The metadata log's configuration: its own broker keys, and Kafka's defaults for the rest.

    Retention is off: snapshot_keeping.py deletes old segments. Kafka: KafkaRaftLog.createLog.
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


def log_unenforced_metadata(config: BrokerConfig, metadata: ClusterMetadata) -> None:
    """Log the kinds of metadata that are kept for Apache Kafka but have no effect here."""
    acls = metadata.acls.by_id
    if acls and config.authorizer is None:
        logger.warning(
            "%d ACLs are kept and not enforced, because the configuration names no authorizer",
            len(acls),
        )
    tokens = metadata.delegation_tokens.by_id
    if tokens and not config.delegation_token_secret_key:
        logger.warning(
            "%d delegation tokens are kept and refused, because delegation.token.secret.key is not"
            " set",
            len(tokens),
        )


def load_logs(
    config: BrokerConfig,
    config_of: Callable[[str], TopicConfig],
    log_manager: LogManager,
    metadata: ClusterMetadata,
    now_ms: int,
    *,
    large_may_wait: bool = False,
) -> None:
    """Open every partition's log with its topic's configuration, and put stray logs aside.

    If a stray cannot be renamed, only its directory goes offline. It is not served in any case.

    With `large_may_wait`, logs that take long to recover are recovered while the broker serves.
    Logs of internal topics are not, because they are replayed first; nor are logs that are being
    moved to another directory.
    """

    def may_wait(log: FoundLog) -> bool:
        return large_may_wait and not is_internal(log.topic) and not log_manager.is_moving(log.key)

    def assigned(key: TopicPartition) -> bytes | None:
        known = known_partition(config, metadata, *key)
        return None if known is None else known.directory_id

    log_manager.load_logs(
        config_of,
        now_ms=now_ms,
        may_wait=may_wait,
        assigned=assigned,
        is_known=lambda key, topic_id: is_known(metadata, *key, topic_id),
    )
    strays = [
        log.key for log in log_manager.logs() if not is_known(metadata, *log.key, log.topic_id)
    ]
    strays += [
        log.key
        for log in log_manager.waiting()
        if not is_known(metadata, *log.key, log_manager.topic_id_in(log.path))
    ]
    for topic, partition in strays:
        logger.warning(
            "%s-%d belongs to no topic: its directory is renamed to -stray", topic, partition
        )
    try:
        log_manager.move_aside(strays)
    except ApiError as error:  # the others are served
        logger.error("%s", error.message)


def settle_moves(
    config: BrokerConfig,
    config_of: Callable[[str], TopicConfig],
    moves: LogMoves,
    metadata: ClusterMetadata,
    now_ms: int,
) -> None:
    """Continue, complete or drop each move between directories that a stop interrupted."""
    moves.handle_found_futures(partial(known_partition, config, metadata), config_of, now_ms)


def known_partition(
    config: BrokerConfig, metadata: ClusterMetadata, name: str, index: int
) -> KnownPartition | None:
    """What the metadata says of a partition; None if it does not know it."""
    topic = metadata.topics.get(name)
    if topic is None or index not in topic.partitions:
        return None
    return KnownPartition(topic.id, topic.partitions[index].directory_of(config.node_id))


def is_known(metadata: ClusterMetadata, name: str, partition: int, topic_id: bytes | None) -> bool:
    """Whether the metadata has the partition, in a topic of this id. The id None matches any id."""
    topic = metadata.topics.get(name)
    if topic is None or partition not in topic.partitions:
        return False
    return topic_id is None or topic_id == topic.id


def lead_logs(
    config: BrokerConfig, log_manager: LogManager, metadata: ClusterMetadata, now_ms: int
) -> None:
    """Create missing logs and set leader epochs, except for logs still to be recovered."""
    waiting = {log.key for log in log_manager.waiting()}
    for topic in metadata.topics.values():
        topic_config = stored_config(config, metadata.configs, topic.name)
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
    """Create the log if it is missing, and set its leader epoch, if this node leads it.

    A log that may exist in a directory that is offline, or not in log.dirs any more, is not
    created; it answers KAFKA_STORAGE_ERROR.
    """
    directory_id = partition.directory_of(config.node_id)
    is_missing = log_manager.find(topic.name, partition.index) is None
    is_offline = is_missing and log_manager.may_be_offline(directory_id)
    if partition.leader != config.node_id and not is_offline:
        return
    try:
        log_manager.create(
            topic.name,
            partition.index,
            topic.id,
            topic_config,
            now_ms=now_ms,
            leader_epoch=partition.leader_epoch,
            directory_id=directory_id,
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
) -> None:
    """Register the broker in the metadata log, lead its partitions in a new epoch, and sync.

    `directories` are those that are online. Raises DirectoryError.
    """
    with metadata_on_disk(config.metadata_directory.absolute()):
        controller.register_broker(
            incarnation_id=random_uuid(),
            endpoints=endpoints,
            directories=[directory.directory_id for directory in directories],
            cordoned=cordoned_ids(config, log_manager),
            rack=config.broker_rack,
            now_ms=now_ms,
        )
        controller.take_over(
            clean_shutdown=all(directory.had_clean_shutdown for directory in directories),
            directory_of=directories_of(log_manager),
            now_ms=now_ms,
        )
        lead_logs(config, log_manager, controller.metadata, now_ms)
        controller.assign_directories(directories_of(log_manager), now_ms)
        controller.log.flush(now_ms)


def directories_of(log_manager: LogManager) -> dict[TopicPartition, bytes]:
    """The directory.id of the log of each partition that has one."""
    not_open = {log.key: log.directory.directory_id for log in log_manager.not_open()}
    return not_open | {
        log.key: log_manager.directory_of(log).directory_id for log in log_manager.logs()
    }


def cordoned_ids(config: BrokerConfig, log_manager: LogManager) -> list[bytes]:
    """The directory.id of each online directory that gets no new partitions."""
    cordoned = config.cordoned_directories
    directories = log_manager.data_directories
    return [directory.directory_id for directory in directories if directory.path in cordoned]
