"""Batches into Arrow: the same records as the reader that looks at each of them."""

import struct
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.pipeline.decoding import bodies as bodies_module
from odradek.pipeline.decoding import decoder as decoder_module
from odradek.pipeline.decoding import large_batches
from odradek.pipeline.decoding.batch_table import find_batches, read_table
from odradek.pipeline.decoding.bodies import read_bodies
from odradek.pipeline.decoding.columns import ALL_COLUMNS, schema_of
from odradek.pipeline.decoding.decoder import RecordDecoder
from odradek.protocol.batch_header import HEADER_BYTES, CorruptRecordError, read_header
from odradek.protocol.compression import CompressionType
from odradek.protocol.record import Record, read_records
from odradek.protocol.record_batch import build_batch
from tests.support.lengths import by_length

EVERYTHING = (0, 1 << 62)
RECORD_COUNT_AT = HEADER_BYTES - 1  # its last byte

nullable = st.none() | st.binary(max_size=300)
header = st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=70))
record = st.builds(
    Record,
    key=nullable,
    value=nullable,
    timestamp_ms=st.integers(-1, 1 << 42),
    headers=st.lists(header, max_size=3).map(tuple),
)
batch = st.builds(
    lambda records, codec, append_ms: (records, codec, append_ms),
    st.lists(record, min_size=1, max_size=12),
    st.sampled_from(CompressionType),
    st.none() | st.integers(0, 1 << 42),
)


def built(batches: Sequence[tuple[list[Record], CompressionType, int | None]]) -> bytes:
    """The batches one after another, with gaps of three offsets between them."""
    out, offset = bytearray(), 7
    for records, codec, append_ms in batches:
        out += build_batch(
            records, base_offset=offset, compression=codec, log_append_time_ms=append_ms
        )
        offset += len(records) + 3
    return bytes(out)


def decoded(
    data: bytes,
    columns: tuple[str, ...] = ALL_COLUMNS,
    between: tuple[int, int] = EVERYTHING,
    threads: ThreadPoolExecutor | None = None,
) -> pa.Table:
    positions, end = find_batches(data)
    assert end == len(data)
    table = read_table(np.frombuffer(data, np.uint8), positions)
    made = list(RecordDecoder("t", 3, columns, threads).decode(data, table, *between))
    return pa.Table.from_batches(made, schema_of(columns))


def read_one_by_one(data: bytes) -> list[dict[str, object]]:
    rows = []
    position = 0
    while position < len(data):
        header = read_header(data, position)
        rows += [
            {
                "key": each.key,
                "value": each.value,
                "topic": "t",
                "partition": 3,
                "offset": each.offset,
                "timestamp": each.timestamp_ms * 1000,
                "timestampType": int(header.is_log_append_time),
                "headers": [{"key": k, "value": v} for k, v in each.headers] or None,
            }
            for each in read_records(memoryview(data)[position:], header=header)
        ]
        position += header.size_bytes
    return rows


def rows_of(table: pa.Table) -> list[dict[str, object]]:
    if "timestamp" in table.column_names:
        at = table.column_names.index("timestamp")
        table = table.set_column(at, "timestamp", table["timestamp"].cast(pa.int64()))
    rows: list[dict[str, object]] = table.to_pylist()
    return rows


@settings(deadline=None)  # the first example imports the codecs
@given(st.lists(batch, min_size=1, max_size=6))
def test_records_are_those_that_a_reader_of_single_records_finds(batches) -> None:
    data = built(batches)
    assert rows_of(decoded(data)) == read_one_by_one(data)


@settings(deadline=None)
@given(
    st.lists(batch, min_size=1, max_size=4),
    st.lists(st.sampled_from(ALL_COLUMNS), unique=True, min_size=1),
    st.integers(0, 60),
    st.integers(0, 60),
)
def test_columns_and_offsets_can_be_chosen(batches, columns, start, end) -> None:
    data = built(batches)
    expected = [
        {name: row[name] for name in columns}
        for row in read_one_by_one(data)
        if start <= row["offset"] < end
    ]
    assert rows_of(decoded(data, tuple(columns), (start, end))) == expected


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(batch, min_size=1, max_size=5), st.integers(1, 400), st.integers(0, 1000))
def test_a_batch_that_is_too_large_decompressed_is_decompressed_in_parts(
    batches, part_bytes, at_most
) -> None:
    data = built(batches)
    whole = decoded(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bodies_module, "MAX_DECOMPRESSED_BYTES", at_most)
        patch.setattr(large_batches, "_PART_BYTES", part_bytes)
        assert decoded(data).combine_chunks() == whole.combine_chunks()
        with ThreadPoolExecutor(2) as threads:
            assert decoded(data, threads=threads).combine_chunks() == whole.combine_chunks()


@pytest.mark.slow
@pytest.mark.parametrize(
    "codec",
    by_length([CompressionType.ZSTD], [each for each in CompressionType if each]),
)
def test_a_batch_of_300_mb_is_decoded(codec: CompressionType) -> None:
    value = bytes(30_000_000)
    data = built([([Record(None, value, 1)] * 10, codec, None)])
    positions, _ = find_batches(data)
    table = read_table(np.frombuffer(data, np.uint8), positions)
    sizes = [
        len(each.as_py())
        for made in RecordDecoder("t", 3, ("value",)).decode(data, table, *EVERYTHING)
        for each in made["value"]
    ]
    assert sizes == [len(value)] * 10


@pytest.mark.parametrize("change", [-1, 1])
def test_a_large_batch_with_another_number_of_records_is_an_error(change: int) -> None:
    records = [Record(None, b"x" * 100, 1)] * 5
    data = bytearray(built([(records, CompressionType.ZSTD, None)]))
    data[RECORD_COUNT_AT] += change
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bodies_module, "MAX_DECOMPRESSED_BYTES", 200)
        patch.setattr(large_batches, "_PART_BYTES", 150)
        with pytest.raises(CorruptRecordError, match="the batch at offset 7 "):
            decoded(bytes(data))


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(batch, min_size=2, max_size=5))
def test_a_large_batch_is_decoded_part_by_part(batches) -> None:
    data = built(batches)
    whole = decoded(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoder_module, "_CHUNK_RECORDS", 3)
        assert decoded(data).combine_chunks() == whole.combine_chunks()


def test_many_batches_are_walked_side_by_side() -> None:
    codecs = (CompressionType.NONE, CompressionType.LZ4)
    sizes = [1 + number % 17 for number in range(400)]
    data = built(
        [
            ([Record(None, bytes([n % 256]) * (n % 150), n) for n in range(size)], codec, None)
            for size, codec in zip(sizes, cycle(codecs), strict=False)
        ]
    )
    with ThreadPoolExecutor(2) as threads:
        assert rows_of(decoded(data, threads=threads)) == read_one_by_one(data)


def test_large_records_are_found_among_small_ones_of_many_batches() -> None:
    sizes = (0, 1, 60, 8190, 8191, 8192, 70_000)
    data = built(
        [
            (
                [Record(None, bytes(size + n % 3), n) for size in sizes[n % 5 :]],
                CompressionType.NONE,
                None,
            )
            for n in range(200)
        ]
    )
    assert rows_of(decoded(data)) == read_one_by_one(data)


@pytest.mark.parametrize("threads", [None, ThreadPoolExecutor(2)])
def test_large_decompressed_batches_are_decoded_in_several_buffers(
    threads: ThreadPoolExecutor | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies_module, "_MAX_BUFFER_BYTES", 2000)
    monkeypatch.setattr(bodies_module, "_TASK_BYTES", 500)
    data = built(
        [
            ([Record(b"k", bytes(n * 37 % 900), n)] * (1 + n % 4), codec, None)
            for n, codec in zip(range(150), cycle(CompressionType), strict=False)
        ]
    )
    assert rows_of(decoded(data, threads=threads)) == read_one_by_one(data)


def test_records_can_be_counted_without_a_column() -> None:
    data = built([([Record(None, b"x", 1)] * 5, CompressionType.ZSTD, None)] * 3)
    positions, _ = find_batches(data)
    table = read_table(np.frombuffer(data, np.uint8), positions)
    made = RecordDecoder("t", 3, ()).decode(data, table, *EVERYTHING)
    assert sum(each.num_rows for each in made) == 15


@settings(deadline=None)
@given(st.lists(batch, min_size=1, max_size=3), st.data())
def test_damaged_records_are_refused_or_read_as_by_a_reader_of_single_records(
    batches, data
) -> None:
    damaged = bytearray(built(batches))
    bodies = [
        at
        for position in find_batches(bytes(damaged))[0].tolist()
        for at in range(position + 61, position + read_header(damaged, position).size_bytes)
    ]
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.sampled_from(bodies))] ^= data.draw(st.integers(1, 255))
    raw = bytes(damaged)
    try:
        rows = rows_of(decoded(raw))
    except CorruptRecordError:
        return
    assert rows == read_one_by_one(raw)


@settings(deadline=None)
@given(st.lists(batch, min_size=1, max_size=3), st.data())
def test_damaged_headers_do_no_harm(batches, data) -> None:
    """A caller that did not ask for checksums gets an error or records, no crash and no hang."""
    damaged = bytearray(built(batches))
    positions = find_batches(bytes(damaged))[0].tolist()
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.sampled_from(positions)) + data.draw(st.integers(0, 60))
        damaged[at] ^= data.draw(st.integers(1, 255))
    raw = bytes(damaged)
    try:
        positions, _ = find_batches(raw)
        table = read_table(np.frombuffer(raw, np.uint8), positions)
        made = list(RecordDecoder("t", 0, ALL_COLUMNS).decode(raw, table, *EVERYTHING))
    except CorruptRecordError:
        return
    assert sum(each.num_rows for each in made) <= table.record_count.sum()


@pytest.mark.parametrize("size", [20, 100, 10_000])
def test_a_length_below_zero_is_refused(size: int) -> None:
    data = bytearray(built([([Record(None, bytes(size), 1)], CompressionType.NONE, None)]))
    data[61] ^= 1  # the sign
    with pytest.raises(CorruptRecordError, match="record 0 of the batch at offset 7"):
        decoded(bytes(data))


def test_an_offset_beyond_31_bits_is_refused() -> None:
    data = bytearray(built([([Record(None, bytes(20), 1)], CompressionType.NONE, None)]))
    # Offset delta 1 << 33, no key, 16 bytes of value instead of 20.
    data[64:71] = b"\x80\x80\x80\x80\x40\x01\x20"
    with pytest.raises(CorruptRecordError):
        decoded(bytes(data))


def test_a_damaged_record_is_named() -> None:
    data = bytearray(built([([Record(b"k", b"v", 1)] * 3, CompressionType.NONE, None)]))
    data[61] = 0x7F
    with pytest.raises(CorruptRecordError, match="record 0 of the batch at offset 7"):
        decoded(bytes(data))


def test_a_header_cannot_make_us_reserve_room_for_records_that_are_not_there() -> None:
    data = bytearray(built([([Record(b"k", b"v", 1)] * 3, CompressionType.NONE, None)]))
    struct.pack_into(">i", data, 57, 1 << 30)
    with pytest.raises(CorruptRecordError, match="claims 1073741824 records"):
        decoded(bytes(data))


def test_invalid_text_is_replaced_as_java_does() -> None:
    data = bytearray(
        built([([Record(None, None, 1, (("ab", b"v"),))], CompressionType.NONE, None)])
    )
    data[data.index(b"ab")] = 0xFF
    assert decoded(bytes(data))["headers"].to_pylist() == [[{"key": "\ufffdb", "value": b"v"}]]


@pytest.mark.parametrize("threads", [None, 2])
def test_small_batches_that_hold_much_are_decompressed_some_at_a_time(
    threads: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    codecs = (CompressionType.ZSTD, CompressionType.NONE) * 30
    data = built([([Record(b"k", bytes(4000), 1)], codec, None) for codec in codecs])
    expected = decoded(data)
    positions, _ = find_batches(data)
    table = read_table(np.frombuffer(data, np.uint8), positions)
    monkeypatch.setattr(bodies_module, "_MAX_BUFFER_BYTES", 10_000)
    monkeypatch.setattr(bodies_module, "_TASK_BYTES", 50_000)
    with ThreadPoolExecutor(2) as pool:
        found = list(read_bodies(data, table, pool if threads else None))
        made = decoded(data, threads=pool if threads else None)
    assert sum(some.height for some, _ in found) == 60
    assert max(len(bodies.data) for _, bodies in found) < 20_000
    assert made.num_rows == 60
    assert made.combine_chunks().equals(expected.combine_chunks())
