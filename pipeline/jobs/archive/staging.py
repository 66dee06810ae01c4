"""Reads ranges of offsets and writes them to staged files. Tasks run this; it does not use Spark.

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
from .entries import ArchivedFile, ArchivedRange, PartitionKey
from .layout import ArchiveLayout, date_of
from .offset_gaps import OffsetGaps
from .parquet_format import RECORD_COLUMNS, RECORD_SCHEMA
from .plan import partition_key
from .value_schema import DEAD_LETTER_SCHEMA, ValueSchema, schema_id


class StagedRange(NamedTuple):
    """The result for a range, which the driver may commit.

    `archived` ends before the end of the range if a batch is damaged (`error`) or if the log ends
    earlier (`note`). Another run reads the rest. `files` have no `path` yet.
    """

    archived: ArchivedRange
    files: tuple[ArchivedFile, ...] = ()
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
                if self.value_schema is None:
                    records.add(batch)
                    continue
                valid, invalid = self.value_schema.split(batch)
                records.add(valid)
                if invalid is not None:
                    dead_letters.add(invalid)
        except CorruptRecordError as error:
            reading.end, reading.error = reading.gaps.next_offset, str(error)
        reading.gaps.finish(reading.end)
        key = partition_key(wanted.partition, wanted.topic_id)
        schema = RECORD_SCHEMA if self.value_schema is None else self.value_schema.schema
        valid_files = [_archived_file(key, file, schema) for file in records.finish()]
        invalid_files = [
            _archived_file(key, file, DEAD_LETTER_SCHEMA, is_dead_letters=True)
            for file in dead_letters.finish()
        ]
        archived = ArchivedRange(
            of=key,
            start=wanted.start,
            end=reading.end,
            records=sum(file.records for file in valid_files),
            dead_letters=sum(file.records for file in invalid_files),
            absent=reading.gaps.absent,
            gaps=tuple(reading.gaps.listed),
            lost=tuple(reading.lost),
        )
        files = (*valid_files, *invalid_files)
        return StagedRange(archived, files, reading.note, reading.error)


def _archived_file(
    key: PartitionKey, file: StagedFile, schema: pa.Schema, *, is_dead_letters: bool = False
) -> ArchivedFile:
    return ArchivedFile(
        of=key,
        path="",  # set by the commit
        staged=file.path.name,
        date=date_of(file.day),
        records=file.records,
        size_bytes=file.size_bytes,
        first_offset=file.first_offset,
        last_offset=file.last_offset,
        times_ms=file.times_ms,
        schema_id=schema_id(schema),
        is_dead_letters=is_dead_letters,
    )


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
        start: int | None = self._wanted.start
        while start is not None and start < self.end:
            try:
                yield from self._read(start)
                return
            except DataLostError as error:
                start = self._skip_lost(error)

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

    def _skip_lost(self, error: DataLostError) -> int | None:
        """Return where to continue after lost offsets.

        Returns None if the log ends before them: it may grow, so they are not lost.
        """
        if error.resumes_at is None:
            self.end = error.start
            self.note = f"the log ends at {self.end} now, not at {self._wanted.end}"
            return None
        self.lost.append(Span(error.start, error.resumes_at))
        self.gaps.skip_lost(self.lost[-1])
        return error.resumes_at
