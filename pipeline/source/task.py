"""Reads one range of offsets into Arrow record batches. Tasks run this."""

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from odradek.pipeline.decoding.batch_decoder import BatchDecoder
from odradek.pipeline.decoding.decoded_records import MAX_MS, clipped
from odradek.pipeline.decoding.decoder import RecordDecoder
from odradek.pipeline.reading.partitions import LogDirectories
from odradek.pipeline.reading.range_reader import OffsetRange, RangeReader
from odradek.protocol.batch_header import CorruptRecordError

from .options import ReadOptions

_logger = logging.getLogger(__name__)

_THREADS = 2


def reads_files(options: ReadOptions) -> bool:
    """Whether this machine reads files, and not a broker."""
    if options.mode != "auto":
        return options.mode == "files"
    return all(map(_is_readable, options.directories)) and bool(options.directories)


def read_range(
    options: ReadOptions, wanted: OffsetRange, columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows. Raises DataLostError, CorruptRecordError, BrokerError, OSError.

    Timestamps that are clipped are counted, and logged at the end.
    """
    if wanted.start == wanted.end:
        return
    count = 0
    for batch in _read_range(options, wanted, columns):
        if "timestamp" in columns and not options.batch_view:
            count += int(clipped(batch["timestamp"]).sum())
        yield batch
    if count:
        _logger.warning(
            "%s, offsets %d to %d: %d timestamps are not within %d ms of 1970 and were clipped to "
            "that. Perhaps the producer gave microseconds or nanoseconds",
            wanted.partition,
            wanted.start,
            wanted.end - 1,
            count,
            MAX_MS,
        )


def _read_range(
    options: ReadOptions, wanted: OffsetRange, columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    if not reads_files(options) and options.client.get("bootstrap.servers"):
        from .broker_reader import BrokerReader  # confluent-kafka is needed only here

        yield from BrokerReader(
            options.client,
            wanted,
            columns,
            read_committed=options.read_committed,
            fail_on_data_loss=options.fail_on_data_loss,
            timeout_ms=options.poll_timeout_ms,
        ).read()
        return
    for directory in options.directories:
        # Raises OSError. An unreadable directory would otherwise look as if it had no records.
        next(directory.iterdir(), None)
    topic, partition = wanted.partition
    with ThreadPoolExecutor(_THREADS) as threads:
        reader = RangeReader(
            LogDirectories(options.directories),
            # It may have been planned by a driver that asks a broker.
            replace(wanted, committed_only=options.read_committed),
            BatchDecoder(topic, partition, columns)
            if options.batch_view
            else RecordDecoder(topic, partition, columns, threads),
            verify_crc=options.verify_crc,
            fail_on_data_loss=options.fail_on_data_loss,
        )
        try:
            yield from reader.read()
        except CorruptRecordError as error:
            raise CorruptRecordError(f"{wanted.partition}: {error}") from error


def _is_readable(directory: Path) -> bool:
    try:
        next(directory.iterdir(), None)
    except OSError:
        return False
    return True
