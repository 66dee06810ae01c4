"""Stores the progress of a replay in files in the archive's directory, so that it can be resumed.

replays/JOB/job.json             what the job replays; it cannot change
replays/JOB/orders-0.json        the progress of one partition
replays/JOB/orders-0.lock        held by the task that replays the partition
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from odradek.pipeline.jobs import JobError
from odradek.pipeline.reading.partitions import TopicPartition
from odradek.storage.files import FileLock, Files, LockHeldError

from .delivered import Delivered
from .partition_producer import PartitionProducer
from .selection import Selection

Stored = TypeVar("Stored", bound=msgspec.Struct)


class ReplayTopic(msgspec.Struct, frozen=True, kw_only=True):
    """One topic of a job."""

    source: str
    target: str
    topic_id: str


class ReplayJob(msgspec.Struct, frozen=True, kw_only=True):
    """What a job replays."""

    topics: tuple[ReplayTopic, ...]
    selection: Selection


class PartitionProgress(msgspec.Struct, frozen=True, kw_only=True):
    """All records before `next_offset` (of the source) have been acknowledged.

    The target's records before `target_next` need not be read again. `target_first` and
    `target_last` are offsets of the job's first and last record; -1 if there is none yet.
    """

    next_offset: int = 0
    records: int = 0
    target_first: int = -1
    target_last: int = -1
    target_next: int = -1
    is_done: bool = False

    def with_more(self, more: Delivered | PartitionProducer) -> "PartitionProgress":
        """Return the progress after more records were acknowledged."""
        if not more.records:
            return self
        return msgspec.structs.replace(
            self,
            next_offset=more.next_offset,
            records=self.records + more.records,
            target_first=more.target_first if self.target_first < 0 else self.target_first,
            target_last=more.target_last,
            target_next=more.target_last + 1,
        )


@dataclass(frozen=True, slots=True)
class ProgressFiles:
    """The files of one job."""

    directory: Path
    files: Files

    def begin(self, job: ReplayJob) -> None:
        """Create the job's file. Raises JobError if the job exists and replays something else."""
        self.files.make_directory(self.directory)
        path = self.directory / "job.json"
        known = self._read(path, ReplayJob)
        if known is None:
            self.files.atomic_write(path, msgspec.json.encode(job))
        elif known != job:
            raise JobError(
                f"the job {self.directory.name} was started with other topics or another range "
                f"({path}): use the same again, or another job id"
            )

    def read(self, partition: TopicPartition) -> PartitionProgress:
        """Return the progress of a partition."""
        return self._read(self._path(partition), PartitionProgress) or PartitionProgress()

    def write(self, partition: TopicPartition, progress: PartitionProgress) -> None:
        """Store the progress of a partition. Raises OSError."""
        self.files.atomic_write(self._path(partition), msgspec.json.encode(progress))

    def lock(self, partition: TopicPartition) -> FileLock:
        """Lock a partition. Raises JobError if another task holds the lock."""
        try:
            return self.files.lock(self._path(partition).with_suffix(".lock"))
        except LockHeldError as error:
            raise JobError(f"{partition} is being replayed by another process: {error}") from error

    def _path(self, partition: TopicPartition) -> Path:
        return self.directory / f"{partition}.json"

    def _read(self, path: Path, kind: type[Stored]) -> Stored | None:
        try:
            return msgspec.json.decode(self.files.read(path), type=kind)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError as error:
            raise JobError(f"cannot read {path}: {error}") from error
