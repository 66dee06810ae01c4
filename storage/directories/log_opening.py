"""Opens a PartitionLog from its directory, the broker's settings and the checkpoints.

One method for each kind of log: a new one, one found at start, one that was moved here, and the
metadata log.
"""

import logging
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from odradek.config.broker_config import BrokerConfig
from odradek.config.topic_config import TopicConfig
from odradek.storage.checkpoints import CheckpointError, read_topic_id
from odradek.storage.data_directory import DataDirectory
from odradek.storage.deletions import Deletions
from odradek.storage.filenames import (
    LOG_START_OFFSET_CHECKPOINT,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    partition_directory,
)
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.recovering.log_source import LogSource
from odradek.storage.recovering.producer_recovery import RecentBatches
from odradek.storage.recovering.task import RecoveryTask
from odradek.storage.topic_names import CLUSTER_METADATA_TOPIC
from odradek.storage.topic_partition import TopicPartition

from .found_log import FoundLog
from .offset_checkpoints import read_checkpoint

_logger = logging.getLogger(__name__)


class LogOpening:
    """Opens logs. The methods that open one raise OSError and CorruptRecordError."""

    def __init__(
        self,
        config: BrokerConfig,
        files: Files,
        deletions: Deletions,
        report: Callable[[str], None],
    ) -> None:
        """`config` may be replaced. `report` gets a line for every recovered log."""
        self.config = config
        self._files = files
        self._deletions = deletions
        self._report = report

    def open_new(
        self, directory: DataDirectory, key: TopicPartition, config: TopicConfig, now_ms: int
    ) -> PartitionLog:
        """Create a new log."""
        path = directory.path / partition_directory(*key)
        source = self._source(directory, path, config, now_ms)
        return self._open(replace(source, had_clean_shutdown=True), key)

    def open_metadata_log(
        self, directory: DataDirectory, config: TopicConfig, now_ms: int
    ) -> PartitionLog:
        """Open the metadata log, which is in no checkpoint; create it if it does not exist."""
        key = TopicPartition(CLUSTER_METADATA_TOPIC, 0)
        path = directory.path / partition_directory(*key)
        source = replace(self._source(directory, path, config, now_ms), is_whole=True)
        return self._open(source, key)

    def open_found(
        self,
        found: FoundLog,
        config: TopicConfig,
        now_ms: int,
        recovered: RecentBatches | None = None,
    ) -> PartitionLog:
        """Open a log found at start. `recovered`: set if another process has recovered it."""
        source = replace(
            self._source(found.directory, found.path, config, now_ms),
            recovery_point=found.recovery_point or 0,
            log_start_offset=found.log_start_offset or 0,
            recovered=recovered,
        )
        return self._open(source, found.key)

    def open_future(
        self,
        directory: DataDirectory,
        path: Path,
        key: TopicPartition,
        config: TopicConfig,
        now_ms: int,
    ) -> PartitionLog:
        """Open the log in a `-future` directory; recover it if necessary."""
        recovery_points, log_starts = (
            read_checkpoint(self._files, directory, name)
            for name in (RECOVERY_POINT_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT)
        )
        source = replace(
            self._source(directory, path, config, now_ms),
            recovery_point=recovery_points.get(key, 0),
            log_start_offset=log_starts.get(key, 0),
        )
        return self._open(source, key)

    def task_of(self, found: FoundLog, config: TopicConfig, now_ms: int) -> RecoveryTask:
        """Make the task for the process that recovers the log."""
        return RecoveryTask(
            directory=found.path,
            config=config,
            recovery_point=found.recovery_point or 0,
            log_start_offset=found.log_start_offset or 0,
            producer_id_expiration_ms=self.config.producer_id_expiration_ms,
            now_ms=now_ms,
        )

    def topic_id_in(self, path: Path) -> bytes | None:
        """Read the topic id in partition.metadata; None if the file is missing or damaged."""
        try:
            return read_topic_id(self._files, path / PARTITION_METADATA)
        except CheckpointError as error:
            _logger.warning("the topic id is unknown: %s", error)
            return None

    def _source(
        self, directory: DataDirectory, path: Path, config: TopicConfig, now_ms: int
    ) -> LogSource:
        """Describe a log that is in no checkpoint."""
        return LogSource(
            files=self._files,
            directory=path,
            config=config,
            now_ms=now_ms,
            had_clean_shutdown=directory.had_clean_shutdown,
            recovery_point=0,
            log_start_offset=0,
            producer_id_expiration_ms=self.config.producer_id_expiration_ms,
            deletions=self._deletions,
            report=self._report,
        )

    def _open(self, source: LogSource, key: TopicPartition) -> PartitionLog:
        return PartitionLog.open(
            source,
            *key,
            self.topic_id_in(source.directory),
            validate_records=self.config.odradek_validate_records == "full",
        )
