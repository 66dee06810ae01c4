"""Creates the logs of new partitions: the files on any thread, then the entries in the table."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from odradek.config.topic_config import TopicConfig
from odradek.protocol.batch_header import CorruptRecordError
from odradek.protocol.errors import ApiError
from odradek.storage.data_directory import DataDirectory
from odradek.storage.filenames import partition_directory
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.topic_partition import TopicPartition

from .log_opening import LogOpening
from .offset_checkpoints import OffsetCheckpoints


class NewLog(NamedTuple):
    """A partition to create a log for. `directory_id`: its directory, if that one is online."""

    topic: str
    partition: int
    topic_id: bytes
    config: TopicConfig
    leader_epoch: int = 0
    directory_id: bytes | None = None

    @property
    def key(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class CreatedLog(NamedTuple):
    """A log that was created in the log directory `home`, or the error."""

    new: NewLog
    home: DataDirectory
    log: PartitionLog | OSError | CorruptRecordError | ApiError


class LogCreation:
    """Creates logs. Call `run` on any thread, then `finish` on the broker's."""

    def __init__(
        self,
        files: Files,
        opening: LogOpening,
        checkpoints: OffsetCheckpoints,
        wanted: Sequence[tuple[NewLog, DataDirectory]],
        now_ms: int,
        record_result: Callable[[CreatedLog], None],
    ) -> None:
        """`finish` calls `record_result` with each log."""
        self._files = files
        self._opening = opening
        self._checkpoints = checkpoints
        self._wanted = wanted
        self._now_ms = now_ms
        self._record_result = record_result
        self._created: list[CreatedLog] = []

    def run(self) -> None:
        """Create all logs. An error of one does not stop the others."""
        for new, home in self._wanted:
            log: PartitionLog | OSError | CorruptRecordError | ApiError
            try:
                self._checkpoints.drop_former(home, new.key)
                log = self._create(new, home)
            except (OSError, CorruptRecordError, ApiError) as error:
                log = error
            self._created.append(CreatedLog(new, home, log))

    def _create(self, new: NewLog, home: DataDirectory) -> PartitionLog:
        """Create a log. After a disk error nothing of it is left, as far as possible.

        What is left would be taken for the log of a topic that is created later.
        """
        path = home.path / partition_directory(*new.key)
        existed = self._files.is_directory(path)
        try:
            return self._open(new, home)
        except OSError:
            if not existed:
                with suppress(OSError):
                    self._files.remove_tree(path)
            raise

    def _open(self, new: NewLog, home: DataDirectory) -> PartitionLog:
        log = self._opening.open_new(home, new.key, new.config, self._now_ms)
        try:
            log.assign_topic_id(new.topic_id)
            log.become_leader(max(new.leader_epoch, log.leader_epoch))
        except ApiError as error:
            if isinstance(error.__cause__, OSError):
                raise error.__cause__ from error
            raise  # the directory holds the log of another topic
        return log

    def finish(self, sliced: Callable[[Iterable[CreatedLog]], Iterable[CreatedLog]] = iter) -> None:
        """Serve the created logs. Requests for the others get the error.

        `sliced` iterates over the logs, and may give way in between.
        """
        for created in sliced(self._created):
            self._record_result(created)
