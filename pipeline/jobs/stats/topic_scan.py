"""Adds up the batches of a range of a partition, from their headers, and returns no rows.

Only old messages (magic 0 and 1) are decompressed: the header of a compressed one does not say how
many records are in it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from odradek.pipeline.decoding.batch_table import BatchTable
from odradek.pipeline.decoding.legacy_messages import read_messages
from odradek.pipeline.reading.partitions import LogDirectories
from odradek.pipeline.reading.range_reader import DataLostError, OffsetRange, RangeReader
from odradek.protocol.any_batch import read_message_header
from odradek.protocol.batch_header import CorruptRecordError
from odradek.protocol.compression import CompressionType
from odradek.storage.topic_partition import TopicPartition

_CODECS = {int(codec): codec.name.lower() for codec in CompressionType}


@dataclass(slots=True)
class CodecSums:
    """The batches of one codec, with those of markers."""

    batches: int = 0
    records: int = 0
    stored_bytes: int = 0

    def merge(self, other: "CodecSums") -> None:
        """Add another's sums."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


@dataclass(slots=True)
class Sums:
    """The sums of some batches. `first_ms` is the smallest first timestamp of a batch; -1: none."""

    codecs: dict[str, CodecSums] = field(default_factory=dict)
    markers: int = 0
    transactional_records: int = 0
    first_ms: int = -1
    last_ms: int = -1

    @property
    def records(self) -> int:
        """The number of records, without markers."""
        return sum(each.records for each in self.codecs.values())

    @property
    def batches(self) -> int:
        """The number of batches, including those of markers."""
        return sum(each.batches for each in self.codecs.values())

    @property
    def stored_bytes(self) -> int:
        """The size of all batches, including those of markers."""
        return sum(each.stored_bytes for each in self.codecs.values())

    def codec(self, number: int) -> CodecSums:
        """Return the sums of a codec."""
        return self.codecs.setdefault(_CODECS.get(number, str(number)), CodecSums())

    def add_times(self, first_ms: int, last_ms: int) -> None:
        """Add the first and the largest timestamp of some records."""
        if first_ms >= 0:
            self.first_ms = first_ms if self.first_ms < 0 else min(self.first_ms, first_ms)
        self.last_ms = max(self.last_ms, last_ms)

    def merge(self, other: "Sums") -> None:
        """Add another's sums."""
        self.markers += other.markers
        self.transactional_records += other.transactional_records
        self.add_times(other.first_ms, other.last_ms)
        for name, sums in other.codecs.items():
            self.codecs.setdefault(name, CodecSums()).merge(sums)


@dataclass(slots=True)
class RangeSums:
    """The sums of one range, up to the problem if there is one."""

    partition: TopicPartition
    sums: Sums = field(default_factory=Sums)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ScanWork:
    """Reads ranges, in a task."""

    log_directories: tuple[Path, ...]
    verify_crc: bool = True

    def __call__(self, wanted: list[OffsetRange]) -> Iterator[RangeSums]:
        """Yield the sums of each range; if it cannot be read to its end, those up to there."""
        directories = LogDirectories(self.log_directories)
        for each in wanted:
            found = RangeSums(each.partition)
            reader = RangeReader(
                directories,
                each,
                TopicScan(found.sums),
                verify_crc=self.verify_crc,
                fail_on_data_loss=False,
            )
            try:
                for _ in reader.read():
                    pass
            except (CorruptRecordError, DataLostError, OSError) as error:
                found.problem = str(error)
            yield found


@dataclass(frozen=True, slots=True)
class TopicScan:
    """Adds up all batches of a range, including control batches and aborted ones."""

    only_data_batches: ClassVar[bool] = False
    sums: Sums

    def decode(
        self,
        piece: bytes,  # noqa: ARG002 - other decoders need it
        table: BatchTable,
        start_offset: int,
        end_offset: int,
    ) -> Iterator[pa.RecordBatch]:
        """Add batches of magic 2 whose last offset is in the range."""
        table = table.where((table.last_offset >= start_offset) & (table.last_offset < end_offset))
        data = table.where(~table.is_control)
        for number in np.unique(table.compression_id).tolist():
            sums, with_codec = self.sums.codec(number), table.compression_id == number
            sums.batches += int(with_codec.sum())
            sums.stored_bytes += int(table.size_bytes[with_codec].sum())
            sums.records += int(data.record_count[data.compression_id == number].sum())
        self.sums.markers += int(table.record_count[table.is_control].sum())
        self.sums.transactional_records += int(data.record_count[data.is_transactional].sum())
        data = data.where(data.record_count > 0)
        # With LogAppendTime the largest timestamp is that of all records.
        first = np.where(data.is_log_append_time, data.max_timestamp, data.base_timestamp)
        if (first := first[first >= 0]).size:
            self.sums.add_times(int(first.min()), -1)
        if data.height:
            self.sums.add_times(-1, int(data.max_timestamp.max()))
        yield from ()

    def decode_messages(
        self, data: bytes, start_offset: int, end_offset: int
    ) -> Iterator[pa.RecordBatch]:
        """Add messages of magic 0 and 1; a compressed wrapper counts as a batch."""
        position = 0
        while position < len(data):
            header = read_message_header(data, position)
            end = position + header.size_bytes
            if start_offset <= header.last_offset < end_offset:
                sums = self.sums.codec(header.compression_id)
                sums.batches += 1
                sums.stored_bytes += header.size_bytes
                for part in read_messages(data[position:end]):
                    sums.records += int(part.offset.size)
                    times = part.timestamp_ms
                    self.sums.add_times(int(times[0]), int(times.max()))
            position = end
        yield from ()
