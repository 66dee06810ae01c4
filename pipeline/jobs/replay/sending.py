"""Sends one partition's records in order of offset. This is what a task runs, without Spark."""

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
from .outgoing import COLUMNS, count_changed_timestamps, outgoing_records
from .partition_producer import PartitionProducer
from .progress_files import PartitionProgress, ProgressFiles
from .selection import PartitionFiles, Selection

_STORE_EVERY_S = 1.0


class PartitionReplay(NamedTuple):
    """A partition to replay."""

    source: PartitionFiles
    target: str


class ReplayResult(NamedTuple):
    """The result for a partition; `before` is the progress that earlier runs had stored."""

    source: TopicPartition
    target: str
    before: PartitionProgress
    progress: PartitionProgress
    found_delivered: int
    changed_timestamps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SendingWork:
    """What the tasks of a replay do. It is pickled and sent to them.

    `config` is librdkafka's. `records_per_s` is the limit of one task. `now` returns seconds.
    """

    layout: ArchiveLayout
    job_id: str
    config: Mapping[str, Any]
    selection: Selection
    records_per_s: float | None = None
    files: Files = field(default_factory=Files)
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def __call__(self, wanted: PartitionReplay) -> Iterator[ReplayResult]:
        """Replay one partition. Raises JobError, OSError."""
        partition = wanted.source.partition
        stored = ProgressFiles(self.layout.replay(self.job_id), self.files)
        lock = stored.lock(partition)
        try:
            sending = _Sending(self, wanted, partition, stored)
            yield sending.result() if sending.progress.is_done else sending.run()
        finally:
            lock.release()


class _Sending:
    """Sends one partition, and stores its progress."""

    def __init__(
        self,
        work: SendingWork,
        wanted: PartitionReplay,
        partition: TopicPartition,
        stored: ProgressFiles,
    ) -> None:
        self._work = work
        self._wanted = wanted
        self._partition = partition
        self._stored = stored
        self._before = self.progress = stored.read(partition)
        self._found_delivered = 0
        self._changed_timestamps = 0

    def result(self) -> ReplayResult:
        """Return the result so far."""
        return ReplayResult(
            self._partition,
            self._wanted.target,
            self._before,
            self.progress,
            self._found_delivered,
            self._changed_timestamps,
        )

    def run(self) -> ReplayResult:
        """Send the remaining records. The progress is stored even if it fails."""
        self._resume()
        config, target = self._work.config, self._wanted.target
        producer = PartitionProducer(config, target, self._partition.partition)
        began_with = self.progress
        try:
            self._send(producer, began_with)
        finally:
            producer.close()
            self._store(producer, began_with)
        self.progress = replace(self.progress, is_done=True)
        self._stored.write(self._partition, self.progress)
        return self.result()

    def _resume(self) -> None:
        """Find the target's end, or the records that a killed run delivered and did not store."""
        partition = self._partition.partition
        reader = TargetReader(self._work.config, self._wanted.target, partition)
        try:
            if self.progress.target_next < 0:
                self.progress = replace(self.progress, target_next=reader.end())
            else:
                left = (record for table in self._tables() for record in outgoing_records(table))
                found = find_delivered(left, reader.records(self.progress.target_next))
                self._found_delivered = found.records
                self.progress = self.progress.with_more(found)
        finally:
            reader.close()
        self._stored.write(self._partition, self.progress)

    def _send(self, producer: PartitionProducer, began_with: PartitionProgress) -> None:
        now = self._work.now
        stored_at = now()
        limit = _RateLimit(self._work)
        for table in self._tables():
            self._changed_timestamps += count_changed_timestamps(table)
            for record in outgoing_records(table):
                limit.wait()
                producer.send(record)
                if now() - stored_at >= _STORE_EVERY_S:
                    self._store(producer, began_with)
                    stored_at = now()
        producer.flush()

    def _store(self, producer: PartitionProducer, began_with: PartitionProgress) -> None:
        if producer.records:
            self.progress = began_with.with_more(producer)
            self._stored.write(self._partition, self.progress)

    def _tables(self) -> Iterator[pa.Table]:
        """Yield the selected records that are not delivered yet."""
        root = self._work.layout.root
        files = [
            OffsetFile(root / each.path, each.first_offset) for each in self._wanted.source.files
        ]
        start = max(self.progress.next_offset, self._work.selection.from_offset or 0)
        for table in read_by_offset(files, start, columns=COLUMNS):
            selected = self._work.selection.filter(table)
            if selected.num_rows:
                yield selected


class _RateLimit:
    """Limits the records per second, in steps of a tenth of a second's records."""

    def __init__(self, work: SendingWork) -> None:
        self._work = work
        self._rate = work.records_per_s
        self._began = work.now()
        self._sent = 0
        self._step = max(int((self._rate or 0) / 10), 1)

    def wait(self) -> None:
        """Wait until the next record may be sent."""
        if self._rate is None:
            return
        if self._sent % self._step == 0:
            early_s = self._began + self._sent / self._rate - self._work.now()
            if early_s > 0:
                self._work.sleep(early_s)
        self._sent += 1
