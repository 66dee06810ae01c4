"""How far a replay has got, noted in files beside the archive, so that it can go on.

replays/JOB/job.json             what the job is about: it cannot become another one
replays/JOB/orders-0.json        one partition
replays/JOB/orders-0.lock        held by the task that replays it
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from odradek.pipeline.jobs.job_error import JobError
from odradek.pipeline.reading.partitions import TopicPartition
from odradek.storage.files import FileLock, Files, LockHeldError

from .selection import Selection

Noted = TypeVar("Noted", bound=msgspec.Struct)


class ReplayTopic(msgspec.Struct, frozen=True, kw_only=True):
    """One topic of a job."""

    source: str
    target: str
    topic_id: str


class ReplayJob(msgspec.Struct, frozen=True, kw_only=True):
    """What a job is about."""

    topics: tuple[ReplayTopic, ...]
    selection: Selection


class Acknowledged(Protocol):
    """Records that are there, up to `next_offset` of the source."""

    @property
    def records(self) -> int: ...
    @property
    def next_offset(self) -> int: ...
    @property
    def target_first(self) -> int: ...
    @property
    def target_last(self) -> int: ...


class PartitionProgress(msgspec.Struct, frozen=True, kw_only=True):
    """All records before `next_offset` (of the source) have been acknowledged.

    What the target has before `target_next` is not to be looked at again. The target offsets are
    those of the first and the last record of the job; -1 while there is none.
    """

    next_offset: int = 0
    records: int = 0
    target_first: int = -1
    target_last: int = -1
    target_next: int = -1
    is_done: bool = False

    def with_more(self, more: "Acknowledged") -> "PartitionProgress":
        """With what was acknowledged since."""
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
class ProgressNotes:
    """The notes of one job, in its directory."""

    directory: Path
    files: Files

    def begin(self, job: ReplayJob) -> None:
        """Raises JobError where the job is known to be about something else."""
        self.files.make_directory(self.directory)
        path = self.directory / "job.json"
        known = self._read(path, ReplayJob)
        if known is None:
            self.files.atomic_write(path, msgspec.json.encode(job))
        elif known != job:
            raise JobError(
                f"the job {self.directory.name} has begun with other topics or another range "
                f"({path}): give the same again, or another job id"
            )

    def of(self, partition: TopicPartition) -> PartitionProgress:
        """How far the partition has got."""
        return self._read(self._path(partition), PartitionProgress) or PartitionProgress()

    def note(self, partition: TopicPartition, progress: PartitionProgress) -> None:
        """Raises OSError."""
        self.files.atomic_write(self._path(partition), msgspec.json.encode(progress))

    def lock(self, partition: TopicPartition) -> FileLock:
        """Raises JobError where another task has it."""
        try:
            return self.files.lock(self._path(partition).with_suffix(".lock"))
        except LockHeldError as error:
            raise JobError(f"{partition} is being replayed by another process: {error}") from error

    def _path(self, partition: TopicPartition) -> Path:
        return self.directory / f"{partition}.json"

    def _read(self, path: Path, kind: type[Noted]) -> Noted | None:
        try:
            return msgspec.json.decode(self.files.read(path), type=kind)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError as error:
            raise JobError(f"{path} cannot be read: {error}") from error
