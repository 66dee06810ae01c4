"""The batches that the cleaner writes: what they keep of the old ones, and what they lack."""

from collections.abc import Sequence

import pytest

from odradek.protocol.batch_header import (
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    check_crc,
    read_header,
)
from odradek.protocol.compression import CompressionType
from odradek.protocol.message_set import LegacyRecord
from odradek.protocol.record import MAX_INT64, Record, payload, read_records
from odradek.protocol.record_batch import build_batch
from odradek.storage.cleaning.cleaned_batch import (
    batch_of,
    batch_of_old_records,
    delete_horizon,
    empty_batch_of,
)
from odradek.storage.cleaning.record_spans import record_spans

CODECS = [CompressionType.NONE, CompressionType.GZIP]
NO_HORIZON = -1


def old(
    offset: int, timestamp_ms: int, value: bytes | None = b"v", *, stamped: bool = False
) -> LegacyRecord:
    return LegacyRecord(b"k%d" % offset, value, timestamp_ms, offset, 1, stamped)


def read(header: BatchHeader, batch: bytearray) -> list[tuple[bytes | None, int, int]]:
    """Key, timestamp and offset of each record, of a batch that says what it has."""
    assert read_header(batch) == header._replace(crc=read_header(batch).crc)
    assert header.size_bytes == len(batch)
    check_crc(batch, read_header(batch))
    return [(record.key, record.timestamp_ms, record.offset) for record in read_records(batch)]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("horizon_ms", [NO_HORIZON, 0, 9_000])
def test_records_of_old_formats_keep_offsets_and_timestamps(
    codec: CompressionType, horizon_ms: int
) -> None:
    kept = [old(10, 500), old(12, 700), old(17, 600, None)]
    header, batch = batch_of_old_records(kept, codec, horizon_ms)
    assert read(header, batch) == [(b"k10", 500, 10), (b"k12", 700, 12), (b"k17", 600, 17)]
    assert (header.base_offset, header.last_offset, header.record_count) == (10, 17, 3)
    assert header.max_timestamp == 700
    assert header.compression is codec
    assert header.base_timestamp == (500 if horizon_ms == NO_HORIZON else horizon_ms)
    assert header.has_delete_horizon == (horizon_ms != NO_HORIZON)


def test_the_timestamps_of_old_records_are_still_those_of_the_broker() -> None:
    header, batch = batch_of_old_records(
        [old(10, 500, stamped=True), old(11, 500, stamped=True)], CompressionType.NONE, NO_HORIZON
    )
    assert header.is_log_append_time
    assert read(header, batch) == [(b"k10", 500, 10), (b"k11", 500, 11)]


def stored(timestamps_ms: Sequence[int], codec: CompressionType) -> bytearray:
    """A batch at offset 10 of an idempotent producer in a transaction."""
    records = [Record(b"k%d" % n, b"v", at_ms) for n, at_ms in enumerate(timestamps_ms)]
    return build_batch(
        records,
        base_offset=10,
        compression=codec,
        producer_id=4,
        producer_epoch=5,
        base_sequence=6,
        is_transactional=True,
    )


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("horizon_ms", [NO_HORIZON, 0, 9_000])
@pytest.mark.parametrize("kept", [[0], [2], [0, 2], [1, 2], [0, 1, 2]])
def test_a_batch_that_loses_records_keeps_the_others_as_they_were(
    codec: CompressionType, horizon_ms: int, kept: list[int]
) -> None:
    timestamps_ms = [500, 90_000, 400]
    batch = stored(timestamps_ms, codec)
    before = read_header(batch)
    data = payload(batch, before)
    spans = record_spans(data, before)
    header, after = batch_of(before, data, [spans[number] for number in kept], horizon_ms)
    assert read(header, after) == [
        (b"k%d" % number, timestamps_ms[number], 10 + number) for number in kept
    ]
    assert header.record_count == len(kept)
    assert header.max_timestamp == max(timestamps_ms[number] for number in kept)
    assert (header.base_offset, header.last_offset) == (10, 12)
    assert (header.producer_id, header.producer_epoch, header.last_sequence) == (4, 5, 8)
    assert header.compression is codec
    assert header.is_transactional
    assert header.has_delete_horizon == (horizon_ms != NO_HORIZON)
    first_ms = timestamps_ms[kept[0]]
    assert header.base_timestamp == (first_ms if horizon_ms == NO_HORIZON else horizon_ms)


def test_an_empty_batch_keeps_its_last_offset_and_sequence() -> None:
    before = read_header(stored([500, 600, 700], CompressionType.GZIP))
    horizon = before._replace(attributes=before.attributes | DELETE_HORIZON_BIT)
    header, batch = empty_batch_of(horizon)
    assert read(header, batch) == []
    assert len(batch) == HEADER_BYTES
    assert header.attributes == TRANSACTIONAL_BIT
    assert (header.base_offset, header.last_offset, header.last_sequence) == (10, 12, 8)
    assert header.base_timestamp == NO_TIMESTAMP


def test_a_horizon_that_no_timestamp_can_hold_is_none() -> None:
    assert delete_horizon(MAX_INT64 - 1, 1) == MAX_INT64
    assert delete_horizon(MAX_INT64, 1) == NO_TIMESTAMP
