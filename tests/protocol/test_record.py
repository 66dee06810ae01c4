"""Records inside a batch: whole reading and skimming, and what they refuse."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.protocol.batch_header import (
    HEADER_BYTES,
    LOG_OVERHEAD,
    BatchHeader,
    CorruptRecordError,
    pack_header,
    read_header,
)
from odradek.protocol.compression import CompressionType
from odradek.protocol.primitives import write_varint
from odradek.protocol.record import Record, append_record, read_records, skim_records
from odradek.protocol.record_batch import build_batch
from tests.support.golden import APPEND_TIME, BASE_TIME, GOLDEN, golden_records

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def with_inside(inside: bytes, record_count: int) -> bytes:
    """An uncompressed batch whose records are these bytes, whatever they are."""
    header = read_header(build_batch([Record(b"", b"", 0)]))
    length = HEADER_BYTES - LOG_OVERHEAD + len(inside)
    return pack_header(header._replace(batch_length=length, record_count=record_count)) + inside


def inside_of(*records: Record) -> bytearray:
    out = bytearray()
    for delta, record in enumerate(records):
        append_record(out, record, record.timestamp_ms, delta)
    return out


@pytest.mark.parametrize("codec", CODECS)
def test_records_that_kafka_wrote_are_read(codec: str) -> None:
    batch = (GOLDEN / f"batch-{codec}.bin").read_bytes()
    assert read_header(batch).compression.name == codec.upper()
    assert list(read_records(batch)) == golden_records(100)


@pytest.mark.parametrize("codec", CODECS)
def test_skimming_sees_the_same_offsets_and_times(codec: str) -> None:
    batch = (GOLDEN / f"batch-{codec}.bin").read_bytes()
    skims, records = list(skim_records(batch)), golden_records(100)
    assert [skim.offset_delta for skim in skims] == list(range(100))
    assert [skim.timestamp_ms for skim in skims] == [record.timestamp_ms for record in records]
    assert [skim.has_key for skim in skims] == [record.key is not None for record in records]


def test_skimmed_sizes_add_up_to_the_batch() -> None:
    batch = (GOLDEN / "batch-none.bin").read_bytes()
    lengths, body_bytes = bytearray(), 0
    for skim in skim_records(batch):
        write_varint(lengths, skim.body_bytes)
        body_bytes += skim.body_bytes
    assert len(lengths) + body_bytes == len(batch) - HEADER_BYTES


def test_with_log_append_time_all_records_have_the_batchs_time() -> None:
    batch = (GOLDEN / "batch-append-time.bin").read_bytes()
    assert {record.timestamp_ms for record in read_records(batch)} == {APPEND_TIME}
    assert {skim.timestamp_ms for skim in skim_records(batch)} == {APPEND_TIME}


def test_records_without_a_time_have_minus_one() -> None:
    batch = build_batch([Record(b"a", b"", -1), Record(b"b", b"", -1)])
    assert read_header(batch).base_timestamp == -1
    assert [record.timestamp_ms for record in read_records(batch)] == [-1, -1]


def test_a_memoryview_of_a_larger_buffer_is_read() -> None:
    batch = (GOLDEN / "batch-none.bin").read_bytes()
    view = memoryview(b"before" + batch + b"behind")[6:]
    assert list(read_records(view)) == golden_records(100)


def test_what_was_read_does_not_change_with_the_buffer() -> None:
    buffer = build_batch([Record(b"key", b"value", 1)])
    (record,) = read_records(buffer)
    buffer[HEADER_BYTES:] = bytes(len(buffer) - HEADER_BYTES)
    assert (record.key, record.value) == (b"key", b"value")


def test_a_header_name_that_is_no_utf8_is_read_as_java_reads_it() -> None:
    inside = inside_of(Record(b"", b"", 0, (("ab", b""),))).replace(b"ab", b"\xffb")
    (record,) = read_records(with_inside(bytes(inside), 1))
    assert record.headers == (("\ufffdb", b""),)


@pytest.mark.parametrize("walk", [read_records, skim_records])
class TestBothWalksRefuse:
    def test_more_records_than_there_are(self, walk: object) -> None:
        inside = bytes(inside_of(Record(bytes(50), b"", 0)))
        self.check(walk, with_inside(inside, 2), "record 1 .* too early")

    def test_fewer_records_than_there_are(self, walk: object) -> None:
        inside = bytes(inside_of(Record(b"", b"", 0), Record(b"", b"", 0)))
        self.check(walk, with_inside(inside, 1), "follow the last record")

    def test_a_count_that_cannot_fit_before_walking(self, walk: object) -> None:
        self.check(walk, with_inside(bytes(70), 1_000_000_000), "claims 1000000000 records")

    def test_a_negative_count(self, walk: object) -> None:
        self.check(walk, with_inside(bytes(70), -1), "claims -1 records")

    def test_a_record_longer_than_the_batch(self, walk: object) -> None:
        self.check(walk, with_inside(b"\x7e" + bytes(10), 1), "record 0 .* claims 63 bytes")

    def test_a_key_longer_than_its_record(self, walk: object) -> None:
        inside = inside_of(Record(b"k", b"v", 0))
        inside[4] = 2 * 40
        self.check(walk, with_inside(bytes(inside) + bytes(60), 1), "claims 40 bytes")

    def test_headers_that_cannot_fit(self, walk: object) -> None:
        inside = inside_of(Record(b"k", b"v", 0))
        inside[-1] = 2 * 30
        self.check(walk, with_inside(bytes(inside), 1), "claims 30 headers")

    def test_a_header_without_a_name(self, walk: object) -> None:
        inside = inside_of(Record(b"k", b"v", 0, (("n", b"x"),)))
        inside[-4] = 1
        self.check(walk, with_inside(bytes(inside), 1), "no name")

    def test_content_that_ends_before_its_length(self, walk: object) -> None:
        inside = inside_of(Record(b"k", b"v", 0))
        inside[0] += 2
        self.check(walk, with_inside(bytes(inside) + b"\0", 1), "by its length it ends at")

    def test_a_varint_without_an_end(self, walk: object) -> None:
        self.check(walk, with_inside(b"\xff" * 20, 1), "longer than 5 bytes")

    def test_a_batch_cut_at_any_byte(self, walk: object) -> None:
        records = [Record(b"key", b"value", 7, (("name", None),)), Record(None, None, 900)]
        batch = bytes(build_batch(records))
        for size in range(HEADER_BYTES, len(batch)):
            self.check(walk, batch[:size], "batch at offset 0")

    @staticmethod
    def check(walk: object, batch: bytes, message: str) -> None:
        assert callable(walk)
        with pytest.raises(CorruptRecordError, match=message):
            list(walk(batch))


def test_the_error_names_the_batchs_offset_the_record_and_the_byte() -> None:
    inside = bytes(inside_of(Record(b"", b"", 0))) + b"\x7e" + bytes(9)
    batch = with_inside(inside, 2)
    batch = pack_header(read_header(batch)._replace(base_offset=1234)) + batch[HEADER_BYTES:]
    with pytest.raises(CorruptRecordError, match="record 1 of the batch at offset 1234, near byte"):
        list(read_records(batch))


def test_a_compressed_stream_that_is_none_is_refused_by_name() -> None:
    for codec in CODECS[1:]:
        batch = bytearray((GOLDEN / f"batch-{codec}.bin").read_bytes())
        batch[HEADER_BYTES:] = b"\x01" * (len(batch) - HEADER_BYTES)
        with pytest.raises(CorruptRecordError, match=f"batch at offset 1000: not {codec} data"):
            read_records(batch)


def test_more_content_than_allowed_is_refused() -> None:
    bomb = build_batch([Record(None, bytes(1 << 20), 0)], compression=CompressionType.ZSTD)
    assert len(bomb) < 1000
    with pytest.raises(CorruptRecordError, match="more than 100000 bytes"):
        read_records(bomb, max_bytes=100_000)


def test_flipping_any_byte_inside_never_raises_anything_else() -> None:
    records = [Record(b"key", b"value", 7, (("name", None),)), Record(None, b"x" * 70, 900)]
    for codec in CompressionType:
        sound = build_batch(records, compression=codec)
        for position in range(HEADER_BYTES, len(sound)):
            for bit in (1, 0x80):
                batch = bytearray(sound)
                batch[position] ^= bit
                assert outcome(batch) in ("read", "refused")


def outcome(batch: bytearray) -> str:
    try:
        whole, skimmed = len(list(read_records(batch))), len(list(skim_records(batch)))
    except CorruptRecordError:
        return "refused"
    assert whole == skimmed
    return "read"


BYTES = st.none() | st.binary(max_size=300)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
RECORDS = st.builds(
    Record,
    key=BYTES,
    value=BYTES,
    timestamp_ms=st.integers(-1, 1 << 62),
    headers=st.lists(st.tuples(NAMES, BYTES), max_size=4).map(tuple),
)


@settings(deadline=None)
@given(
    st.lists(RECORDS, min_size=1, max_size=90),
    st.sampled_from(CompressionType),
    st.integers(0, 1 << 60),
)
def test_records_are_read_as_they_were_built(
    records: list[Record], codec: CompressionType, base_offset: int
) -> None:
    batch = build_batch(records, compression=codec, base_offset=base_offset)
    expected = [record._replace(offset=base_offset + delta) for delta, record in enumerate(records)]
    assert list(read_records(batch)) == expected
    skims = list(skim_records(batch))
    assert [skim.timestamp_ms for skim in skims] == [record.timestamp_ms for record in records]
    assert [skim.has_key for skim in skims] == [record.key is not None for record in records]


@settings(deadline=None)
@given(st.binary(max_size=200), st.integers(0, 20))
def test_arbitrary_bytes_are_read_or_refused_alike_by_both_walks(inside: bytes, count: int) -> None:
    batch = with_inside(inside, count)
    assert walked(list, read_records(batch)) == walked(list, skim_records(batch))


def walked(consume: object, records: object) -> int | str:
    assert callable(consume)
    try:
        return len(consume(records))
    except CorruptRecordError as error:
        return str(error)


def test_an_empty_batch_of_the_cleaner_has_no_records() -> None:
    header = read_header(build_batch([Record(b"", b"", 0)]))
    empty: BatchHeader = header._replace(record_count=0, batch_length=HEADER_BYTES - LOG_OVERHEAD)
    assert list(read_records(pack_header(empty))) == []


def test_times_far_from_the_first_records_are_kept() -> None:
    times = [BASE_TIME, 0, -1, BASE_TIME * 1000, (1 << 63) - 1]
    batch = build_batch([Record(b"", b"", each) for each in times])
    assert [record.timestamp_ms for record in read_records(batch)] == times


@pytest.mark.parametrize(
    "times", [(-2, (1 << 63) - 1), ((1 << 63) - 1, -(1 << 63)), (-(1 << 63), (1 << 63) - 1, 5)]
)
def test_times_more_than_64_bits_apart_are_kept_as_java_keeps_them(times: tuple[int, ...]) -> None:
    batch = build_batch([Record(b"", b"", each) for each in times])
    assert tuple(record.timestamp_ms for record in read_records(batch)) == times
    assert tuple(skim.timestamp_ms for skim in skim_records(batch)) == times


def test_a_time_beyond_64_bits_wraps_around_as_in_java() -> None:
    header = read_header(build_batch([Record(b"", b"", 0)]))
    inside = bytes(inside_of(Record(b"", b"", 63)))
    batch = pack_header(header._replace(base_timestamp=(1 << 63) - 1)) + inside
    assert [record.timestamp_ms for record in read_records(batch)] == [-(1 << 63) + 62]
    assert [skim.timestamp_ms for skim in skim_records(batch)] == [-(1 << 63) + 62]
