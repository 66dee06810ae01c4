"""Reads ranges of offsets and writes them to staged files. This is what a task runs, without Spark.

A task may be killed, run again, or run twice at once. Its files have names that no other attempt
has, and become visible only when the driver commits its result.
"""

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from odradek.pipeline.decoding.decoder import RecordDecoder
from odradek.pipeline.jobs.offset_spans import Span
from odradek.pipeline.reading.partitions import LogDirectories
from odradek.pipeline.reading.range_reader import DataLostError, OffsetRange, RangeReader
from odradek.protocol.batch_header import CorruptRecordError
from odradek.storage.files import Files

from .dated_files import DatedFiles, StagedFile
from .layout import ArchiveLayout
from .offset_gaps import OffsetGaps
from .parquet_format import RECORD_COLUMNS
from .value_schema import ValueSchema


class StagedRange(NamedTuple):
    """The result for a range.

    `end` is less than the wanted end if a batch is damaged (`error`) or if the log ends earlier
    (`note`). The rest is read by another run.
    """

    wanted: OffsetRange
    end: int
    files: tuple[StagedFile, ...] = ()
    dead_letter_files: tuple[StagedFile, ...] = ()
    absent: int = 0
    gaps: tuple[Span, ...] = ()
    lost: tuple[Span, ...] = ()
    note: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagingWork:
    """What the tasks of a run do. It is pickled and sent to them."""

    log_directories: tuple[Path, ...]
    layout: ArchiveLayout
    run_id: str
    value_schema: ValueSchema | None = None
    verify_crc: bool = True
    files: Files = field(default_factory=Files)

    def __call__(self, ranges: Iterable[OffsetRange]) -> Iterator[StagedRange]:
        """Stage the ranges. Raises OSError; then the whole task is to be retried."""
        directory = self.layout.run(self.run_id)
        self.files.make_directory(directory)
        staged = [self._stage(wanted, directory) for wanted in ranges]
        # The names must survive a power failure before the driver commits them.
        self.files.fsync_directory(directory)
        yield from staged

    def _stage(self, wanted: OffsetRange, directory: Path) -> StagedRange:
        stem = f"{wanted.partition}-{wanted.start}-{uuid.uuid4().hex}"
        records = DatedFiles(self.files, directory, stem)
        dead_letters = DatedFiles(self.files, directory, f"{stem}-dead")
        reading = _RangeReading(self, wanted)
        try:
            for batch in reading.batches():
                valid, invalid = self._typed(batch)
                records.add(valid)
                if invalid is not None:
                    dead_letters.add(invalid)
        except CorruptRecordError as error:
            reading.end, reading.error = reading.gaps.next, str(error)
        reading.gaps.end(reading.end)
        return StagedRange(
            wanted,
            reading.end,
            tuple(records.finish()),
            tuple(dead_letters.finish()),
            reading.gaps.absent,
            tuple(reading.gaps.first),
            tuple(reading.lost),
            reading.note,
            reading.error,
        )

    def _typed(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
        if self.value_schema is None:
            return batch, None
        return self.value_schema.split(batch)


class _RangeReading:
    """Reads a range, and continues after offsets that were deleted since it was planned."""

    def __init__(self, work: StagingWork, wanted: OffsetRange) -> None:
        self._work = work
        self._wanted = wanted
        self.end = wanted.end
        self.gaps = OffsetGaps(wanted.start)
        self.lost: list[Span] = []
        self.note = self.error = ""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all records that exist. Raises CorruptRecordError, OSError."""
        at: int | None = self._wanted.start
        while at is not None and at < self.end:
            try:
                yield from self._read(at)
                return
            except DataLostError as error:
                at = self._resume_at(error)

    def _read(self, start: int) -> Iterator[pa.RecordBatch]:
        topic, partition = self._wanted.partition
        reader = RangeReader(
            LogDirectories(self._work.log_directories, self._work.files),
            replace(self._wanted, start=start),
            RecordDecoder(topic, partition, RECORD_COLUMNS),
            verify_crc=self._work.verify_crc,
        )
        for batch in reader.read():
            self.gaps.add(batch["offset"].to_numpy().astype(np.int64, copy=False))
            yield batch

    def _resume_at(self, error: DataLostError) -> int | None:
        """Return where to continue. None at the log's end: it may grow, so nothing is lost."""
        if error.resumes_at is None:
            self.end = error.start
            self.note = f"the log ends at {self.end} now, not at {self._wanted.end}"
            return None
        self.lost.append(Span(error.start, error.resumes_at))
        self.gaps.skip_to(error.resumes_at, lost_from=error.start)
        return error.resumes_at
