"""Message sets to v2 batches, and back: what is kept, what is lost, and what is refused."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.protocol.batch_header import (
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    CorruptRecordError,
    TooManyRecordsError,
    check_crc,
    read_header,
    stamp_crc,
)
from odradek.protocol.compression import CompressionType
from odradek.protocol.conversion import convert_down, convert_up
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.legacy import build_message_set, read_entries, read_message_set
from odradek.protocol.message_set import LegacyRecord
from odradek.protocol.record import Record, read_records
from odradek.protocol.record_batch import build_batch
from tests.support import message_sets as by_hand
from tests.support.hostile_bytes import MEMORY_BASE, feed, peak_memory
from tests.support.kafka_legacy import (
    APPEND_TIME,
    BASE_TIME,
    LEGACY_CODECS,
    as_read,
    golden_names,
    golden_set,
    legacy_records,
)
from tests.support.message_sets import GZIP, LOG_APPEND_TIME, SNAPPY, message, wrapper
from tests.support.reference_codec import Length

NONE, ZSTD = CompressionType.NONE, CompressionType.ZSTD
TWO = [Record(b"a", b"1", BASE_TIME), Record(b"b", b"2", BASE_TIME + 5)]


def numbered(records: Sequence[Record]) -> list[Record]:
    """As they are found in a batch of their own."""
    return [record._replace(offset=index) for index, record in enumerate(records)]


def refusal(data: bytes, **options: bool | int) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        convert_up(data, **options)  # type: ignore[arg-type] # one of each
    return caught.value.code


# -- up


@pytest.mark.parametrize("name", golden_names())
def test_kafkas_sets_become_one_batch_with_their_codec(name: str) -> None:
    magic, codec, append_time = golden_names()[name]
    batch = convert_up(golden_set(name))
    header = read_header(batch)
    check_crc(batch, header)
    assert header.size_bytes == len(batch)
    assert (header.compression, header.record_count, header.base_offset) == (codec, 20, 0)
    assert (header.producer_id, header.base_sequence) == (NO_PRODUCER_ID, NO_SEQUENCE)
    assert not header.is_log_append_time  # the log stamps it
    expected = as_read(legacy_records(), magic, append_time)
    found = list(read_records(batch))
    assert [record.offset for record in found] == list(range(20))
    assert [(record.key, record.value, record.timestamp_ms) for record in found] == [
        (record.key, record.value, record.timestamp_ms) for record in expected
    ]
    assert header.max_timestamp == max(record.timestamp_ms for record in expected)


def test_offsets_of_a_producer_mean_nothing() -> None:
    for offsets in ((0, 0), (5, 3), (-1, -1)):
        data = b"".join(message(b"v", offset=offset) for offset in offsets)
        assert [record.offset for record in read_records(convert_up(data))] == [0, 1]


def test_the_topics_codec_is_taken_at_once() -> None:
    for data in (golden_set("magic-1-none"), golden_set("magic-0-lz4")):
        assert read_header(convert_up(data, compression=ZSTD)).compression is ZSTD
        assert read_header(convert_up(data, compression=NONE)).compression is NONE


def test_a_last_message_that_is_cut_off_is_trimmed() -> None:
    data = message(b"whole") + message(b"cut")[:-1]
    assert [record.value for record in read_records(convert_up(data))] == [b"whole"]


def test_without_a_whole_message_there_is_no_batch() -> None:
    for data in (b"", b"few bytes", message(b"cut")[:-1]):
        assert convert_up(data) == b""


@pytest.mark.parametrize(
    "data",
    [
        message(b"a") + wrapper(message(b"b"), GZIP),
        wrapper(message(b"a"), GZIP) + message(b"b"),
        wrapper(message(b"a"), GZIP) + wrapper(message(b"b"), GZIP),
        wrapper(message(b"a"), GZIP) + wrapper(message(b"b"), SNAPPY),
    ],
)
def test_a_wrapper_must_be_alone(data: bytes) -> None:
    assert refusal(data) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    "data",
    [
        message(b"a", magic=0) + message(b"b"),
        message(b"a") + message(b"b", magic=0),
        wrapper(message(b"a", magic=0), GZIP),
        wrapper(message(b"a"), GZIP, magic=0),
        message(b"a") + bytes(build_batch(TWO)),
    ],
)
def test_magics_do_not_mix(data: bytes) -> None:
    assert refusal(data) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    "data",
    [
        wrapper(wrapper(message(b"a"), GZIP), GZIP),
        wrapper(b"", GZIP),
        message(None, None, attributes=GZIP),
        message(b"zstd", attributes=4),
        message(b"no codec", attributes=7),
        wrapper(message(b"a", offset=5), GZIP, offset=3),
    ],
)
def test_what_kafka_calls_an_invalid_record_is_refused(data: bytes) -> None:
    assert refusal(data) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    "data",
    [
        message(b"a")[:-1] + b"?",
        message(b"a") + message(b"b")[:-1] + b"?",
        wrapper(message(b"a")[:-1] + b"?", GZIP),
        message(b"no gzip", attributes=GZIP),
        message(b"a", magic=3),
    ],
)
def test_broken_bytes_are_a_corrupt_record(data: bytes) -> None:
    with pytest.raises(CorruptRecordError, match=r"message \d at byte \d+"):
        convert_up(data)


def test_a_wrong_checksum_counts_before_what_is_not_allowed() -> None:
    data = message(b"a", magic=0) + message(b"b")[:-1] + b"?"
    with pytest.raises(CorruptRecordError, match="message 1 at byte 30: stored CRC"):
        convert_up(data)


def test_log_append_time_from_a_producer_is_refused_where_the_topic_has_it() -> None:
    data = wrapper(message(b"a"), GZIP, attributes=LOG_APPEND_TIME, timestamp_ms=7)
    assert refusal(data, log_append_time=True) is ErrorCode.INVALID_TIMESTAMP
    (record,) = read_records(convert_up(data))
    assert record.timestamp_ms == 7


def test_log_append_time_from_a_producer_without_a_time_is_refused() -> None:
    data = message(b"a", attributes=LOG_APPEND_TIME, timestamp_ms=-1)
    assert refusal(data) is ErrorCode.INVALID_TIMESTAMP
    assert convert_up(message(b"a", magic=0, attributes=LOG_APPEND_TIME))  # no such bit there


def test_a_time_before_minus_one_is_refused() -> None:
    assert refusal(message(b"a", timestamp_ms=-2)) is ErrorCode.INVALID_TIMESTAMP
    (record,) = read_records(convert_up(message(b"a", timestamp_ms=-1)))
    assert record.timestamp_ms == -1


def test_a_message_may_be_as_large_as_the_topic_allows_and_no_larger() -> None:
    data = message(b"a") + message(b"b" * 100)
    largest = len(message(b"b" * 100))
    assert convert_up(data, max_message_bytes=largest)
    assert refusal(data, max_message_bytes=largest - 1) is ErrorCode.MESSAGE_TOO_LARGE


def test_what_a_wrapper_may_hold_is_bounded() -> None:
    with pytest.raises(CorruptRecordError, match="more than 10000 bytes"):
        convert_up(wrapper(message(bytes(100_000)), GZIP), max_bytes=10_000)


def test_many_small_messages_cost_memory_in_proportion() -> None:
    many = 10_000
    data = wrapper(message(b"", b"") * many, GZIP)
    convert_up(data)
    inside = many * len(message(b"", b""))
    assert peak_memory(convert_up, data, CorruptRecordError) < 3 * inside + MEMORY_BASE


def test_hostile_bytes_become_a_batch_or_an_error() -> None:
    data = golden_set("magic-1-none")
    sizes = [Length(entry.position + 8, 4, "i") for entry in read_entries(data)]
    feed(convert_up, data, (CorruptRecordError, ApiError), sizes)
    feed(convert_up, golden_set("magic-0-lz4"), (CorruptRecordError, ApiError))


# -- down


def down(batches: bytes | bytearray, magic: int, first_offset: int = 0) -> list[LegacyRecord]:
    converted = convert_down(batches, magic=magic, first_offset=first_offset)
    return list(read_message_set(converted, whole=True))


EVERY_FORMAT = pytest.mark.parametrize(
    ("magic", "codec"), [(magic, codec) for magic in (0, 1) for codec in LEGACY_CODECS]
)


@EVERY_FORMAT
def test_a_batch_becomes_messages_with_its_offsets_and_codec(
    magic: int, codec: CompressionType
) -> None:
    with_headers = [record._replace(headers=(("name", b"x"),)) for record in TWO]
    batch = build_batch(
        with_headers,
        base_offset=70,
        compression=codec,
        producer_id=9,
        producer_epoch=1,
        base_sequence=4,
        is_transactional=True,
    )
    converted = convert_down(batch, magic=magic, first_offset=70)
    expected = [record._replace(offset=70 + index) for index, record in enumerate(TWO)]
    assert list(read_message_set(converted, whole=True)) == as_read(expected, magic)
    entries = list(read_entries(converted))
    assert len(entries) == (2 if codec is NONE else 1)
    assert {entry.compression for entry in entries} == {codec}
    assert converted == build_message_set(expected, magic=magic, compression=codec)


@EVERY_FORMAT
def test_log_append_time_goes_down_with_magic_1_only(magic: int, codec: CompressionType) -> None:
    batch = build_batch(TWO, compression=codec, log_append_time_ms=APPEND_TIME)
    assert down(batch, magic) == as_read(numbered(TWO), magic, APPEND_TIME)


def test_records_before_the_first_offset_are_left_out_of_uncompressed_batches() -> None:
    batch = build_batch(TWO * 2, base_offset=10)
    assert [record.offset for record in down(batch, 1, first_offset=12)] == [12, 13]
    assert down(batch, 1, first_offset=14) == []


def test_records_before_the_first_offset_stay_in_compressed_batches() -> None:
    batch = build_batch(TWO * 2, base_offset=10, compression=CompressionType.GZIP)
    assert [record.offset for record in down(batch, 1, first_offset=12)] == [10, 11, 12, 13]


def test_control_batches_are_left_out() -> None:
    marker = build_batch(
        [Record(bytes(4), bytes(6), 1)], base_offset=2, producer_id=9, producer_epoch=0,
        is_transactional=True, is_control=True,
    )  # fmt: skip
    data = build_batch(TWO) + marker + build_batch(TWO, base_offset=3)
    assert [record.offset for record in down(data, 0)] == [0, 1, 3, 4]
    assert convert_down(marker, magic=0, first_offset=2) == b""


def test_a_cut_off_last_batch_is_left_out() -> None:
    first, second = build_batch(TWO), build_batch(TWO, base_offset=2)
    for size in range(len(second)):
        assert [record.offset for record in down(first + second[:size], 1)] == [0, 1]


def test_zstd_is_refused_at_the_beginning_and_ends_the_answer_later() -> None:
    plain = build_batch(TWO)
    packed = build_batch(TWO, base_offset=2, compression=ZSTD)
    marker = build_batch([Record(bytes(4), bytes(6), 1)], producer_id=9, is_control=True)
    for data in (packed, marker + packed, packed + plain):
        with pytest.raises(ApiError, match="offset 2 is compressed with zstd") as caught:
            convert_down(data, magic=1, first_offset=0)
        assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert [record.offset for record in down(plain + packed + plain, 1)] == [0, 1]


def test_zstd_in_an_old_message_is_refused_too() -> None:
    with pytest.raises(ApiError) as caught:
        convert_down(message(b"z", attributes=4), magic=1, first_offset=0)
    assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("name", golden_names())
def test_stored_sets_of_a_low_enough_magic_stay_as_they_are(name: str) -> None:
    stored = golden_set(name)
    assert convert_down(stored, magic=1, first_offset=2000) == stored


@pytest.mark.parametrize("codec", LEGACY_CODECS)
def test_stored_magic_1_becomes_magic_0(codec: CompressionType) -> None:
    stored = golden_set(f"magic-1-{codec.name.lower()}")
    converted = convert_down(stored, magic=0, first_offset=0)
    if codec in (NONE, CompressionType.LZ4):
        assert converted == golden_set(f"magic-0-{codec.name.lower()}")
    assert list(read_message_set(converted)) == as_read(legacy_records(), 0)


def test_the_first_offset_holds_for_uncompressed_messages_that_are_rebuilt() -> None:
    last = legacy_records()[-1].offset
    assert [one.offset for one in down(golden_set("magic-1-none"), 0, last)] == [last]
    assert len(down(golden_set("magic-1-gzip"), 0, last)) == 20


def test_a_log_of_all_formats_is_converted_in_order() -> None:
    stored = (
        message(b"0", magic=0, offset=0)
        + wrapper(by_hand.message_set(b"1", b"2"), GZIP, offset=2)
        + build_batch([Record(None, b"3", 7)], base_offset=3, compression=CompressionType.SNAPPY)
    )
    for magic in (0, 1):
        found = down(stored, magic)
        assert [(one.offset, one.value) for one in found] == [
            (0, b"0"), (1, b"1"), (2, b"2"), (3, b"3")
        ]  # fmt: skip
    assert [one.magic for one in down(stored, 1)] == [0, 1, 1, 1]


def test_at_least_one_batch_is_converted_and_then_no_more_than_the_limit() -> None:
    batches = [bytes(build_batch(TWO, base_offset=2 * index)) for index in range(4)]
    data, size = b"".join(batches), len(batches[0])
    for limit, count in ((0, 1), (size, 1), (2 * size - 1, 1), (2 * size, 2), (4 * size, 4)):
        converted = convert_down(data, magic=1, first_offset=0, max_input_bytes=limit)
        assert len(list(read_entries(converted))) == 2 * count


def test_the_limit_does_not_end_the_search_for_the_first_message() -> None:
    marker = build_batch([Record(bytes(4), bytes(6), 1)], producer_id=9, is_control=True)
    data = marker * 5 + build_batch(TWO, base_offset=5)
    converted = convert_down(data, magic=1, first_offset=0, max_input_bytes=1)
    assert [record.offset for record in read_message_set(converted)] == [5, 6]


def test_a_time_that_only_v2_can_have_becomes_none() -> None:
    batch = build_batch([Record(b"k", b"v", -5), Record(b"k", b"v", 5)])
    assert [record.timestamp_ms for record in down(batch, 1)] == [-1, 5]


def with_base_offset(batch: bytearray, base_offset: int) -> bytearray:
    batch[:8] = base_offset.to_bytes(8, "big", signed=True)
    return batch


def test_offsets_that_no_message_can_have_are_a_corrupt_record() -> None:
    twice = wrapper(message(b"a", offset=0) + message(b"b", offset=0), GZIP, offset=5)
    for data, why in (
        (with_base_offset(build_batch(TWO), -1), "record 0: offset -1 does not follow -1"),
        (with_base_offset(build_batch(TWO), 2**63 - 1), "record 1: offset 9223372036854775808"),
        (twice, "record 1: offset 5 does not follow 5"),
    ):
        with pytest.raises(CorruptRecordError, match=why):
            convert_down(data, magic=0, first_offset=-5)


def test_a_broken_batch_is_not_given_a_new_checksum() -> None:
    batch = build_batch(TWO)
    batch[-2] ^= 1
    with pytest.raises(CorruptRecordError, match="stored CRC"):
        convert_down(batch, magic=1, first_offset=0)
    with pytest.raises(CorruptRecordError, match="stored CRC"):
        convert_down(message(b"a")[:-1] + b"?", magic=0, first_offset=0)


def test_an_empty_batch_that_the_cleaner_left_is_no_message() -> None:
    batch = build_batch(TWO)[:61]
    batch[8:12] = (49).to_bytes(4, "big")
    batch[57:61] = bytes(4)
    stamp_crc(batch)
    assert convert_down(batch, magic=1, first_offset=0) == b""


def test_hostile_bytes_become_a_set_or_an_error() -> None:
    for data in (bytes(build_batch(TWO)), golden_set("magic-1-none")):
        feed(
            lambda data: convert_down(data, magic=0, first_offset=0),
            data,
            (CorruptRecordError, ApiError),
            [Length(8, 4, "i"), Length(57, 4, "i")],
        )


@settings(deadline=None)
@given(st.binary(max_size=200), st.sampled_from([0, 1]))
def test_arbitrary_bytes_raise_nothing_else(data: bytes, magic: int) -> None:
    for convert in (
        lambda: convert_down(data, magic=magic, first_offset=0),
        lambda: convert_up(data),
    ):
        try:
            convert()
        except (ApiError, CorruptRecordError):
            continue


# -- up and down

NULLABLE = st.none() | st.binary(max_size=30)
RECORDS = st.lists(
    st.builds(Record, NULLABLE, NULLABLE, st.integers(-1, 2**62), st.just(())),
    min_size=1,
    max_size=15,
)


@settings(deadline=None)
@given(RECORDS, st.sampled_from([0, 1]), st.sampled_from(LEGACY_CODECS))
def test_what_goes_up_comes_down_again(
    records: list[Record], magic: int, codec: CompressionType
) -> None:
    sent = build_message_set(numbered(records), magic=magic, compression=codec)
    stored = convert_up(memoryview(sent))
    assert read_header(stored).compression is codec
    assert convert_down(stored, magic=magic, first_offset=0) == sent


def test_down_conversion_ends_before_the_batch_with_too_many_records() -> None:
    batches = b"".join(bytes(build_batch(TWO, base_offset=offset)) for offset in (0, 2, 4))

    def offsets(max_records: int) -> list[int]:
        made = convert_down(batches, magic=1, first_offset=0, max_records=max_records)
        return [each.offset for each in read_message_set(made)]

    assert offsets(6) == [0, 1, 2, 3, 4, 5]
    assert offsets(5) == [0, 1, 2, 3]
    assert offsets(2) == [0, 1]
    with pytest.raises(TooManyRecordsError, match="2 records"):
        offsets(1)
