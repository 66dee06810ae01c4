"""The content of the three checkpoint files of each log directory, with an offset per log.

    recovery-point-offset-checkpoint    the offset before which the log is synced
    log-start-offset-checkpoint         the log start offset, if it is not that of the first file
    replication-offset-checkpoint       the high watermark

Logs that are not open keep their entries. Otherwise the next start would read the whole of a log
that this start could not open.
"""

import logging
from collections.abc import Callable
from functools import partial

from odradek.storage.checkpoints import CheckpointError, read_offsets
from odradek.storage.data_directory import DataDirectory
from odradek.storage.filenames import (
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
)
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.topic_partition import TopicPartition

from .checkpoint_files import CheckpointFiles
from .found_log import FoundLog
from .log_table import LogTable

_logger = logging.getLogger(__name__)

Offsets = dict[TopicPartition, int]


def read_checkpoint(files: Files, directory: DataDirectory, name: str) -> Offsets:
    """Read one of the files. A damaged one counts as empty. Raises OSError."""
    try:
        return read_offsets(files, directory.path / name)
    except CheckpointError as error:
        _logger.warning("ignoring a checkpoint: %s", error)
        return {}


class OffsetCheckpoints:
    """Writes the files, on any thread. All methods raise OSError."""

    def __init__(self, files: CheckpointFiles, table: LogTable) -> None:
        self._files = files
        self._table = table
        self._contents = {
            RECOVERY_POINT_CHECKPOINT: self._recovery_points,
            LOG_START_OFFSET_CHECKPOINT: self._log_starts,
            REPLICATION_OFFSET_CHECKPOINT: self._high_watermarks,
        }

    def write_all(self, directory: DataDirectory) -> None:
        """Write all three files, also if one fails. Raises the first error."""
        errors = []
        for name in self._contents:
            try:
                self.write(directory, name)
            except OSError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def write(self, directory: DataDirectory, name: str) -> None:
        """Write the file of that name."""
        self._files.write(directory.path / name, lambda: self._contents[name](directory))

    def drop_former(self, directory: DataDirectory, key: TopicPartition) -> None:
        """Remove from the files what they may have of a deleted log of that name.

        Its deletion may have been killed, or may not have been able to write them. With the offsets
        of the old log, a start after a kill would cut the new one. The high watermark is not read.
        """
        for name in (RECOVERY_POINT_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT):
            content = partial(self._contents[name], directory)
            self._files.drop(directory.path / name, key, content)

    # --- the content

    def _of_logs_not_open(
        self, directory: DataDirectory, offset: Callable[[FoundLog], int | None]
    ) -> Offsets:
        """The offsets that the files had for the logs that are not open."""
        known = ((log.key, offset(log)) for log in self._table.not_open_in(directory))
        return {key: each for key, each in known if each is not None}

    def _recovery_points(self, directory: DataDirectory) -> Offsets:
        """Includes logs that are being moved here: their copied part is synced."""
        offsets = self._of_logs_not_open(directory, lambda log: log.recovery_point)
        for key, log in self._table.partitions_in(directory).items():
            offsets[key] = log.recovery_point
        for future in self._table.futures_in(directory):
            offsets[future.key] = future.end_offset
        return offsets

    def _log_starts(self, directory: DataDirectory) -> Offsets:
        offsets = self._of_logs_not_open(directory, lambda log: log.log_start_offset)
        for key, log in self._table.partitions_in(directory).items():
            if _starts_inside(log):
                offsets[key] = log.log_start_offset
        for future in self._table.futures_in(directory):
            if _starts_inside(future.log):
                offsets[future.key] = future.log.log_start_offset
        return offsets

    def _high_watermarks(self, directory: DataDirectory) -> Offsets:
        offsets = self._of_logs_not_open(directory, lambda log: log.high_watermark)
        for key, log in self._table.partitions_in(directory).items():
            offsets[key] = log.high_watermark
        return offsets


def _starts_inside(log: PartitionLog) -> bool:
    """Whether the first segment has records before the log start offset."""
    return log.log_start_offset > log.first_file_offset
