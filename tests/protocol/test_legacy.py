"""Message sets of magic 0 and 1: Apache Kafka's bytes, what wrappers mean, and what is refused."""

import contextlib
import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.protocol.batch_header import CorruptRecordError
from odradek.protocol.compression import CompressionType
from odradek.protocol.legacy import (
    build_message_set,
    check_entry_crc,
    read_entries,
    read_message_set,
)
from odradek.protocol.message_set import InvalidRecordError, LegacyRecord
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.support import message_sets as by_hand
from tests.support.hostile_bytes import MEMORY_BASE, feed, lies, peak_memory
from tests.support.kafka_legacy import (
    APPEND_TIME,
    BASE_TIME,
    LEGACY_CODECS,
    as_read,
    golden_names,
    golden_set,
    legacy_records,
)
from tests.support.message_sets import GZIP, LOG_APPEND_TIME, LZ4, message, wrapper
from tests.support.reference_codec import Length

NONE = CompressionType.NONE
EVERY_GOLDEN = pytest.mark.parametrize("name", golden_names())
EVERY_FORMAT = pytest.mark.parametrize(
    ("magic", "codec"), [(magic, codec) for magic in (0, 1) for codec in LEGACY_CODECS]
)


def read(data: bytes) -> list[LegacyRecord]:
    return list(read_message_set(data))


def offsets(data: bytes) -> list[int]:
    return [record.offset for record in read(data)]


def by_hand_read(data: bytes) -> list[tuple[object, ...]]:
    return [
        (one.offset, one.magic, one.timestamp_ms, one.key, one.value) for one in by_hand.flat(data)
    ]


def lengths_of(data: bytes) -> list[Length]:
    """Where the sizes of an uncompressed set stand: message, key, value."""
    found = []
    for entry in read_entries(data):
        key_at = entry.position + (26 if entry.magic else 18)
        (key_size,) = struct.unpack_from(">i", data, key_at)
        value_at = key_at + 4 + max(key_size, 0)
        found += [Length(at, 4, "i") for at in (entry.position + 8, key_at, value_at)]
    return found


# -- Apache Kafka's bytes


@EVERY_GOLDEN
def test_records_that_kafka_wrote_are_read(name: str) -> None:
    magic, _, append_time = golden_names()[name]
    expected = as_read(legacy_records(), magic, append_time)
    assert list(read_message_set(golden_set(name), whole=True)) == expected


@EVERY_GOLDEN
def test_a_set_is_built_as_kafka_builds_it(name: str) -> None:
    magic, codec, append_time = golden_names()[name]
    built = build_message_set(
        legacy_records(), magic=magic, compression=codec, log_append_time_ms=append_time
    )
    if codec in (CompressionType.NONE, CompressionType.LZ4):  # gzip and snappy have their freedoms
        assert built == golden_set(name)
    assert list(read_message_set(built)) == as_read(legacy_records(), magic, append_time)


@EVERY_GOLDEN
def test_the_head_of_what_we_compress_is_kafkas(name: str) -> None:
    magic, codec, append_time = golden_names()[name]
    built = build_message_set(
        legacy_records(), magic=magic, compression=codec, log_append_time_ms=append_time
    )
    ours, kafkas = next(read_entries(built)), next(read_entries(golden_set(name)))
    assert ours == kafkas._replace(size_bytes=ours.size_bytes, crc=ours.crc)


def test_entries_of_an_uncompressed_set_are_its_records() -> None:
    data = golden_set("magic-1-none")
    entries = list(read_entries(data, whole=True))
    assert [entry.offset for entry in entries] == [record.offset for record in legacy_records()]
    assert [entry.timestamp_ms for entry in entries] == [
        record.timestamp_ms for record in legacy_records()
    ]
    assert [entry.number for entry in entries] == list(range(20))
    assert sum(entry.size_bytes for entry in entries) == len(data)
    for entry in entries:
        assert (entry.magic, entry.compression, entry.is_log_append_time) == (1, NONE, False)
        check_entry_crc(data, entry)


def test_the_entry_of_a_compressed_set_has_the_last_offset_and_the_newest_time() -> None:
    (entry,) = read_entries(golden_set("magic-1-gzip"))
    assert entry.compression is CompressionType.GZIP
    assert entry.offset == legacy_records()[-1].offset
    assert entry.timestamp_ms == max(record.timestamp_ms for record in legacy_records())
    (stamped,) = read_entries(golden_set("magic-1-append-time-gzip"))
    assert (stamped.timestamp_ms, stamped.is_log_append_time) == (APPEND_TIME, True)


def test_an_entry_of_magic_0_has_no_time() -> None:
    (entry,) = read_entries(golden_set("magic-0-snappy"))
    assert (entry.timestamp_ms, entry.is_log_append_time) == (-1, False)


def test_log_append_time_leaves_no_trace_in_magic_0() -> None:
    for codec in LEGACY_CODECS:
        plain = build_message_set(legacy_records(), magic=0, compression=codec)
        assert plain == build_message_set(
            legacy_records(), magic=0, compression=codec, log_append_time_ms=APPEND_TIME
        )


# -- what wrappers mean


@pytest.mark.parametrize("codec", LEGACY_CODECS[1:])
def test_magic_0_carries_absolute_offsets_inside(codec: CompressionType) -> None:
    inside = message(b"a", magic=0, offset=70) + message(b"b", magic=0, offset=75)
    assert offsets(wrapper(inside, codec, magic=0, offset=75)) == [70, 75]


@pytest.mark.parametrize("codec", LEGACY_CODECS[1:])
def test_magic_1_counts_back_from_the_wrappers_offset(codec: CompressionType) -> None:
    inside = message(b"a", offset=0) + message(b"b", offset=3)
    assert offsets(wrapper(inside, codec, offset=75)) == [72, 75]


def test_offsets_inside_a_wrapper_that_has_0_count_as_they_are() -> None:
    inside = message(b"a", offset=0) + message(b"b", offset=1)
    assert offsets(wrapper(inside, GZIP, offset=0)) == [0, 1]


def test_a_wrapper_with_log_append_time_gives_its_time_to_all() -> None:
    inside = by_hand.message_set(b"a", b"b", at_ms=BASE_TIME)
    stamped = wrapper(inside, GZIP, offset=1, timestamp_ms=7, attributes=LOG_APPEND_TIME)
    assert {(one.timestamp_ms, one.is_log_append_time) for one in read(stamped)} == {(7, True)}
    plain = wrapper(inside, GZIP, offset=1, timestamp_ms=7)
    assert {one.timestamp_ms for one in read(plain)} == {BASE_TIME, BASE_TIME + 1000}
    assert not any(one.is_log_append_time for one in read(plain))


def test_the_bit_of_log_append_time_means_nothing_with_magic_0() -> None:
    (record,) = read(message(b"a", magic=0, attributes=LOG_APPEND_TIME))
    assert (record.timestamp_ms, record.is_log_append_time) == (-1, False)


def test_messages_and_wrappers_of_both_magics_follow_each_other() -> None:
    data = (
        message(b"a", magic=0, offset=1)
        + wrapper(message(b"b", magic=0, offset=2), LZ4, magic=0, offset=2)
        + message(b"c", offset=3)
        + wrapper(by_hand.message_set(b"d", b"e"), LZ4, offset=5)
    )
    assert [(one.offset, one.value) for one in read(data)] == [
        (1, b"a"), (2, b"b"), (3, b"c"), (4, b"d"), (5, b"e")
    ]  # fmt: skip


def test_lz4_of_magic_0_is_read_with_the_old_and_with_the_right_checksum() -> None:
    inside = message(b"a", magic=0)
    for frame_of in (0, 1):
        frame = by_hand.compressed(inside, LZ4, magic=frame_of)
        assert read(message(frame, None, magic=0, attributes=LZ4))[0].value == b"a"


def test_lz4_of_magic_1_is_refused_with_the_old_checksum() -> None:
    frame = by_hand.compressed(message(b"a"), LZ4, magic=0)
    with pytest.raises(CorruptRecordError, match="message 0 at byte 0: not lz4 data"):
        read(message(frame, None, attributes=LZ4))


def test_a_key_of_a_wrapper_and_unused_attribute_bits_are_ignored() -> None:
    data = wrapper(message(b"a", attributes=0xF0 - 256), GZIP, key=b"wrapper", attributes=0x70)
    assert read(data)[0].value == b"a"


# -- what is refused


def test_a_wrong_checksum_is_refused_unless_it_is_not_asked_for() -> None:
    data = message(b"one") + message(b"two", offset=1)
    broken = data[:-1] + b"?"
    with pytest.raises(CorruptRecordError, match=r"^message 1 at byte 40: stored CRC 0x"):
        read(broken)
    assert [one.value for one in read_message_set(broken, check_crc=False)] == [b"one", b"tw?"]


def test_a_wrong_checksum_inside_is_refused_unless_it_is_not_asked_for() -> None:
    data = wrapper(message(b"one") + message(b"two", offset=1)[:-1] + b"?", GZIP, offset=1)
    with pytest.raises(
        CorruptRecordError, match=r"^message 0 at byte 0, inside: message 1 at byte 40: stored CRC"
    ):
        read(data)
    assert [one.value for one in read_message_set(data, check_crc=False)] == [b"one", b"tw?"]


def test_flipping_any_byte_behind_the_size_breaks_the_checksum() -> None:
    data = message(b"value")
    for position in range(12, len(data)):
        broken = bytearray(data)
        broken[position] ^= 0x10
        with pytest.raises(CorruptRecordError, match="message 0 at byte 0: "):
            read(bytes(broken))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (wrapper(wrapper(message(b"a"), GZIP), GZIP), "inside: .* 0 at byte 0: compressed in a wr"),
        (message(None, None, attributes=GZIP), "a wrapper without a value"),
        (wrapper(b"", GZIP), "inside: message 0 at byte 0: the wrapper holds no message"),
        (wrapper(message(b"a", magic=0), GZIP), "magic 0 in a wrapper of magic 1"),
        (wrapper(message(b"a"), GZIP, magic=0), "magic 1 in a wrapper of magic 0"),
        (wrapper(message(b"a", offset=9), GZIP, offset=8), "offset 9 is above the wrapper's, 8"),
        (message(b"z", attributes=4), "compression id 4 is not allowed with magic 1"),
        (message(b"z", magic=0, attributes=4), "compression id 4 is not allowed with magic 0"),
        (message(b"?", attributes=5), "compression id 5 is not allowed"),
        (
            wrapper(message(b"a", offset=2**63 - 1) + message(b"b", offset=0), GZIP, offset=1),
            "its offset 9223372036854775808 does not fit 64 bits",
        ),
    ],
)
def test_sound_bytes_that_say_what_they_may_not_are_invalid(data: bytes, why: str) -> None:
    with pytest.raises(InvalidRecordError, match=f"^message 1 at byte 42.*{why}"):
        read(message(b"first") + data)


def test_a_v2_batch_is_no_message() -> None:
    batch = bytes(build_batch([Record(b"k", b"v", 1)]))
    with pytest.raises(InvalidRecordError, match="message 1 at byte 38: a batch of magic 2"):
        read(message(b"a") + batch)


@pytest.mark.parametrize("magic", [3, -1])
def test_an_unknown_magic_is_refused(magic: int) -> None:
    with pytest.raises(CorruptRecordError, match=f"byte 0: magic {magic % 256} is not known"):
        read(message(b"a", magic=magic))


@pytest.mark.parametrize(
    ("magic", "size", "why"),
    [
        (0, 13, "size 13 is too small"),
        (1, 21, "size 21 is too small for magic 1"),
        (1, -1, "size -1 is too small"),
        (1, 0x7FFFFFFF, "size 2147483647 is too large"),
    ],
)
def test_a_size_that_no_message_has_is_refused(magic: int, size: int, why: str) -> None:
    data = bytearray(message(b"a" * 30, magic=magic))
    struct.pack_into(">i", data, 8, size)
    with pytest.raises(CorruptRecordError, match=f"message 0 at byte 0: {why}"):
        list(read_entries(data))


def sealed(content: bytes) -> bytes:
    return struct.pack(">qiI", 0, len(content) + 4, zlib.crc32(content)) + content


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        (struct.pack(">i3si", 3, b"key", 4) + b"val", "a field claims 4 bytes, 3 are left"),
        (struct.pack(">ii", 0x7FFFFFFF, -1), "a field claims 2147483647 bytes, 4 are left"),
        (struct.pack(">i4s", 3, b"keyy"), "no room is left for its value"),
    ],
)
def test_a_field_that_claims_more_than_there_is_is_refused(rest: bytes, why: str) -> None:
    with pytest.raises(CorruptRecordError, match=f"message 0 at byte 0: {why}"):
        read(sealed(b"\x00\x00" + rest))


def test_any_size_below_zero_is_null_and_bytes_behind_the_value_are_left_alone() -> None:
    (record,) = read(sealed(b"\x00\x00" + struct.pack(">ii", -5, -7) + b"more"))
    assert (record.key, record.value) == (None, None)


@EVERY_FORMAT
def test_a_last_message_cut_at_any_byte_is_left_out_or_refused(
    magic: int, codec: CompressionType
) -> None:
    first = bytes(build_message_set([Record(b"a", b"b", 1, (), 5)], magic=magic, compression=codec))
    second = bytes(
        build_message_set([Record(b"c", b"d", 1, (), 6)], magic=magic, compression=codec)
    )
    for size in range(len(second)):
        cut = first + second[:size]
        assert offsets(cut) == [5]
        assert [entry.offset for entry in read_entries(cut)] == [5]
        if size:
            why = f"message 1 at byte {len(first)}: it is cut off"
            with pytest.raises(CorruptRecordError, match=why):
                list(read_message_set(cut, whole=True))


def test_a_last_message_cut_off_inside_a_wrapper_is_left_out_or_refused() -> None:
    data = wrapper(by_hand.message_set(b"a", b"b")[:-1], GZIP, offset=7)
    assert offsets(data) == [7]
    with pytest.raises(CorruptRecordError, match="inside: message 1 at byte 38: it is cut off"):
        list(read_message_set(data, whole=True))


@pytest.mark.parametrize("codec", LEGACY_CODECS[1:])
def test_what_a_wrapper_may_hold_is_bounded(codec: CompressionType) -> None:
    data = wrapper(message(bytes(100_000)), codec)
    assert len(next(read_message_set(data, max_bytes=100_100)).value or b"") == 100_000
    with pytest.raises(CorruptRecordError, match=r"message 0 at byte 0: .* more than 10000 bytes"):
        list(read_message_set(data, max_bytes=10_000))


# -- hostile bytes


@pytest.mark.parametrize("magic", [0, 1])
def test_hostile_bytes_are_a_value_or_one_error(magic: int) -> None:
    data = golden_set(f"magic-{magic}-none")
    for check_crc in (True, False):
        feed(
            lambda data, check_crc=check_crc: list(read_message_set(data, check_crc=check_crc)),
            data,
            CorruptRecordError,
            lengths_of(data),
        )


@pytest.mark.parametrize("magic", [0, 1])
def test_hostile_bytes_in_a_wrapper_are_a_value_or_one_error(magic: int) -> None:
    inside = by_hand.message_set(b"one", b"two", None, magic=magic)
    refused = feed(
        lambda data: list(
            read_message_set(wrapper(data, GZIP, magic=magic, offset=9), check_crc=False)
        ),
        inside,
        CorruptRecordError,
        lengths_of(inside),
    )
    assert any("message 0 at byte 0, inside: message 2 at byte" in str(one) for one in refused)


@settings(deadline=None)
@given(st.binary(max_size=120), st.sampled_from([0, 1]), st.integers(0, 15))
def test_arbitrary_content_of_a_message_raises_nothing_else(
    content: bytes, magic: int, attributes: int
) -> None:
    with contextlib.suppress(CorruptRecordError):
        read(sealed(bytes([magic, attributes]) + content) + content)


def test_lies_cost_no_memory() -> None:
    data = golden_set("magic-1-none")
    lied = list(lies(data, lengths_of(data)))
    longest = max(map(len, lied))

    def read_all(_: bytes) -> None:
        for each in lied:
            try:
                for _record in read_message_set(each, check_crc=False):
                    pass
            except CorruptRecordError:
                continue

    assert peak_memory(read_all, b"", CorruptRecordError) < MEMORY_BASE + longest


def test_walking_a_wrapper_of_many_messages_keeps_none_of_them() -> None:
    many = 20_000
    data = wrapper(message(b"", b"") * many, GZIP)

    def walk(data: bytes) -> None:
        assert sum(1 for _ in read_message_set(data)) == many

    walk(data)
    inside = many * len(message(b"", b""))
    assert peak_memory(walk, data, CorruptRecordError) < 3 * inside + MEMORY_BASE


# -- round trips

NULLABLE = st.none() | st.binary(max_size=40)
RECORDS = st.lists(
    st.builds(Record, NULLABLE, NULLABLE, st.integers(-1, 2**63 - 1), st.just(())),
    min_size=1,
    max_size=20,
)


@settings(deadline=None)
@given(
    RECORDS,
    st.sampled_from([0, 1]),
    st.sampled_from(LEGACY_CODECS),
    st.integers(0, 2**62),
    st.none() | st.integers(0, 2**62),
)
def test_what_is_built_is_read_and_read_by_hand(
    records: list[Record],
    magic: int,
    codec: CompressionType,
    base_offset: int,
    append_time: int | None,
) -> None:
    placed = [
        record._replace(offset=base_offset + 2 * index) for index, record in enumerate(records)
    ]
    data = build_message_set(placed, magic=magic, compression=codec, log_append_time_ms=append_time)
    found = list(read_message_set(memoryview(data), whole=True))
    assert found == as_read(placed, magic, append_time)
    assert by_hand_read(bytes(data)) == [
        (one.offset, one.magic, one.timestamp_ms, one.key, one.value) for one in found
    ]


def test_what_was_read_does_not_change_with_the_buffer() -> None:
    buffer = build_message_set([Record(b"key", b"value", 1)], magic=1)
    (record,) = read_message_set(memoryview(buffer))
    buffer[26:] = bytes(len(buffer) - 26)
    assert (record.key, record.value) == (b"key", b"value")


def test_a_set_of_no_records_is_empty() -> None:
    for codec in LEGACY_CODECS:
        assert build_message_set([], magic=1, compression=codec) == b""
    assert read(b"") == []


@pytest.mark.parametrize(("magic", "codec"), [(2, NONE), (-1, NONE), (1, CompressionType.ZSTD)])
def test_other_magics_and_zstd_are_not_built(magic: int, codec: CompressionType) -> None:
    with pytest.raises(ValueError, match=f"magic {magic} with compression"):
        build_message_set([Record(b"k", b"v", 1)], magic=magic, compression=codec)
