"""Reads ranges of offsets and writes their records to files. Tasks run this; it does not use Spark.

A task may be killed, run again, or run twice at once. Its files have names that no other attempt
has, and no reader sees them until the driver commits its result. If the run fails, the driver
deletes those that it has not committed: their names have the run's id. What a killed run leaves is
deleted by the table's vacuum.
"""

from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from odradek.pipeline.decoding.columns import TIMESTAMP_MS
from odradek.pipeline.decoding.decoder import RecordDecoder
from odradek.pipeline.jobs.archive.parquet.dated_files import DatedFiles, WrittenFile, have_no_date
from odradek.pipeline.jobs.archive.parquet.parquet_format import RECORD_COLUMNS
from odradek.pipeline.jobs.archive.parquet.storage import (
    ArchiveFiles,
    ArchiveLocation,
    new_run_id,
    unique_name,
)
from odradek.pipeline.jobs.archive.splitting.value_columns import ValueColumns
from odradek.pipeline.jobs.archive.splitting.value_splitting import splitter_for
from odradek.pipeline.jobs.archive.table.state import ArchivedRange
from odradek.pipeline.jobs.offset_spans import Span
from odradek.pipeline.reading.index_lookup import headers_with_ends, position_before
from odradek.pipeline.reading.partitions import LogDirectories
from odradek.pipeline.reading.range_reader import DataLostError, OffsetRange, RangeReader
from odradek.protocol.batch_header import CorruptRecordError
from odradek.storage.files import Files

from .batch_marks import mark_before
from .planner import partition_key


class WrittenRange(NamedTuple):
    """The result for a range, which the driver may commit.

    `archived` ends before the end of the range if a batch is damaged or a file cannot be read
    (`error`), or if the log ends earlier (`note`). Another run reads the rest. `skipped` says what
    could not be read, and why.
    """

    archived: ArchivedRange
    files: tuple[WrittenFile, ...] = ()
    note: str = ""
    error: str = ""
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingWork:
    """What the tasks of a run do. It is pickled and sent to them.

    With `skip_unreadable`, batches that cannot be read are left out, and those after them are read.
    """

    log_directories: tuple[Path, ...]
    location: ArchiveLocation
    value_schemas: Mapping[str, ValueColumns] = field(default_factory=dict)  # by topic
    verify_crc: bool = True
    skip_unreadable: bool = False
    files: Files = field(default_factory=Files)
    run_id: str = field(default_factory=new_run_id)

    def __call__(self, ranges: Iterable[OffsetRange]) -> Iterator[WrittenRange]:
        """Write the records of the ranges.

        Raises OSError if they cannot be written; then the whole task is to be retried.
        """
        archive = ArchiveFiles(self.location, self.files)
        written = [self._write(wanted, archive) for wanted in ranges]
        archive.sync(file.path for each in written for file in each.files)
        yield from written

    def _write(self, wanted: OffsetRange, archive: ArchiveFiles) -> WrittenRange:
        stem = f"{wanted.partition.partition}-{wanted.start:020}-{unique_name(self.run_id)}"
        valid = DatedFiles(archive, wanted.partition.topic, stem)
        dead = DatedFiles(archive, wanted.partition.topic, f"{stem}-dead")
        reading = self.reading(wanted)
        for records, dead_letters in reading.records():
            valid.add(records)
            if dead_letters is not None:
                dead.add(dead_letters)
        files, dead_files = valid.finish(), dead.finish()
        files += [each._replace(is_dead_letters=True) for each in dead_files]
        return WrittenRange(
            reading.archived(files),
            tuple(files),
            reading.note,
            reading.error,
            tuple(
                f"offsets {span.start} to {span.end - 1}: {why}" for span, why in reading.skipped
            ),
        )

    def reading(self, wanted: OffsetRange) -> "RangeReading":
        """Return the reading of one range."""
        return RangeReading(self, wanted)


class RangeReading:
    """Reads a range, and continues after offsets that were deleted since it was planned."""

    def __init__(self, work: WritingWork, wanted: OffsetRange) -> None:
        self._work = work
        self._wanted = wanted
        self._schema = work.value_schemas.get(wanted.partition.topic)
        self._directories = LogDirectories(work.log_directories, work.files)
        # Before the records: if the log is replaced meanwhile, the next run finds that out.
        self._mark = mark_before(self._directories, wanted.partition, wanted.end)
        self._next_offset = wanted.start
        self._end = wanted.end
        self._lost: list[Span] = []
        self.skipped: list[tuple[Span, str]] = []
        self.note = self.error = ""

    def records(self) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch | None]]:
        """Yield the records with their columns, and those whose value does not match a schema.

        Ends before a damaged batch, or one that the disk does not return.
        """
        splitter = None if self._schema is None else splitter_for(self._schema)
        try:
            for batch in self._batches():
                for part, times_ms in _by_range_of_time(batch):
                    valid, invalid = part, None
                    if splitter is not None:
                        valid, invalid = splitter.split(part)
                    yield (
                        self._completed(valid, times_ms),
                        None if invalid is None else self._completed(invalid, times_ms),
                    )
        except (CorruptRecordError, OSError) as error:  # only of the log: the caller writes
            self._end, self.error = self._next_offset, str(error)

    def archived(self, files: Iterable[WrittenFile] = ()) -> ArchivedRange:
        """Return what was read, after the last record."""
        schema, mark = self._schema, self._mark
        if self._end < self._wanted.end:
            mark = mark_before(self._directories, self._wanted.partition, self._end)
        records = {True: 0, False: 0}
        for file in files:
            records[file.is_dead_letters] += file.records
        return ArchivedRange(
            of=partition_key(self._wanted.partition, self._wanted.topic_id),
            start=self._wanted.start,
            end=self._end,
            mark=mark,
            records=records[False],
            dead_letters=records[True],
            lost=tuple(self._lost),
            skipped=tuple(span for span, _ in self.skipped),
            dropped_values=schema is not None and not schema.keep_value,
        )

    def _completed(self, batch: pa.RecordBatch, times_ms: Mapping[int, int]) -> pa.RecordBatch:
        """Add the columns that are not a record's. `times_ms` are by offset, if they are kept."""
        if times_ms:
            kept = pa.array([times_ms[each] for each in batch["offset"].to_pylist()], pa.int64())
            batch = batch.append_column(TIMESTAMP_MS, kept)
        if self._wanted.topic_id is None:
            return batch
        ids = pa.repeat(pa.scalar(self._wanted.topic_id.hex()), batch.num_rows)
        return batch.append_column("topicId", ids)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all records that exist. Raises CorruptRecordError, OSError."""
        start: int | None = self._wanted.start
        is_exact = False
        failure: CorruptRecordError | None = None
        while start is not None and start < self._end:
            try:
                if failure is None:
                    yield from self._read(start, self._end, is_exact=is_exact)
                    return
                start = yield from self._read_each_batch(start, failure)
                failure = None
            except DataLostError as error:
                start, failure = self._skip_lost(error), None
            except CorruptRecordError as error:
                if failure is not None:
                    raise
                start = max(start, self._next_offset)
                failure = error if is_exact else None
                is_exact = True  # a batch that was skipped is not to be read again

    def _read_each_batch(
        self, start: int, failure: CorruptRecordError
    ) -> Generator[pa.RecordBatch, None, int]:
        """Read batch by batch, skip the first that cannot be read, and return the offset after it.

        Where it ends is not known from its own header, which may be damaged: it ends where the next
        batch begins. If that header cannot be read either, the rest of the segment is skipped.
        Raises DataLostError, CorruptRecordError, OSError.
        """
        reader = self._directories.reader(self._wanted.partition)
        segments = reader.segments()
        number = bisect_right(segments, start, key=lambda segment: segment.base_offset)
        opened = reader.open(segments[max(number - 1, 0)])
        segment_end = self._end
        if number < len(segments):
            segment_end = min(segments[number].base_offset, self._end)
        at = start
        try:
            begin = position_before(opened, start)
            for _, header, ends_before in headers_with_ends(opened, begin):
                limit = segment_end if ends_before is None else min(ends_before, segment_end)
                if limit <= at:
                    continue
                end = header.next_offset if at < header.next_offset <= limit else limit
                try:
                    yield from self._read(at, end, is_exact=True)
                except CorruptRecordError as error:
                    return self._skip(max(at, self._next_offset), limit, error)
                at = end
                if at == self._end:
                    return at
        except CorruptRecordError as error:
            return self._skip(at, segment_end, error)
        if at == start and segment_end == self._end:
            raise failure
        return max(at, segment_end)  # the failure is in a later segment

    def _skip(self, start: int, end: int, error: CorruptRecordError) -> int:
        """Leave out what cannot be read, and return the offset after it. Raises the error."""
        if not self._work.skip_unreadable:
            raise error
        self.skipped.append((Span(start, end), str(error)))
        self._next_offset = end
        return end

    def _read(self, start: int, end: int, *, is_exact: bool) -> Iterator[pa.RecordBatch]:
        topic, partition = self._wanted.partition
        reader = RangeReader(
            self._directories,
            replace(self._wanted, start=start, end=end),
            RecordDecoder(topic, partition, (*RECORD_COLUMNS, TIMESTAMP_MS)),
            verify_crc=self._work.verify_crc,
            is_exact=is_exact,
        )
        for batch in reader.read():
            if batch.num_rows:
                self._next_offset = batch["offset"][-1].as_py() + 1
            yield batch

    def _skip_lost(self, error: DataLostError) -> int | None:
        """Return where to continue after lost offsets.

        Returns None if the log ends before them, or if a transaction has no marker any more: the
        log may grow, so they are not lost.
        """
        if error.resumes_at is None:
            self._end = error.start
            self.note = (
                f"the log is read up to offset {self._end} now, not up to {self._wanted.end}: it "
                "ends there, or the marker of a transaction is missing"
            )
            return None
        self._lost.append(Span(error.start, error.resumes_at))
        self._next_offset = error.resumes_at
        return error.resumes_at


def _by_range_of_time(batch: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, dict[int, int]]]:
    """Yield the records that have a date, and those that have none with their times by offset.

    A timestamp of theirs may not fit into the column `timestamp`, so it is kept as it is.
    """
    times_ms = batch[TIMESTAMP_MS].to_numpy()
    records = batch.drop_columns([TIMESTAMP_MS])
    outside = have_no_date(times_ms)
    if not outside.any():
        yield records, {}
        return
    yield records.filter(pa.array(~outside)), {}
    odd = records.filter(pa.array(outside))
    yield odd, dict(zip(odd["offset"].to_pylist(), times_ms[outside].tolist(), strict=True))
