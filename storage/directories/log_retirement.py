"""How logs leave: their directories are renamed, and what is deleted goes later.

    TOPIC-PARTITION.UNIQUEID-delete    removed after file.delete.delay.ms, or by the next start
    TOPIC-PARTITION.UNIQUEID-stray     kept: the metadata does not know it

A rename is quick and final: from then on a log of the same name can be made.
Kafka: LogManager.asyncDelete.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

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
        failed: Callable[[DataDirectory, OSError], None],
        abandoned: Callable[[FoundLog], None],
    ) -> None:
        self.strays: list[Path] = []
        self._files = files
        self._table = table
        self._deletions = deletions
        self._failed = failed
        self._abandoned = abandoned

    def retire(
        self, keys: Iterable[TopicPartition], state: DirectoryState, due_ms: int
    ) -> tuple[list[DataDirectory], ApiError | None]:
        """Rename their directories to `state`, DELETE or STRAY. One that is not there is fine.

        Returns the directories that changed, and KAFKA_STORAGE_ERROR where one log could not be
        renamed: nobody may go on using the others.
        """
        touched, failure = [], None
        for key in keys:
            self._table.forget_reasons(key)
            self.drop_future(key, due_ms)
            lying = self._take(key)
            if lying is None:
                continue
            directory, path, log = lying
            try:
                target = self._rename(directory, path, key, state)
            except OSError as error:
                directory.has_unclosed_log = True
                self._failed(directory, error)
                text = f"{path.name} could not be deleted: {error}"
                failure = failure or ApiError(ErrorCode.KAFKA_STORAGE_ERROR, text)
                continue
            if log is not None:
                log.move_to(target)
            if state is DirectoryState.DELETE:
                self._deletions.add([target], due_ms)
            else:
                self.strays.append(target)
            touched.append(directory)
        return list(dict.fromkeys(touched)), failure

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
        try:
            target = self._rename(home, path, key, DirectoryState.DELETE)
        except OSError as error:
            self._failed(home, error)
            return path
        self._deletions.add([target], due_ms)
        return target

    def _rename(
        self, home: DataDirectory, path: Path, key: TopicPartition, state: DirectoryState
    ) -> Path:
        target = home.path / retired_directory(*key, state, random_uuid().hex())
        self._files.rename(path, target)
        return target
