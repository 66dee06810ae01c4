"""Removes logs: their directories are renamed at once, and deleted later.

    TOPIC-PARTITION.UNIQUEID-delete    deleted after file.delete.delay.ms, or at the next start
    TOPIC-PARTITION.UNIQUEID-stray     kept: the metadata has no such partition

After the rename a log of the same name can be created. Kafka: LogManager.asyncDelete.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.primitives import random_uuid
from odradek.storage.data_directory import DataDirectory
from odradek.storage.deletions import Deletions
from odradek.storage.filenames import DirectoryState, renamed_directory
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.moving.future_log import FutureLog
from odradek.storage.topic_partition import TopicPartition

from .found_log import FoundLog
from .log_table import LogTable

_logger = logging.getLogger(__name__)


class _Rename(NamedTuple):
    """The rename of a log's directory, which is in `home`. `log` is set if the log is open."""

    home: DataDirectory
    source: Path
    target: Path
    state: DirectoryState
    log: PartitionLog | None = None


class LogRemoval:
    """The removal of logs that are no longer in the log table.

    Call `run` on any thread, then `finish` on the broker's. Before that no log of the same name may
    be created.
    """

    def __init__(
        self, files: Files, renames: Iterable[_Rename], remover: "LogRemover", delay_ms: int
    ) -> None:
        self._files = files
        self._renames = deque(renames)
        self._remover = remover
        self._delay_ms = delay_ms
        self._errors: dict[Path, OSError] = {}

    def run(self) -> None:
        """Rename the directories, and remove the logs from the checkpoints.

        Otherwise a new log of the same name would start with the offsets of the old one.
        """
        changed: dict[DataDirectory, None] = {}
        for rename in self._renames:
            self._remover.wait_for_opening(rename.source)
            try:
                self._files.rename(rename.source, rename.target)
            except OSError as error:
                self._errors[rename.source] = error
            else:
                changed[rename.home] = None
        for directory in changed:
            self._remover.write_checkpoints(directory)

    def finish(self, sliced: Callable[[Iterable[int]], Iterable[int]] = iter) -> None:
        """Schedule the deletions. Raises KAFKA_STORAGE_ERROR if a directory was not renamed.

        `sliced` iterates over a range, and may give way in between. The logs are freed one by one.
        """
        for _ in sliced(range(len(self._renames))):
            rename = self._renames.popleft()
            error = self._errors.get(rename.source)
            self._remover.record_result(rename, error, self._delay_ms)
        for source, error in self._errors.items():
            text = f"{source.name} could not be renamed for removal: {error}"
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, text)


class LogRemover:
    """Takes logs out of the log table. A renamed directory is added to `deletions` or `strays`.

    `failed` is called with every disk error, `abandoned` with every log that waited for a recovery
    that is no longer needed. `wait_for_opening` is called before a directory is renamed, on the
    thread that renames it, and returns when no other thread opens the log there.
    """

    def __init__(
        self,
        files: Files,
        table: LogTable,
        deletions: Deletions,
        *,
        write_checkpoints: Callable[[DataDirectory], None],
        failed: Callable[[DataDirectory, OSError], None],
        abandoned: Callable[[FoundLog], None],
        wait_for_opening: Callable[[Path], None],
    ) -> None:
        self.strays: list[Path] = []
        self.wait_for_opening = wait_for_opening
        self.write_checkpoints = write_checkpoints
        self._files = files
        self._table = table
        self._deletions = deletions
        self._failed = failed
        self._abandoned = abandoned

    def begin(
        self, keys: Iterable[TopicPartition], state: DirectoryState, delay_ms: int
    ) -> LogRemoval:
        """Take logs out of the table. Their directories get the suffix of `state`, DELETE or STRAY.

        The copy of a log that is being moved is deleted in both cases. Missing logs are ignored.
        """
        renames = []
        for key in keys:
            self._table.forget_reasons(key)
            future = self._cancel_move(key)
            if future is not None:
                target = _new_path(future.home, key, DirectoryState.DELETE)
                renames.append(_Rename(future.home, future.path, target, DirectoryState.DELETE))
            taken = self._take(key)
            if taken is not None:
                home, source, log = taken
                renames.append(_Rename(home, source, _new_path(home, key, state), state, log))
        return LogRemoval(self._files, renames, self, delay_ms)

    def put_aside(self, found: FoundLog) -> None:
        """Rename the directory of a log that is not in the table to `-stray`. Raises OSError."""
        target = _new_path(found.directory, found.key, DirectoryState.STRAY)
        _logger.warning("%s belongs to no topic: it is renamed to %s", found.path, target.name)
        self._files.rename(found.path, target)
        self.strays.append(target)

    def record_result(self, rename: _Rename, error: OSError | None, delay_ms: int) -> None:
        """Record that a directory was renamed, or the error."""
        if error is not None:
            rename.home.has_lost_log = True
            self._failed(rename.home, error)
            return
        if rename.log is not None:
            rename.log.move_to(rename.target)
        if rename.state is DirectoryState.DELETE:
            self._deletions.add([rename.target], delay_ms)
        else:
            self.strays.append(rename.target)

    def _take(self, key: TopicPartition) -> tuple[DataDirectory, Path, PartitionLog | None] | None:
        """Take a log out of the table: its log directory, its path, and the log if it is open.

        Returns None if there is no such log, or if it is not open and its directory is offline.
        """
        found = self._table.not_open.pop(key, None)
        if found is not None:
            self._abandoned(found)
        taken = self._table.take(key)
        if taken is not None:
            log, directory = taken
            path = log.directory
            log.take_offline("it was deleted")
            return directory, path, log
        if found is not None and found.directory.is_online:
            return found.directory, found.path, None
        return None

    def _cancel_move(self, key: TopicPartition) -> FutureLog | None:
        """Cancel the move of a log to another directory, if there is one; return the copy."""
        future = self._table.futures.pop(key, None)
        if future is not None:
            future.is_cancelled = True
        return future

    def drop_future(self, key: TopicPartition, delay_ms: int) -> None:
        """Cancel the move of a log and delete the copy. Does nothing if there is no move."""
        future = self._cancel_move(key)
        if future is not None:
            self.delete_directory(future.home, future.path, key, delay_ms)

    def delete_directory(
        self, home: DataDirectory, path: Path, key: TopicPartition, delay_ms: int
    ) -> Path:
        """Rename a log's directory to `-delete` and schedule its deletion. Returns its new path.

        An OSError is passed to `failed` and not raised. Then the old path is returned.
        """
        target = _new_path(home, key, DirectoryState.DELETE)
        try:
            self._files.rename(path, target)
        except OSError as error:
            self._failed(home, error)
            return path
        self._deletions.add([target], delay_ms)
        return target


def _new_path(home: DataDirectory, key: TopicPartition, state: DirectoryState) -> Path:
    return home.path / renamed_directory(*key, state, random_uuid().hex())
