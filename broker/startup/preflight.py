"""Read-only checks of the data directories before startup changes them.

Startup is refused if the data cannot be read or must not be served by this broker: replicas of
other brokers, other voters, a newer metadata.version, tiered storage, a metadata log in the wrong
directory, partitions without a metadata log. The caller has locked the directories and verified
that they belong to this node. The content of the metadata log is kept in `reading`, so that startup
reads it once.

Kafka: KafkaRaftServer.initializeLogDirs, MetaPropertiesEnsemble.verify. Kafka does not refuse
partitions without a metadata log: with static voters it starts an empty cluster, and renames all
partitions to `-stray`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.metadata_format import (
    controller_endpoint,
    is_formatted,
    metadata_log_directory,
)
from odradek.coordinator.metadata.metadata_reading import (
    MetadataReading,
    check_reading,
    read_metadata,
)
from odradek.coordinator.metadata.quorum import NotSoleVoterError, QuorumMember
from odradek.coordinator.metadata.quorum_state import QuorumStateError
from odradek.coordinator.metadata.servability import UnsupportedMetadataError
from odradek.coordinator.runtime.record_codec import CorruptJournalError
from odradek.protocol.primitives import ZERO_UUID
from odradek.storage.checkpoints import MetaProperties
from odradek.storage.data_directory import DirectoryError
from odradek.storage.filenames import (
    CLEAN_SHUTDOWN,
    DirectoryState,
    is_foreign_directory,
    parse_partition_directory,
)
from odradek.storage.files import Files
from odradek.storage.topic_names import CLUSTER_METADATA_TOPIC

logger = logging.getLogger("odradek.startup")

TIERED_STORAGE = "remote.log.storage.system.enable"
# Errors which mean that this node must not, or cannot, lead the metadata log.
REASONS_TO_REFUSE = (
    NotSoleVoterError,
    UnsupportedMetadataError,
    CorruptJournalError,
    QuorumStateError,
)


class RefusedToStartError(Exception):
    """The broker must not, or cannot, serve the data. The message is one line for the user."""


class Preflight:
    """Checks the data directories at startup.

    `reading` is the content of the metadata log. It is None if there is no log yet, or if the log
    cannot be read.
    """

    def __init__(self, config: BrokerConfig, files: Files) -> None:
        self.reading: MetadataReading | None = None
        self._config = config
        self._files = files
        self._metadata_directory = config.metadata_directory.absolute()

    def check(self, meta_properties: Mapping[Path, MetaProperties | None]) -> None:
        """Check the locked directories. Raises RefusedToStartError, DirectoryError.

        `meta_properties` has the content of each directory's meta.properties, by the directory's
        path. It is None for an empty directory.
        """
        self._check_metadata_log_location(meta_properties)
        if self._config.texts.get(TIERED_STORAGE, "").strip().lower() == "true":
            raise RefusedToStartError(f"{TIERED_STORAGE}=true: tiered storage is not supported")
        if self._metadata_directory not in meta_properties:
            return  # it is offline, and startup says why
        properties = meta_properties[self._metadata_directory]
        if properties is None or not self._is_formatted():
            self._check_no_partitions(meta_properties)
            return
        log_directory = metadata_log_directory(self._metadata_directory)
        try:
            self.reading = self._read(log_directory, properties)
        except OSError as error:
            # Opening the directory will take it offline, with a message that says more.
            logger.warning("the metadata log cannot be read: %s", error)
        except REASONS_TO_REFUSE as error:
            raise RefusedToStartError(f"{log_directory}: {error}") from error
        if self.reading is not None and not self.reading.metadata.is_bootstrapped:
            self._check_no_partitions(meta_properties)

    def _is_formatted(self) -> bool:
        try:
            return is_formatted(self._files, self._metadata_directory)
        except OSError as error:
            # Never taken for an empty one, in which a new cluster begins.
            raise DirectoryError(
                f"the metadata directory {self._metadata_directory} cannot be used: {error}"
            ) from error

    def _check_no_partitions(self, data_directories: Iterable[Path]) -> None:
        """Refuse to begin a cluster beside partitions of one whose metadata log is missing."""
        for path in data_directories:
            partitions = partitions_in(self._files, path)
            if partitions:
                named = ", ".join([*partitions[:3], *(["…"] if len(partitions) > 3 else [])])
                raise RefusedToStartError(
                    f"{path} holds partitions ({named}), and there is no metadata log that knows "
                    f"them in {self._metadata_directory}: name the directory that has "
                    f"{CLUSTER_METADATA_TOPIC}-0 in log.dirs (or in metadata.log.dir), or move the "
                    "partitions away to begin a new cluster"
                )

    def _check_metadata_log_location(self, data_directories: Iterable[Path]) -> None:
        for path in data_directories:
            log_directory = metadata_log_directory(path)
            if path != self._metadata_directory and self._is_directory(log_directory):
                raise RefusedToStartError(
                    f"the metadata log is in {log_directory}, not in the configured metadata "
                    f"directory {self._metadata_directory} (metadata.log.dir, or else the first of "
                    "log.dirs)"
                )

    def _is_directory(self, path: Path) -> bool:
        try:
            return self._files.is_directory(path)
        except OSError as error:
            logger.warning("%s cannot be read: %s", path, error)
            return False

    def _read(self, log_directory: Path, properties: MetaProperties) -> MetadataReading:
        this_member = QuorumMember(
            node_id=self._config.node_id,
            directory_id=properties.directory_id or ZERO_UUID,
            endpoint=controller_endpoint(self._config),
        )
        reading = read_metadata(
            self._files,
            log_directory,
            properties.cluster_id,
            allow_torn_end=not self._files.exists(self._metadata_directory / CLEAN_SHUTDOWN),
        )
        check_reading(reading, this_member)
        return reading


def partitions_in(files: Files, data_directory: Path) -> list[str]:
    """The names of the partitions' directories in a data directory, without strays and deleted."""
    try:
        names = files.list_directory(data_directory)
        return sorted(name for name in names if _is_partition(files, data_directory / name))
    except OSError as error:
        logger.warning("%s cannot be read: %s", data_directory, error)
        return []


def _is_partition(files: Files, path: Path) -> bool:
    if is_foreign_directory(path.name) or not files.is_directory(path):
        return False
    try:
        name = parse_partition_directory(path.name)
    except ValueError:
        return False
    is_kept = name.state in (DirectoryState.LIVE, DirectoryState.FUTURE)
    return is_kept and name.topic != CLUSTER_METADATA_TOPIC
