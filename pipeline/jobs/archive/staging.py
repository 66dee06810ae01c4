"""The work of a task: ranges of offsets are read, and written as staged files. No Spark here.

A task may be killed, run again, or run twice at once: what it writes has names that no other
attempt has, and counts only when the driver commits its result.
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
from .typed_values import TypedValues


class StagedRange(NamedTuple):
    """What became of a range.

    `end` is less than what was wanted where a batch is damaged (`error`), or where the log ends
    before (`note`): the rest is to be read another time.
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
    """What the tasks of a run are to do. It is sent to them."""

    log_directories: tuple[Path, ...]
    layout: ArchiveLayout
    run_id: str
    typed_values: TypedValues | None = None
    verify_crc: bool = True
    files: Files = field(default_factory=Files)

    def __call__(self, ranges: Iterable[OffsetRange]) -> Iterator[StagedRange]:
        """Raises OSError: then all of it is to be tried again."""
        directory = self.layout.run(self.run_id)
        self.files.make_directory(directory)
        staged = [self._stage(wanted, directory) for wanted in ranges]
        # The names must outlast a power cut before the driver hears of them.
        self.files.fsync_directory(directory)
        yield from staged

    def _stage(self, wanted: OffsetRange, directory: Path) -> StagedRange:
        stem = f"{wanted.partition}-{wanted.start}-{uuid.uuid4().hex}"
        records = DatedFiles(self.files, directory, stem)
        dead_letters = DatedFiles(self.files, directory, f"{stem}-dead")
        reading = _Reading(self, wanted)
        try:
            for batch in reading.batches():
                sound, bad = self._typed(batch)
                records.add(sound)
                if bad is not None:
                    dead_letters.add(bad)
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
        if self.typed_values is None:
            return batch, None
        return self.typed_values.split(batch)


class _Reading:
    """Reads a range past what has been deleted since it was planned."""

    def __init__(self, work: StagingWork, wanted: OffsetRange) -> None:
        self._work = work
        self._wanted = wanted
        self.end = wanted.end
        self.gaps = OffsetGaps(wanted.start)
        self.lost: list[Span] = []
        self.note = self.error = ""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All records that are there. Raises CorruptRecordError, OSError."""
        at: int | None = self._wanted.start
        while at is not None and at < self.end:
            try:
                yield from self._read(at)
                return
            except DataLostError as error:
                at = self._behind(error)

    def _read(self, start: int) -> Iterator[pa.RecordBatch]:
        topic, partition = self._wanted.partition
        reader = RangeReader(
            LogDirectories(self._work.log_directories, self._work.files),
            replace(self._wanted, start=start),
            RecordDecoder(topic, partition, RECORD_COLUMNS),
            verify_crc=self._work.verify_crc,
        )
        for batch in reader.read():
            self.gaps.see(batch["offset"].to_numpy().astype(np.int64, copy=False))
            yield batch

    def _behind(self, error: DataLostError) -> int | None:
        """Where to go on; None where the log ends: it may grow, so nothing is lost for good."""
        if error.resumes_at is None:
            self.end = error.start
            self.note = f"the log ends at {self.end} now, not at {self._wanted.end}"
            return None
        self.lost.append(Span(error.start, error.resumes_at))
        self.gaps.skip_to(error.resumes_at, lost_from=error.start)
        return error.resumes_at
