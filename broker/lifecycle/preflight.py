"""The look at a data directory before anything in it is written to.

What must not be served, or cannot be read, is refused here: other brokers' replicas, other voters,
a newer metadata.version, tiered storage, a metadata log in the wrong place. The directories are
locked by then and known to be this node's. What was read is kept, so that a start reads the
metadata once.

Kafka: KafkaRaftServer.initializeLogDirs, MetaPropertiesEnsemble.verify.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

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
from odradek.storage.filenames import CLEAN_SHUTDOWN

if TYPE_CHECKING:
    from odradek.config.broker_config import BrokerConfig
    from odradek.storage.checkpoints import MetaProperties
    from odradek.storage.files import Files

logger = logging.getLogger("odradek.startup")

TIERED_STORAGE = "remote.log.storage.system.enable"
# What makes a metadata log one that this node must not, or cannot, lead.
REASONS_TO_REFUSE = (
    NotSoleVoterError,
    UnservableMetadataError,
    CorruptJournalError,
    QuorumStateError,
)


class RefusedToStartError(Exception):
    """The data asks for what this broker must not or cannot do; one line for the user."""


class Survey:
    """Looks at the directories, once; `reading` is what the metadata log said, if there is one."""

    def __init__(self, config: BrokerConfig, files: Files) -> None:
        self.reading: MetadataReading | None = None
        self._config = config
        self._files = files

    def look(self, found: Mapping[Path, MetaProperties | None]) -> None:
        """The directories that could be locked, with their meta.properties (None: an empty one).

        Raises RefusedToStartError.
        """
        home = self._config.metadata_directory.absolute()
        self._check_places(found, home)
        if self._config.texts.get(TIERED_STORAGE, "").strip().lower() == "true":
            raise RefusedToStartError(f"{TIERED_STORAGE}=true: tiered storage is not served")
        meta = found.get(home)
        if meta is None or not is_formatted(self._files, home):
            return
        try:
            self.reading = self._read(home, meta)
        except OSError as error:
            # The directory goes offline when it is opened, and that says more.
            logger.warning("the metadata log cannot be read: %s", error)
        except REASONS_TO_REFUSE as error:
            raise RefusedToStartError(f"{metadata_log_directory(home)}: {error}") from error

    def _check_places(self, found: Mapping[Path, MetaProperties | None], home: Path) -> None:
        for path in found:
            stray = metadata_log_directory(path)
            if path != home and self._files.is_directory(stray):
                raise RefusedToStartError(
                    f"the metadata log lies in {stray}, but the configured metadata directory is "
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
