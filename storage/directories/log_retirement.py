"""How logs leave: their directories are renamed, and what is deleted goes later.

    TOPIC-PARTITION.UNIQUEID-delete    removed after file.delete.delay.ms, or by the next start
    TOPIC-PARTITION.UNIQUEID-stray     kept: the metadata does not know it

A rename is quick and final: from then on a log of the same name can be made.
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


class Leaving(NamedTuple):
    """A log's directory, and the name it is to have."""

    home: DataDirectory
    source: Path
    target: Path
    state: DirectoryState
    log: PartitionLog | None = None


class Retirement:
    """Logs that are not in the table any more; their directories still have their names.

    `run` may be called on any thread, then `finish` on the broker's. Until then no log of the same
    name may be made.
    """

    def __init__(
        self,
        files: Files,
        leaving: Sequence[Leaving],
        write_checkpoints: Callable[[DataDirectory], None],
        settle: Callable[[Leaving, OSError | None], None],
    ) -> None:
        self._files = files
        self._leaving = leaving
        self._write_checkpoints = write_checkpoints
        self._settle = settle
        self._errors: dict[Path, OSError] = {}

    def run(self) -> None:
        """Rename them. The checkpoints forget them, too: a new log of the same name must not begin
        with the offsets of this one.
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
        """What was renamed goes later. Raises KAFKA_STORAGE_ERROR where one was not."""
        for one in self._leaving:
            self._settle(one, self._errors.get(one.source))
        for source, error in self._errors.items():
            text = f"{source.name} could not be deleted: {error}"
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, text)


class LogRetirement:
    """Takes logs out of the table; each that leaves goes to `deletions` or `strays`.

    `failed` is told of every error of a disk, `abandoned` of every log that waited for its
    recovery and needs none any more.
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
        """Let them go, to the state DELETE or STRAY. One that is not there is fine."""
        leaving = []
        for key in keys:
            self._table.forget_reasons(key)
            future = self._table.futures.pop(key, None)
            if future is not None:
                future.is_cancelled = True
                target = self._target(future.home, key, DirectoryState.DELETE)
                leaving.append(Leaving(future.home, future.path, target, DirectoryState.DELETE))
            lying = self._take(key)
            if lying is not None:
                home, path, log = lying
                leaving.append(Leaving(home, path, self._target(home, key, state), state, log))
        settle = partial(self._settle, due_ms)
        return Retirement(self._files, leaving, self._write_checkpoints, settle)

    def _settle(self, due_ms: int, one: Leaving, error: OSError | None) -> None:
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
        """Where it lies; and the log, if it was open. None: nowhere that we can reach."""
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
        """Do not move that log; what was copied goes. Nothing to drop is fine."""
        future = self._table.futures.pop(key, None)
        if future is None:
            return
        future.is_cancelled = True
        self.delete_directory(future.home, future.path, key, due_ms)

    def delete_directory(
        self, home: DataDirectory, path: Path, key: TopicPartition, due_ms: int
    ) -> Path:
        """Rename a log's directory to `-delete`, to go later; where it is then.

        An OSError is told of, and not raised.
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
