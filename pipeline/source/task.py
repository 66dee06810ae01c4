"""Reads one range of offsets into Arrow record batches. This is what a task runs."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa

from odradek.pipeline.decoding.batch_decoder import BatchDecoder
from odradek.pipeline.decoding.decoder import RecordDecoder
from odradek.pipeline.reading.partitions import LogDirectories
from odradek.pipeline.reading.range_reader import OffsetRange, RangeReader

from .options import ReadOptions

_THREADS = 2

TimesMs = tuple[int, int] | None


def reads_files(options: ReadOptions) -> bool:
    """Whether this machine reads files, and not a broker."""
    if options.mode != "auto":
        return options.mode == "files"
    return all(map(_is_readable, options.directories)) and bool(options.directories)


def read_range(
    options: ReadOptions, wanted: OffsetRange, columns: tuple[str, ...], times_ms: TimesMs
) -> Iterator[pa.RecordBatch]:
    """Yield the rows. Raises DataLostError, CorruptRecordError, BrokerError, OSError."""
    if reads_files(options) or not options.client.get("bootstrap.servers"):
        return _read_files(options, wanted, columns, times_ms)
    return _read_broker(options, wanted, columns, times_ms)


def _read_files(
    options: ReadOptions, wanted: OffsetRange, columns: tuple[str, ...], times_ms: TimesMs
) -> Iterator[pa.RecordBatch]:
    for directory in options.directories:
        # Raises OSError. An unreadable directory would otherwise look as if it had no records.
        next(directory.iterdir(), None)
    topic, partition = wanted.partition
    with ThreadPoolExecutor(_THREADS) as threads:
        yield from RangeReader(
            LogDirectories(options.directories),
            wanted,
            BatchDecoder(topic, partition, columns)
            if options.batch_view
            else RecordDecoder(topic, partition, columns, threads, times_ms),
            verify_crc=options.verify_crc,
            fail_on_data_loss=options.fail_on_data_loss,
        ).read()


def _read_broker(
    options: ReadOptions, wanted: OffsetRange, columns: tuple[str, ...], times_ms: TimesMs
) -> Iterator[pa.RecordBatch]:
    from .broker_reader import BrokerReader  # confluent-kafka is needed only here

    return BrokerReader(
        options.client,
        wanted,
        columns,
        times_ms,
        read_committed=options.read_committed,
        fail_on_data_loss=options.fail_on_data_loss,
        timeout_ms=options.poll_timeout_ms,
    ).read()


def _is_readable(directory: Path) -> bool:
    try:
        next(directory.iterdir(), None)
    except OSError:
        return False
    return True
