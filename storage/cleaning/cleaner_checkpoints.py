"""The offset up to which each log is clean: the cleaner-offset-checkpoint of every log directory.

A file holds the logs of its directory. In memory there is one offset per log, whatever its
directory: so the offset follows a log that moves, and the next write updates both files. The entry
of a deleted log is removed, from the file too, before a new log of the same name could be taken for
a clean one. An entry after the log's end (a crash lost the end) is ignored: new records at those
offsets were never cleaned. Entries of logs that are not open yet are kept.

Kafka: LogCleanerManager.allCleanerCheckpoints, updateCheckpoints, alterCheckpointDir,
maybeTruncateCheckpoint.
"""

import logging
from collections.abc import Callable, Mapping

from odradek.storage.checkpoints import CheckpointError, read_offsets
from odradek.storage.data_directory import DataDirectory
from odradek.storage.filenames import CLEANER_OFFSET_CHECKPOINT
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager
from odradek.storage.topic_partition import TopicPartition

_logger = logging.getLogger(__name__)

Offsets = Mapping[TopicPartition, int]


def _no_step() -> None:
    """The step of a caller that may wait."""


class CleanerCheckpoints:
    """Reads the files when created. `save` may run on any thread, all else on the broker's."""

    def __init__(self, manager: LogManager, files: Files) -> None:
        """A file that is damaged or cannot be read counts as empty."""
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
            _logger.warning("all logs of the directory count as dirty: %s", error)
            return {}

    def _adopt(self, directory: DataDirectory, key: TopicPartition, offset: int) -> None:
        """Take the entry of a log from a directory's file.

        If several files have one, that of the directory where the log is holds. The log may have
        been moved there before its entry was.
        """
        home = self._manager.home_of(key)
        if home is directory or (home is not None and key not in self._offsets):
            self._offsets[key] = offset
            log = self._manager.find(*key)
            if log is not None:
                self.check(log)

    def check(self, log: PartitionLog) -> None:
        """Drop the entry of an opened log if it is after the log's end."""
        offset = self._offsets.get(log.key, 0)
        if offset > log.log_end_offset:
            text = "%s: the cleaner's checkpoint %d is after the end, %d; the log counts as dirty"
            _logger.warning(text, log.name, offset, log.log_end_offset)
            del self._offsets[log.key]

    def get(self, key: TopicPartition) -> int | None:
        """The first dirty offset, or None if the log was never cleaned."""
        return self._offsets.get(key)

    def put(self, key: TopicPartition, offset: int) -> None:
        """Record that the log is clean up to `offset`."""
        self._offsets[key] = offset

    def truncate(self, key: TopicPartition, offset: int) -> None:
        """Record that the log ends there now: what is appended is dirty."""
        if self._offsets.get(key, offset) > offset:
            self._offsets[key] = offset

    def drop_deleted(self, step: Callable[[], object] = _no_step) -> None:
        """Drop the entries of logs that no longer exist. Entries may change in a step."""
        for key in list(self._offsets):
            step()
            if self._manager.home_of(key) is None:
                self._offsets.pop(key, None)

    def unsaved(self, step: Callable[[], object] = _no_step) -> list[tuple[DataDirectory, Offsets]]:
        """List the directories whose files are out of date, with the new content, for `save`.

        Entries may change in a step. A change that is not in the content needs another call.
        """
        wanted: dict[DataDirectory, dict[TopicPartition, int]] = {
            directory: {} for directory in self._manager.directories
        }
        for key in list(self._offsets):
            step()
            home, offset = self._manager.home_of(key), self._offsets.get(key)
            if home in wanted and offset is not None:
                wanted[home][key] = offset
        return [pair for pair in wanted.items() if pair[1] != self._saved.get(pair[0], {})]

    def save(self, directory: DataDirectory, offsets: Offsets) -> None:
        """Write and sync one file. One call at a time. Raises OSError."""
        path = directory.path / CLEANER_OFFSET_CHECKPOINT
        self._manager.checkpoint_files.write(path, lambda: offsets)
        self._saved[directory] = offsets
