"""Adds up a range of a partition by hour. The class is a decoder that yields no rows."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from odradek.pipeline.decoding.batch_table import BatchTable
from odradek.pipeline.decoding.decoded_records import DecodedRecords
from odradek.pipeline.decoding.decoder import RecordDecoder
from odradek.pipeline.decoding.legacy_messages import read_messages
from odradek.pipeline.decoding.varints import Bools, Ints
from odradek.pipeline.reading.partitions import LogDirectories
from odradek.pipeline.reading.range_reader import DataLostError, OffsetRange, RangeReader
from odradek.protocol.any_batch import read_message_header
from odradek.protocol.batch_header import HEADER_BYTES, CorruptRecordError
from odradek.protocol.compression import CompressionType
from odradek.storage.topic_partition import TopicPartition

from .hour_stats import HOUR_MS, CodecStats, HourStats
from .sketches import hash_strings

_ALL_FIELDS = ("key", "value", "timestamp")  # any one of these makes the decoder read all fields
_LEGACY_HEADER_BYTES = 34
_CODECS = {int(codec): codec.name.lower() for codec in CompressionType}


@dataclass(slots=True)
class RangeStats:
    """The sums of one range. Hours are counted from 1970; -1: without a timestamp."""

    partition: TopicPartition
    start: int
    hours: dict[int, HourStats] = field(default_factory=dict)
    first_ms: int = -1
    last_ms: int = -1
    log_bytes: int = 0
    problem: str = ""

    def hour(self, number: int) -> HourStats:
        """Return the sums of an hour."""
        return self.hours.setdefault(number, HourStats())


@dataclass(frozen=True, slots=True)
class ScanWork:
    """Reads ranges, in a task."""

    log_directories: tuple[Path, ...]
    verify_crc: bool = True

    def __call__(self, wanted: list[OffsetRange]) -> Iterator[RangeStats]:
        """Yield the sums of each range; if it cannot be read to its end, those up to there."""
        directories = LogDirectories(self.log_directories)
        for each in wanted:
            scan = TopicScan(RangeStats(each.partition, each.start))
            reader = RangeReader(
                directories, each, scan, verify_crc=self.verify_crc, fail_on_data_loss=False
            )
            try:
                for _ in reader.read():
                    pass
            except (CorruptRecordError, DataLostError, OSError) as error:
                scan.stats.problem = str(error)
            yield scan.stats


class TopicScan:
    """Adds up all batches of a range, including control batches and aborted ones."""

    only_data_batches: ClassVar[bool] = False

    def __init__(self, stats: RangeStats) -> None:
        self.stats = stats
        self._decoder = RecordDecoder(stats.partition.topic, stats.partition.partition, _ALL_FIELDS)

    def decode(
        self, piece: bytes, table: BatchTable, start_offset: int, end_offset: int
    ) -> Iterator[pa.RecordBatch]:
        """Add batches of magic 2 whose last offset is in the range."""
        ends_here = (table.last_offset >= start_offset) & (table.last_offset < end_offset)
        table = table.where(ends_here)
        self._add_batches(table)
        data = table.where(~table.is_control & (table.record_count > 0))
        order: list[tuple[Ints, Ints]] = []
        for codec in np.unique(data.compression_id).tolist():
            with_codec = data.where(data.compression_id == codec)
            for is_transactional in np.unique(with_codec.is_transactional).tolist():
                rows = with_codec.where(with_codec.is_transactional == is_transactional)
                for records in self._decoder.records(piece, rows):
                    order.append((records.offset, records.timestamp_ms))
                    self._add_records(records, codec, is_transactional=is_transactional)
        self._count_out_of_order(order)
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
                self._add_message(data[position:end], header.compression_id)
            position = end
        yield from ()

    # --- batches, from their headers

    def _add_batches(self, table: BatchTable) -> None:
        hour = _hours(table.max_timestamp)
        for number in np.unique(hour).tolist():
            rows = table.where(hour == number)
            stats = self.stats.hour(number)
            stats.markers += int(rows.record_count[rows.is_control].sum())
            data = rows.where(~rows.is_control)
            stats.batch_records.add(data.record_count)
            stats.batch_bytes.add(data.size_bytes)
            for codec in np.unique(rows.compression_id).tolist():
                with_codec = rows.where(rows.compression_id == codec)
                sums = stats.codec(_codec_name(codec))
                sums.batches += with_codec.height
                sums.stored_bytes += int(with_codec.size_bytes.sum())
                unpacked = (
                    with_codec.is_control if not codec else np.zeros(with_codec.height, np.bool_)
                )
                sums.raw_bytes += HEADER_BYTES * int((~unpacked).sum())
                sums.raw_bytes += int(with_codec.size_bytes[unpacked].sum())
        self.stats.log_bytes += int(table.size_bytes.sum())

    def _add_message(self, message: bytes, codec: int) -> None:
        parts = list(read_messages(message))
        newest = max((int(part.timestamp_ms.max()) for part in parts), default=-1)
        stats = self.stats.hour(_hour(newest))
        sums = stats.codec(_codec_name(codec))
        sums.batches += 1
        sums.stored_bytes += len(message)
        stats.batch_records.add(np.array([sum(part.offset.size for part in parts)]))
        stats.batch_bytes.add(np.array([len(message)]))
        self.stats.log_bytes += len(message)
        for part in parts:
            self._add_records(
                part, codec, is_transactional=False, header_bytes=_LEGACY_HEADER_BYTES
            )
            self._count_out_of_order([(part.offset, part.timestamp_ms)])

    # --- records

    def _add_records(
        self, records: DecodedRecords, codec: int, *, is_transactional: bool, header_bytes: int = 0
    ) -> None:
        hour = _hours(records.timestamp_ms)
        numbers = np.unique(hour).tolist()
        for number in numbers:
            rows = records if len(numbers) == 1 else records.where(np.flatnonzero(hour == number))
            stats = self.stats.hour(number)
            _add_fields(stats, rows)
            stats.transactional_records += int(rows.offset.size) if is_transactional else 0
            _add_raw_size(stats.codec(_codec_name(codec)), rows, header_bytes)

    def _count_out_of_order(self, parts: list[tuple[Ints, Ints]]) -> None:
        """Count the records that are older than the one before them."""
        if not parts:
            return
        timestamp_ms = np.concatenate([times for _, times in parts])
        if len(parts) > 1:
            timestamp_ms = timestamp_ms[np.argsort(np.concatenate([first for first, _ in parts]))]
        stats = self.stats
        before = stats.last_ms if stats.last_ms >= 0 else timestamp_ms[0]
        if stats.first_ms < 0:
            stats.first_ms = int(timestamp_ms[0])
        stats.last_ms = int(timestamp_ms[-1])
        older: Bools = np.diff(timestamp_ms, prepend=before) < 0
        numbers, counts = np.unique(_hours(timestamp_ms[older]), return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            stats.hour(number).out_of_order_records += count


def _add_fields(stats: HourStats, records: DecodedRecords) -> None:
    fields = records.fields
    assert fields is not None
    key_bytes, value_bytes = np.maximum(fields.key_bytes, 0), np.maximum(fields.value_bytes, 0)
    header_bytes = np.where(fields.header_count > 0, fields.end - fields.headers_at, 0)
    stats.records += int(records.offset.size)
    stats.null_keys += int((fields.key_bytes < 0).sum())
    stats.tombstones += int((fields.value_bytes < 0).sum())
    stats.log_append_time_records += int((records.timestamp_type == 1).sum())
    stats.untimed_records += int((records.timestamp_type < 0).sum())
    stats.key_bytes += int(key_bytes.sum())
    stats.value_bytes += int(value_bytes.sum())
    stats.add_times(int(records.timestamp_ms.min()), int(records.timestamp_ms.max()))
    stats.sizes.add(key_bytes + value_bytes + header_bytes)
    keyed = np.flatnonzero(fields.key_bytes >= 0)
    stats.keys.add(hash_strings(records.data, fields.key_at[keyed], fields.key_bytes[keyed]))


def _add_raw_size(sums: CodecStats, records: DecodedRecords, header_bytes: int) -> None:
    """Add the size without compression. `header_bytes` is that of a legacy message's header."""
    assert records.fields is not None
    sizes = records.fields.end - records.fields.begin
    lengths = 1 + sum((sizes >= 1 << bits).astype(np.int64) for bits in (6, 13, 20, 27))
    sums.records += int(sizes.size)
    sums.raw_bytes += int((sizes + (header_bytes or lengths)).sum())


def _hours(timestamp_ms: Ints) -> Ints:
    return np.where(timestamp_ms < 0, -1, timestamp_ms // HOUR_MS)


def _hour(timestamp_ms: int) -> int:
    return -1 if timestamp_ms < 0 else timestamp_ms // HOUR_MS


def _codec_name(codec: int) -> str:
    return _CODECS.get(codec, str(codec))
