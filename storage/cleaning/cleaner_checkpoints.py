"""Up to where each log is clean: the cleaner-offset-checkpoint of every log directory, together.

A file speaks of the logs in its directory. In memory there is one offset per log, wherever that
lies: so it follows a log that moves, and both files say so when they are written the next time. The
entry of a log that is gone goes, from the file too, before a new log of the same name can be taken
for a clean one. An entry behind the log's end (the end was lost in a crash) counts for nothing:
records that come later at those offsets were never looked at. Entries of logs that are not open yet
are kept until they are.

Kafka: LogCleanerManager.allCleanerCheckpoints, updateCheckpoints, alterCheckpointDir.
"""

import logging
from collections.abc import Mapping

from odradek.storage.checkpoints import CheckpointError, TopicPartition, read_offsets, write_offsets
from odradek.storage.directories.data_directory import DataDirectory
from odradek.storage.filenames import CLEANER_OFFSET_CHECKPOINT
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager

_logger = logging.getLogger(__name__)

Offsets = Mapping[TopicPartition, int]


class CleanerCheckpoints:
    """Born with what the files say. `save` may run on any thread, all else on the broker's."""

    def __init__(self, manager: LogManager, files: Files) -> None:
        """A file that makes no sense, or cannot be read, says nothing."""
        self._manager = manager
        self._files = files
        self._saved = {directory: self._read(directory) for directory in manager.directories}
        self._offsets: dict[TopicPartition, int] = {}
        for directory, offsets in self._saved.items():
            for key, offset in offsets.items():
                self._adopt(directory, key, offset)

    def _read(self, directory: DataDirectory) -> Offsets:
        try:
            return read_offsets(self._files, directory.path / CLEANER_OFFSET_CHECKPOINT)
        except (CheckpointError, OSError) as error:
            _logger.warning("all logs there count as dirty: %s", error)
            return {}

    def _adopt(self, directory: DataDirectory, key: TopicPartition, offset: int) -> None:
        home = self._home_of(key)
        if home is directory or (home is not None and key not in self._offsets):
            self._offsets[key] = offset
            log = self._manager.find(*key)
            if log is not None:
                self.check(log)

    def _home_of(self, key: TopicPartition) -> DataDirectory | None:
        """Where the log lies, open or not; None: there is none."""
        log = self._manager.find(*key)
        if log is not None:
            return self._manager.directory_of(log)
        not_open = (found.directory for found in self._manager.not_open() if found.key == key)
        return next(not_open, None)

    def check(self, log: PartitionLog) -> None:
        """The log was opened: does its entry make sense?"""
        offset = self._offsets.get(log.key, 0)
        if offset > log.log_end_offset:
            text = "%s: the cleaner's checkpoint %d lies behind the end, %d; all counts as dirty"
            _logger.warning(text, log.name, offset, log.log_end_offset)
            del self._offsets[log.key]

    def get(self, key: TopicPartition) -> int | None:
        """Where the first dirty record is or will be; None: the log was never cleaned."""
        return self._offsets.get(key)

    def put(self, key: TopicPartition, offset: int) -> None:
        """The log is clean up to there."""
        self._offsets[key] = offset

    def drop_deleted(self) -> None:
        """Forget logs that there are no longer."""
        for key in [key for key in self._offsets if self._home_of(key) is None]:
            del self._offsets[key]

    def unsaved(self) -> list[tuple[DataDirectory, Offsets]]:
        """For `save`: the directories whose files say something else, and what they should say."""
        wanted: dict[DataDirectory, dict[TopicPartition, int]] = {
            directory: {} for directory in self._manager.directories
        }
        for key, offset in self._offsets.items():
            home = self._home_of(key)
            if home in wanted:
                wanted[home][key] = offset
        return [pair for pair in wanted.items() if pair[1] != self._saved.get(pair[0], {})]

    def save(self, directory: DataDirectory, offsets: Offsets) -> None:
        """Write one file, synced; not twice at a time. Raises OSError."""
        write_offsets(self._files, directory.path / CLEANER_OFFSET_CHECKPOINT, offsets)
        self._saved[directory] = offsets
