"""Read-only checks of the data directories before startup changes them.

Startup is refused if the data cannot be read or must not be served by this broker: replicas of
other brokers, other voters, a newer metadata.version, tiered storage, a metadata log in the wrong
directory. The caller has locked the directories and verified that they belong to this node. The
content of the metadata log is kept in `reading`, so that startup reads it once.

Kafka: KafkaRaftServer.initializeLogDirs, MetaPropertiesEnsemble.verify.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.journal import CorruptJournalError
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
from odradek.coordinator.metadata.servability import UnservableMetadataError
from odradek.protocol.primitives import ZERO_UUID
from odradek.storage.checkpoints import MetaProperties
from odradek.storage.filenames import CLEAN_SHUTDOWN
from odradek.storage.files import Files

logger = logging.getLogger("odradek.startup")

TIERED_STORAGE = "remote.log.storage.system.enable"
# Errors which mean that this node must not, or cannot, lead the metadata log.
REASONS_TO_REFUSE = (
    NotSoleVoterError,
    UnservableMetadataError,
    CorruptJournalError,
    QuorumStateError,
)


class RefusedToStartError(Exception):
    """The broker must not, or cannot, serve the data. The message is one line for the user."""


class Preflight:
    """Checks the data directories at startup.

    `reading` is what the metadata log contains; None if there is none yet or it cannot be read.
    """

    def __init__(self, config: BrokerConfig, files: Files) -> None:
        self.reading: MetadataReading | None = None
        self._config = config
        self._files = files

    def check(self, found: Mapping[Path, MetaProperties | None]) -> None:
        """Check the locked directories. Raises RefusedToStartError.

        `found` holds their meta.properties by path; None for an empty directory.
        """
        home = self._config.metadata_directory.absolute()
        self._check_metadata_log_location(found, home)
        if self._config.texts.get(TIERED_STORAGE, "").strip().lower() == "true":
            raise RefusedToStartError(f"{TIERED_STORAGE}=true: tiered storage is not supported")
        meta = found.get(home)
        if meta is None or not is_formatted(self._files, home):
            return
        try:
            self.reading = self._read(home, meta)
        except OSError as error:
            # Opening the directory will take it offline, with a message that says more.
            logger.warning("the metadata log cannot be read: %s", error)
        except REASONS_TO_REFUSE as error:
            raise RefusedToStartError(f"{metadata_log_directory(home)}: {error}") from error

    def _check_metadata_log_location(
        self, found: Mapping[Path, MetaProperties | None], home: Path
    ) -> None:
        for path in found:
            stray = metadata_log_directory(path)
            if path != home and self._files.is_directory(stray):
                raise RefusedToStartError(
                    f"the metadata log is in {stray}, but the configured metadata directory is "
                    f"{home} (metadata.log.dir, or else the first of log.dirs)"
                )

    def _read(self, home: Path, meta: MetaProperties) -> MetadataReading:
        me = QuorumMember(
            node_id=self._config.node_id,
            directory_id=meta.directory_id or ZERO_UUID,
            endpoint=controller_endpoint(self._config),
        )
        reading = read_metadata(
            self._files,
            metadata_log_directory(home),
            meta.cluster_id,
            allow_torn_end=not self._files.exists(home / CLEAN_SHUTDOWN),
        )
        check_reading(reading, me)
        return reading
