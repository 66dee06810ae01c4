"""Removes logs: their directories are renamed at once, and deleted later.

    TOPIC-PARTITION.UNIQUEID-delete    deleted after file.delete.delay.ms, or at the next start
    TOPIC-PARTITION.UNIQUEID-stray     kept: the metadata has no such partition

After the quick rename a log of the same name can be created.
Kafka: LogManager.asyncDelete.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.primitives import random_uuid
from odradek.storage.checkpoints import TopicPartition
from odradek.storage.deletions import Deletions
from odradek.storage.filenames import DirectoryState, retired_directory
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog

from .data_directory import DataDirectory
from .found_log import FoundLog
from .log_table import LogTable


class RetiringLog(NamedTuple):
    """A log's directory and its new name."""

    home: DataDirectory
    source: Path
    target: Path
    state: DirectoryState
    log: PartitionLog | None = None


class Retirement:
    """Renames the directories of logs that were taken out of the table.

    Call `run` on any thread, then `finish` on the broker's. Before that no log of the same name may
    be created.
    """

    def __init__(
        self,
        files: Files,
        leaving: Sequence[RetiringLog],
        write_checkpoints: Callable[[DataDirectory], None],
        settle: Callable[[RetiringLog, OSError | None], None],
    ) -> None:
        self._files = files
        self._leaving = leaving
        self._write_checkpoints = write_checkpoints
        self._settle = settle
        self._errors: dict[Path, OSError] = {}

    def run(self) -> None:
        """Rename the directories, and remove the logs from the checkpoints: a new log of the same
        name must not start with their offsets.
        """
        touched = []
        for one in self._leaving:
            try:
                self._files.rename(one.source, one.target)
            except OSError as error:
                self._errors[one.source] = error
            else:
                touched.append(one.home)
        for home in dict.fromkeys(touched):
            self._write_checkpoints(home)

    def finish(self) -> None:
        """Schedule the deletions. Raises KAFKA_STORAGE_ERROR if a directory was not renamed."""
        for one in self._leaving:
            self._settle(one, self._errors.get(one.source))
        for source, error in self._errors.items():
            text = f"{source.name} could not be renamed for removal: {error}"
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, text)


class LogRetirement:
    """Takes logs out of the table. A renamed directory is added to `deletions` or `strays`.

    `failed` is called with every disk error, `abandoned` with every log that waited for a recovery
    that is no longer needed.
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
    ) -> None:
        self.strays: list[Path] = []
        self._files = files
        self._table = table
        self._deletions = deletions
        self._write_checkpoints = write_checkpoints
        self._failed = failed
        self._abandoned = abandoned

    def begin(
        self, keys: Iterable[TopicPartition], state: DirectoryState, due_ms: int
    ) -> Retirement:
        """Take logs out of the table, for the state DELETE or STRAY. Missing logs are ignored."""
        leaving = []
        for key in keys:
            self._table.forget_reasons(key)
            future = self._table.futures.pop(key, None)
            if future is not None:
                future.is_cancelled = True
                target = self._target(future.home, key, DirectoryState.DELETE)
                leaving.append(RetiringLog(future.home, future.path, target, DirectoryState.DELETE))
            taken = self._take(key)
            if taken is not None:
                home, path, log = taken
                leaving.append(RetiringLog(home, path, self._target(home, key, state), state, log))
        settle = partial(self._settle, due_ms)
        return Retirement(self._files, leaving, self._write_checkpoints, settle)

    def _settle(self, due_ms: int, one: RetiringLog, error: OSError | None) -> None:
        if error is not None:
            one.home.has_unclosed_log = True
            self._failed(one.home, error)
            return
        if one.log is not None:
            one.log.move_to(one.target)
        if one.state is DirectoryState.DELETE:
            self._deletions.add([one.target], due_ms)
        else:
            self.strays.append(one.target)

    def _take(self, key: TopicPartition) -> tuple[DataDirectory, Path, PartitionLog | None] | None:
        """Return the log's directories, and the log if it is open. None: not found or offline."""
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

    def drop_future(self, key: TopicPartition, due_ms: int) -> None:
        """Cancel the move of a log and delete the copy. Does nothing if there is no move."""
        future = self._table.futures.pop(key, None)
        if future is None:
            return
        future.is_cancelled = True
        self.delete_directory(future.home, future.path, key, due_ms)

    def delete_directory(
        self, home: DataDirectory, path: Path, key: TopicPartition, due_ms: int
    ) -> Path:
        """Rename a log's directory to `-delete` and schedule its deletion. Returns its new path.

        An OSError goes to `failed` and is not raised; the path is the old one then.
        """
        target = self._target(home, key, DirectoryState.DELETE)
        try:
            self._files.rename(path, target)
        except OSError as error:
            self._failed(home, error)
            return path
        self._deletions.add([target], due_ms)
        return target

    def _target(self, home: DataDirectory, key: TopicPartition, state: DirectoryState) -> Path:
        return home.path / retired_directory(*key, state, random_uuid().hex())
