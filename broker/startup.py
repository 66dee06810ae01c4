"""From data directories to logs and metadata that agree with each other.

The metadata is the truth: a partition without a log gets one, a log that no topic owns is put aside
(`-stray`), and every log learns the leader epoch it is written in from now on. What spans two
journals, like deleting a topic, is repaired here after a crash.

Kafka: BrokerMetadataPublisher.initializeManagers, LogManager.isStrayReplica, Formatter.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..config.topic_config import TopicConfig
from ..coordinator.journal import CorruptJournalError
from ..coordinator.kraft_log import KraftLog, UnservableMetadataError, open_kraft_log
from ..coordinator.metadata_format import controller_endpoint, format_metadata, is_formatted
from ..coordinator.quorum import NotAloneError, QuorumMember
from ..coordinator.quorum_state import QuorumStateError
from ..protocol.errors import ApiError
from ..protocol.primitives import METADATA_TOPIC_ID
from ..storage.data_directory import DataDirectory

if TYPE_CHECKING:
    from ..config.broker_config import BrokerConfig
    from ..coordinator.cluster_metadata import ClusterMetadata
    from ..storage.files import Files
    from ..storage.log_manager import LogManager

logger = logging.getLogger("odradek.startup")

# Kafka: MetadataLogConfig and KafkaRaftClient.MAX_BATCH_SIZE_BYTES.
METADATA_LOG_SETTINGS = {
    "max.message.bytes": str(8 * 1024 * 1024),
    "retention.ms": "-1",
    "retention.bytes": "-1",
}


class RefusedToStartError(Exception):
    """The data asks for what this broker must not or cannot do; one line for the user."""


def open_metadata(
    config: BrokerConfig,
    log_manager: LogManager,
    files: Files,
    now_ms: int,
) -> tuple[KraftLog, DataDirectory]:
    """The metadata log and its directory; formatted where there is none yet.

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
    log_config = config.stored_topic_config(METADATA_LOG_SETTINGS)
    log = log_manager.open_metadata_log(METADATA_TOPIC_ID, log_config, now_ms=now_ms)
    try:
        kraft_log = open_kraft_log(
            log,
            files,
            log_manager.cluster_id,
            me,
            now_ms=now_ms,
            default_min_insync_replicas=config.min_insync_replicas,
        )
    except (
        NotAloneError,
        UnservableMetadataError,
        CorruptJournalError,
        QuorumStateError,
    ) as error:
        raise RefusedToStartError(f"{log.directory}: {error}") from error
    return kraft_log, home


def load_logs(
    config: BrokerConfig, log_manager: LogManager, metadata: ClusterMetadata, now_ms: int
) -> None:
    """Open every partition's log with its topic's configuration, and put strays aside."""

    def config_of(topic: str) -> TopicConfig:
        return config.stored_topic_config(metadata.configs.of_topic(topic))

    log_manager.load_logs(config_of, now_ms=now_ms)
    strays = [
        (log.topic, log.partition)
        for log in log_manager.logs()
        if not is_known(metadata, log.topic, log.partition, log.topic_id)
    ]
    for topic, partition in strays:
        logger.warning("%s-%d belongs to no topic: it is put aside", topic, partition)
    log_manager.move_aside(strays, now_ms=now_ms)


def is_known(metadata: ClusterMetadata, name: str, partition: int, topic_id: bytes | None) -> bool:
    """Whether the metadata has the partition, of this very topic."""
    topic = metadata.topics.get(name)
    if topic is None or partition not in topic.partitions:
        return False
    return topic_id is None or topic_id == topic.id


def lead_logs(
    config: BrokerConfig, log_manager: LogManager, metadata: ClusterMetadata, now_ms: int
) -> None:
    """Make the logs that are missing, and tell each its leader epoch."""
    for topic in metadata.topics.values():
        topic_config = config.stored_topic_config(metadata.configs.of_topic(topic.name))
        for partition in topic.partitions.values():
            if partition.leader != config.node_id:
                continue
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


def directories_of(log_manager: LogManager) -> dict[tuple[str, int], bytes]:
    """The directory.id of the log of each partition that has one."""
    return {
        (log.topic, log.partition): log_manager.directory_of(log).directory_id
        for log in log_manager.logs()
    }


def had_clean_shutdown(directories: Iterable[DataDirectory]) -> bool:
    """Whether every directory was closed as it should be."""
    return all(directory.had_clean_shutdown for directory in directories)
