"""The three files of each log directory that say an offset of every log in it. Kafka:
OffsetCheckpointFile.

    recovery-point-offset-checkpoint    up to where it is synced
    log-start-offset-checkpoint         where it begins, if that is not where its files do
    replication-offset-checkpoint       its high watermark

Logs that are not open keep what the files said of them, or the next start would read all of a log
that this one could not get to. A file that would not change is not written.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from threading import Lock

from odradek.storage.checkpoints import CheckpointError, TopicPartition, read_offsets, write_offsets
from odradek.storage.filenames import (
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
)
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog

from .data_directory import DataDirectory
from .found_log import FoundLog
from .log_table import LogTable

_logger = logging.getLogger(__name__)

Offsets = dict[TopicPartition, int]


def read_recovery_points(files: Files, directory: DataDirectory) -> Offsets:
    """Raises OSError, like its two neighbours; a file that is garbled counts as none."""
    return _read(files, directory.path / RECOVERY_POINT_CHECKPOINT)


def read_log_starts(files: Files, directory: DataDirectory) -> Offsets:
    """See the module."""
    return _read(files, directory.path / LOG_START_OFFSET_CHECKPOINT)


def read_high_watermarks(files: Files, directory: DataDirectory) -> Offsets:
    """See the module."""
    return _read(files, directory.path / REPLICATION_OFFSET_CHECKPOINT)


def _read(files: Files, path: Path) -> Offsets:
    try:
        return read_offsets(files, path)
    except CheckpointError as error:
        _logger.warning("beginning without %s", error)
        return {}


class OffsetCheckpoints:
    """Writes them, on any thread, each file by one at a time. All raise OSError.

    Whoever comes second looks at the logs when the first is done: so what stands there in the end
    is the newest, and no file is renamed away under another thread.
    """

    def __init__(self, files: Files, table: LogTable) -> None:
        self._files = files
        self._table = table
        self._written: dict[Path, Offsets] = {}  # as they are on disk
        self._turns: dict[Path, Lock] = {}

    def write_all(self, directory: DataDirectory) -> None:
        """All three."""
        self.write_recovery_points(directory)
        self.write_log_starts(directory)
        self.write_high_watermarks(directory)

    def write_recovery_points(self, directory: DataDirectory) -> None:
        """See the module."""
        self._write(directory, RECOVERY_POINT_CHECKPOINT, self._recovery_points)

    def write_log_starts(self, directory: DataDirectory) -> None:
        """See the module."""
        self._write(directory, LOG_START_OFFSET_CHECKPOINT, self._log_starts)

    def write_high_watermarks(self, directory: DataDirectory) -> None:
        """See the module."""
        self._write(directory, REPLICATION_OFFSET_CHECKPOINT, self._high_watermarks)

    def _write(
        self, directory: DataDirectory, name: str, look: Callable[[DataDirectory], Offsets]
    ) -> None:
        path = directory.path / name
        with self._turns.setdefault(path, Lock()):
            offsets = look(directory)
            if self._written.get(path) != offsets:
                write_offsets(self._files, path, offsets)
                self._written[path] = offsets

    # --- what the logs say

    def _as_found(
        self, directory: DataDirectory, offset: Callable[[FoundLog], int | None]
    ) -> Offsets:
        """What the files said of the logs that are not open."""
        said = ((log.key, offset(log)) for log in self._table.not_open_in(directory))
        return {key: each for key, each in said if each is not None}

    def _recovery_points(self, directory: DataDirectory) -> Offsets:
        """What of a log on its way here was copied is also synced."""
        offsets = self._as_found(directory, lambda log: log.recovery_point)
        for log in self._table.partitions_in(directory):
            offsets[log.key] = log.recovery_point
        for future in self._table.futures_in(directory):
            offsets[future.key] = future.end_offset
        return offsets

    def _log_starts(self, directory: DataDirectory) -> Offsets:
        offsets = self._as_found(directory, lambda log: log.log_start_offset)
        for log in self._table.partitions_in(directory):
            if _begins_inside(log):
                offsets[log.key] = log.log_start_offset
        for future in self._table.futures_in(directory):
            if _begins_inside(future.log):
                offsets[future.key] = future.log.log_start_offset
        return offsets

    def _high_watermarks(self, directory: DataDirectory) -> Offsets:
        offsets = self._as_found(directory, lambda log: log.high_watermark)
        for log in self._table.partitions_in(directory):
            offsets[log.key] = log.high_watermark
        return offsets


def _begins_inside(log: PartitionLog) -> bool:
    """Whether its first records count no more, though their segment is still there."""
    return log.log_start_offset > log.first_file_offset
