"""Sends one partition's records in order of offset. Tasks run this; it does not use Spark."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
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


@dataclass(slots=True)
class ReplayResult:
    """The result for a partition, so far; `before` is the progress that earlier runs had stored."""

    source: TopicPartition
    target: str
    before: PartitionProgress
    progress: PartitionProgress
    found_delivered: int = 0
    changed_timestamps: int = 0


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
            before = stored.read(partition)
            result = ReplayResult(partition, wanted.target, before, before)
            if not before.is_done:
                _Sending(self, wanted.source, stored, result).run()
            yield result
        finally:
            lock.release()


class _Sending:
    """Sends one partition, stores its progress, and keeps `result` up to date."""

    def __init__(
        self,
        work: SendingWork,
        source: PartitionFiles,
        stored: ProgressFiles,
        result: ReplayResult,
    ) -> None:
        self._work = work
        self._source = source
        self._stored = stored
        self._result = result
        self._target = (result.target, result.source.partition)

    def run(self) -> None:
        """Send the remaining records. The progress is stored even if it fails."""
        self._resume()
        producer = PartitionProducer(self._work.config, *self._target)
        began_with = self._result.progress
        try:
            self._send(producer, began_with)
        finally:
            producer.close()
            self._store(producer, began_with)
        self._write_progress(replace(self._result.progress, is_done=True))

    def _resume(self) -> None:
        """Find the target's end, or the records that a killed run delivered and did not store."""
        progress = self._result.progress
        with closing(TargetReader(self._work.config, *self._target)) as reader:
            if progress.target_next < 0:
                progress = replace(progress, target_next=reader.end())
            else:
                left = (record for table in self._tables() for record in outgoing_records(table))
                delivered = find_delivered(left, reader.records(progress.target_next))
                self._result.found_delivered = delivered.records
                progress = progress.with_more(delivered)
        self._write_progress(progress)

    def _send(self, producer: PartitionProducer, began_with: PartitionProgress) -> None:
        now = self._work.now
        stored_at = now()
        limit = _RateLimit(self._work)
        for table in self._tables():
            self._result.changed_timestamps += count_changed_timestamps(table)
            for record in outgoing_records(table):
                limit.wait()
                producer.send(record)
                if now() - stored_at >= _STORE_EVERY_S:
                    self._store(producer, began_with)
                    stored_at = now()
        producer.flush()

    def _store(self, producer: PartitionProducer, began_with: PartitionProgress) -> None:
        if producer.records:
            self._write_progress(began_with.with_more(producer))

    def _write_progress(self, progress: PartitionProgress) -> None:
        self._result.progress = progress
        self._stored.write(self._result.source, progress)

    def _tables(self) -> Iterator[pa.Table]:
        """Yield the selected records that are not delivered yet."""
        root = self._work.layout.root
        files = [OffsetFile(root / each.path, each.first_offset) for each in self._source.files]
        start = max(self._result.progress.next_offset, self._work.selection.from_offset or 0)
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
