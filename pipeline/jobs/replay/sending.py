"""The work of a task: one partition's records, in the order of their offsets. No Spark here."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
from msgspec.structs import replace

from odradek.pipeline.jobs.archive.layout import ArchiveLayout
from odradek.pipeline.jobs.archive.merged_records import OffsetFile, read_by_offset
from odradek.pipeline.reading.partitions import TopicPartition
from odradek.storage.files import Files

from .delivered import TargetReader, find_delivered
from .outbox import Outbox
from .outgoing import COLUMNS, outgoing, without_time
from .progress import PartitionProgress, ProgressNotes
from .selection import PartitionFiles, Selection

_NOTE_EVERY_S = 1.0


class PartitionReplay(NamedTuple):
    """What is to be done about one partition."""

    source: PartitionFiles
    target: str


class PartitionReplayed(NamedTuple):
    """What became of it; `before` is what earlier runs had noted."""

    source: TopicPartition
    target: str
    before: PartitionProgress
    progress: PartitionProgress
    found_delivered: int
    changed_timestamps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SendingWork:
    """What the tasks of a replay are to do. It is sent to them.

    `config` is librdkafka's. `records_per_s` is for each task. `now` tells seconds.
    """

    layout: ArchiveLayout
    job_id: str
    config: Mapping[str, Any]
    selection: Selection
    records_per_s: float | None = None
    files: Files = field(default_factory=Files)
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def __call__(self, wanted: PartitionReplay) -> Iterator[PartitionReplayed]:
        """Raises JobError, OSError."""
        partition = wanted.source.partition
        notes = ProgressNotes(self.layout.replay(self.job_id), self.files)
        lock = notes.lock(partition)
        try:
            sending = _Sending(self, wanted, partition, notes)
            yield sending.result() if sending.progress.is_done else sending.run()
        finally:
            lock.release()


class _Sending:
    """Sends one partition, and notes how far it has got."""

    def __init__(
        self,
        work: SendingWork,
        wanted: PartitionReplay,
        partition: TopicPartition,
        notes: ProgressNotes,
    ) -> None:
        self._work = work
        self._wanted = wanted
        self._partition = partition
        self._notes = notes
        self._before = self.progress = notes.of(partition)
        self._found_delivered = 0
        self._changed_timestamps = 0

    def result(self) -> PartitionReplayed:
        """As far as it has got."""
        return PartitionReplayed(
            self._partition,
            self._wanted.target,
            self._before,
            self.progress,
            self._found_delivered,
            self._changed_timestamps,
        )

    def run(self) -> PartitionReplayed:
        """Send what is left. However it ends, what was acknowledged is noted."""
        self._find_place()
        outbox = Outbox(self._work.config, self._wanted.target, self._partition.partition)
        began_with = self.progress
        try:
            self._send(outbox, began_with)
        finally:
            outbox.close()
            self._note(outbox, began_with)
        self.progress = replace(self.progress, is_done=True)
        self._notes.note(self._partition, self.progress)
        return self.result()

    def _find_place(self) -> None:
        """Where the target begins, or what a killed run has delivered without noting it."""
        partition = self._partition.partition
        reader = TargetReader(self._work.config, self._wanted.target, partition)
        try:
            if self.progress.target_next < 0:
                self.progress = replace(self.progress, target_next=reader.end())
            else:
                left = (record for table in self._tables() for record in outgoing(table))
                found = find_delivered(left, reader.records(self.progress.target_next))
                self._found_delivered = found.records
                self.progress = self.progress.with_more(found)
        finally:
            reader.close()
        self._notes.note(self._partition, self.progress)

    def _send(self, outbox: Outbox, began_with: PartitionProgress) -> None:
        now = self._work.now
        noted_at = now()
        pace = _Pace(self._work)
        for table in self._tables():
            self._changed_timestamps += without_time(table)
            for record in outgoing(table):
                pace.wait()
                outbox.send(record)
                if now() - noted_at >= _NOTE_EVERY_S:
                    self._note(outbox, began_with)
                    noted_at = now()
        outbox.flush()

    def _note(self, outbox: Outbox, began_with: PartitionProgress) -> None:
        if outbox.records:
            self.progress = began_with.with_more(outbox)
            self._notes.note(self._partition, self.progress)

    def _tables(self) -> Iterator[pa.Table]:
        """What is left of the selected records."""
        root = self._work.layout.root
        files = [
            OffsetFile(root / each.path, each.first_offset) for each in self._wanted.source.files
        ]
        start = max(self.progress.next_offset, self._work.selection.from_offset or 0)
        for table in read_by_offset(files, start, columns=COLUMNS):
            selected = self._work.selection.of(table)
            if selected.num_rows:
                yield selected


class _Pace:
    """Keeps to a number of records per second, a tenth of a second's records at a time."""

    def __init__(self, work: SendingWork) -> None:
        self._work = work
        self._rate = work.records_per_s
        self._began = work.now()
        self._sent = 0
        self._step = max(int((self._rate or 0) / 10), 1)

    def wait(self) -> None:
        """Until the next record may be sent."""
        if self._rate is None:
            return
        if self._sent % self._step == 0:
            early_s = self._began + self._sent / self._rate - self._work.now()
            if early_s > 0:
                self._work.sleep(early_s)
        self._sent += 1
