"""Checks of a client's batch: each fault gets Kafka's error code; valid batches are unchanged."""

import random
import struct
from functools import partial
from typing import Any

import lz4.frame
import pytest
from crc32c import crc32c

from odradek.config.topic_config import TopicConfig
from odradek.protocol.batch_header import batch_crc, read_header, stamp_crc
from odradek.protocol.codec_libraries import lz4_cramjam, lz4_library
from odradek.protocol.compression import CompressionType, compress
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.record import Record, append_record, read_records
from odradek.protocol.record_batch import build_batch
from odradek.storage.append_rules import AppendRules, target_compression
from odradek.storage.batch_validator import (
    DENSEST_RECORDS,
    CheckedBatch,
    check_client_batch,
    read_ordinary_batch,
    without_tail,
)
from odradek.storage.record_walk import SHORT, RecordsRefusedError, WalkTooLongError
from tests.support.hostile_batches import SMALLEST_RECORD, batch_around
from tests.support.log_box import NOW_MS, batch_of

HOUR_MS = 3_600_000
CODECS = [c for c in CompressionType if c]


def rules(*, validate_records: bool = False, **settings: Any) -> AppendRules:
    return AppendRules.of(TopicConfig(**settings), validate_records=validate_records)


def check(batch: bytes, *, now_ms: int = NOW_MS, **settings: Any) -> CheckedBatch:
    return check_client_batch(memoryview(batch), rules(**settings), now_ms)


def refusal(batch: bytes, **settings: Any) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        check(batch, **settings)
    return caught.value.code


def patched(batch: bytes, position: int, layout: str, value: int) -> bytes:
    """The batch with another value in its header, under a CRC that is right."""
    data = bytearray(batch)
    struct.pack_into(layout, data, position, value)
    stamp_crc(data)
    return bytes(data)


def whole(checked: CheckedBatch) -> bytes:
    """The batch as it would be written at offset 0."""
    prefix = struct.pack(">qii", 0, checked.header.batch_length, 0)
    return b"".join([prefix, *checked.parts])


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size_bytes", [1, 56, 57, 200])
def test_a_record_of_a_compressed_batch_may_unpack_to_the_topics_limit(
    codec: CompressionType, size_bytes: int
) -> None:
    body_bytes = size_bytes + (6 if size_bytes < 64 else 7)  # attributes, deltas, lengths, headers
    batch = bytes(build_batch([Record(None, b"v" * size_bytes, NOW_MS)], compression=codec))
    assert b"".join(check(batch, max_decompressed_message_bytes=body_bytes).parts) == batch[16:]
    assert refusal(batch, max_decompressed_message_bytes=body_bytes - 1) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("spare_bytes", [1, 2, 3])
@pytest.mark.parametrize(
    ("value_bytes", "body_bytes", "length_bytes"), [(57, 63, 1), (8_184, 8_191, 2)]
)
def test_the_limit_of_a_record_does_not_count_its_length_which_may_have_spare_bytes(
    value_bytes: int, body_bytes: int, length_bytes: int, spare_bytes: int
) -> None:
    record = bytearray()
    append_record(record, Record(None, b"v" * value_bytes, NOW_MS), 0, 0)
    assert len(record) == length_bytes + body_bytes
    record[length_bytes - 1] |= 0x80
    record[length_bytes:length_bytes] = b"\x80" * (spare_bytes - 1) + b"\0"
    batch = batch_around(compress(CompressionType.ZSTD, bytes(record)), CompressionType.ZSTD, 1)
    check(batch, max_decompressed_message_bytes=body_bytes)
    assert refusal(batch, max_decompressed_message_bytes=body_bytes - 1) is ErrorCode.INVALID_RECORD


def test_a_record_that_is_not_compressed_has_no_other_limit_than_its_batch() -> None:
    batch = batch_of(b"v" * 200)
    assert b"".join(check(batch, max_decompressed_message_bytes=1).parts) == batch[16:]


BATCH = batch_of(b"one", b"two", b"three")


def test_a_sound_batch_is_written_as_it_came() -> None:
    checked = check(BATCH)
    assert b"".join(checked.parts) == BATCH[16:]
    assert checked.header == read_header(BATCH)
    assert checked.log_append_time_ms == -1


def test_the_client_s_bytes_are_not_copied() -> None:
    view = memoryview(BATCH)
    (part,) = check_client_batch(view, rules(), NOW_MS).parts
    assert isinstance(part, memoryview)
    assert part.obj is BATCH


@pytest.mark.parametrize("size", range(len(BATCH)))
def test_a_batch_that_is_cut_is_no_batch(size: int) -> None:
    assert refusal(BATCH[:size]) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("tail", [b"x", BATCH, BATCH[:-1]])
def test_exactly_one_batch_is_accepted(tail: bytes) -> None:
    assert refusal(BATCH + tail) is ErrorCode.INVALID_RECORD


OLD_MESSAGE = struct.pack(">qiIbb", 0, 14, 0, 1, 0) + bytes(8)


@pytest.mark.parametrize(
    "tail", [b"x", bytes(11), b"x" * 16, BATCH[:-1], BATCH[:16] + b"\x01", OLD_MESSAGE[:-1]]
)
def test_what_follows_a_batch_is_left_off_if_it_is_no_batch(tail: bytes) -> None:
    assert without_tail(BATCH + tail) == BATCH


@pytest.mark.parametrize(
    ("tail", "code"),
    [
        pytest.param(BATCH, ErrorCode.INVALID_RECORD, id="another batch"),
        pytest.param(BATCH + b"x", ErrorCode.INVALID_RECORD, id="another batch and more"),
        pytest.param(OLD_MESSAGE, ErrorCode.INVALID_RECORD, id="a message of magic 1"),
        pytest.param(bytes(12), ErrorCode.CORRUPT_MESSAGE, id="a length of 0"),
        pytest.param(BATCH[:16] + b"\x03", ErrorCode.CORRUPT_MESSAGE, id="magic 3"),
    ],
)
def test_what_follows_a_batch_is_refused_if_it_may_be_one(tail: bytes, code: ErrorCode) -> None:
    assert without_tail(BATCH + tail) == BATCH + tail
    assert refusal(BATCH + tail) is code


@pytest.mark.parametrize("data", [b"", BATCH[:16], BATCH[:-1], BATCH, OLD_MESSAGE + b"x"])
def test_data_without_a_batch_and_a_tail_stays_as_it_is(data: bytes) -> None:
    assert without_tail(data) == data


@pytest.mark.parametrize("compression", CompressionType)
@pytest.mark.parametrize("topic_codec", ["producer", "zstd"])
def test_log_append_time_of_a_producer_is_taken_away(
    compression: CompressionType, topic_codec: str
) -> None:
    batch = batch_of(b"a", b"b", timestamps=[NOW_MS - 2, NOW_MS - 1], compression=compression)
    checked = check(patched(batch, 21, ">h", 0x08 | compression), compression_type=topic_codec)
    assert checked.log_append_time_ms == -1
    assert not checked.header.is_log_append_time
    assert checked.header.max_timestamp == NOW_MS - 1
    stored = whole(checked)
    assert batch_crc(stored) == checked.header.crc
    if topic_codec in ("producer", compression.name.lower()):
        assert stored[16:] == batch[16:]
    else:  # it is built again from the records, which all had the newest timestamp
        assert [record.timestamp_ms for record in read_records(stored)] == [NOW_MS - 1] * 2


def test_records_that_a_producer_stamped_without_a_time_are_named() -> None:
    with pytest.raises(RecordsRefusedError) as caught:
        check(patched(batch_of(b"a", b"b", timestamps=[-1, -1]), 21, ">h", 0x08))
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in caught.value.record_errors] == [0, 1]


def test_a_refused_timestamp_comes_with_the_limit_and_its_setting() -> None:
    late, early = NOW_MS + HOUR_MS + 1, NOW_MS - 1001
    with pytest.raises(RecordsRefusedError) as caught:
        check(batch_of(b"a", b"b", timestamps=[late, early]), message_timestamp_before_max_ms=1000)
    assert caught.value.record_errors == (
        (
            0,
            f"timestamp {late} is after {NOW_MS + HOUR_MS}"
            f" (now {NOW_MS}, message.timestamp.after.max.ms=3600000)",
        ),
        (
            1,
            f"timestamp {early} is before {NOW_MS - 1000}"
            f" (now {NOW_MS}, message.timestamp.before.max.ms=1000)",
        ),
    )


@pytest.mark.parametrize("position", range(17, len(BATCH)))
def test_a_flipped_byte_under_the_crc_is_found(position: int) -> None:
    data = bytearray(BATCH)
    data[position] ^= 0x10
    assert refusal(bytes(data)) is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    ("batch", "code"),
    [
        pytest.param(b"", ErrorCode.INVALID_RECORD, id="nothing"),
        pytest.param(bytes(61), ErrorCode.CORRUPT_MESSAGE, id="zeros: a length of 0"),
        pytest.param(struct.pack(">qi", 0, 13) + bytes(13), ErrorCode.CORRUPT_MESSAGE, id="13"),
        pytest.param(
            struct.pack(">qiib", 0, 20, 0, 2) + bytes(15), ErrorCode.CORRUPT_MESSAGE, id="no header"
        ),
        pytest.param(
            struct.pack(">qiIb", 0, 22, 0, 1) + bytes(17), ErrorCode.INVALID_RECORD, id="magic 1"
        ),
        pytest.param(
            struct.pack(">qiIb", 0, 14, 0, 0) + bytes(9), ErrorCode.INVALID_RECORD, id="magic 0"
        ),
        pytest.param(BATCH[:16] + b"\x03" + BATCH[17:], ErrorCode.CORRUPT_MESSAGE, id="magic 3"),
        pytest.param(BATCH[:16] + b"\xff" + BATCH[17:], ErrorCode.CORRUPT_MESSAGE, id="magic -1"),
        pytest.param(
            struct.pack(">q", 1) + BATCH[8:], ErrorCode.INVALID_RECORD, id="base offset 1"
        ),
        pytest.param(patched(BATCH, 57, ">i", 0), ErrorCode.INVALID_RECORD, id="count 0"),
        pytest.param(patched(BATCH, 57, ">i", -1), ErrorCode.INVALID_RECORD, id="count -1"),
        pytest.param(patched(BATCH, 57, ">i", 4), ErrorCode.INVALID_RECORD, id="count 4 of 3"),
        pytest.param(patched(BATCH, 23, ">i", -1), ErrorCode.INVALID_RECORD, id="last delta -1"),
        pytest.param(patched(BATCH, 23, ">i", 3), ErrorCode.INVALID_RECORD, id="last delta 3"),
        pytest.param(patched(BATCH, 21, ">h", 0x20), ErrorCode.INVALID_RECORD, id="control"),
        pytest.param(patched(BATCH, 21, ">h", 5), ErrorCode.INVALID_RECORD, id="codec 5"),
        pytest.param(patched(BATCH, 21, ">h", 7), ErrorCode.INVALID_RECORD, id="codec 7"),
        pytest.param(
            batch_of(b"v", producer=(9, 0, -1)), ErrorCode.INVALID_RECORD, id="no sequence"
        ),
        pytest.param(
            batch_of(b"v", timestamps=[NOW_MS + HOUR_MS + 1]),
            ErrorCode.INVALID_TIMESTAMP,
            id="an hour and 1 ms ahead",
        ),
    ],
)
def test_a_header_at_fault_is_refused_with_kafkas_code(batch: bytes, code: ErrorCode) -> None:
    assert refusal(batch) is code


def test_more_records_than_fit_are_refused() -> None:
    lying = patched(patched(BATCH, 57, ">i", 1000), 23, ">i", 999)
    assert refusal(lying) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("count", [130_000, 3_000_000, 2**31 - 1])
@pytest.mark.parametrize("codec", CODECS)
def test_a_compressed_batch_that_claims_more_records_than_it_can_hold_is_refused_at_once(
    codec: CompressionType, count: int
) -> None:
    lying = batch_around(compress(codec, b"")[:26], codec, count)
    assert refusal(lying) is ErrorCode.INVALID_RECORD
    assert read_ordinary_batch(memoryview(lying), rules(), NOW_MS) is None


@pytest.mark.parametrize("codec", [CompressionType.GZIP, CompressionType.LZ4, CompressionType.ZSTD])
def test_the_records_of_a_compressed_batch_that_claims_very_many_are_counted(
    codec: CompressionType,
) -> None:
    stored = compress(codec, SMALLEST_RECORD * 10_000)
    dense, lying = (batch_around(stored, codec, count) for count in (10_000, 10_001))
    assert read_header(dense).record_count > DENSEST_RECORDS * len(stored)
    for batch in (dense, lying):
        assert read_ordinary_batch(memoryview(batch), rules(), NOW_MS) is None
    with pytest.raises(WalkTooLongError) as caught:
        check(dense)
    assert caught.value.walk(dense, limits=SHORT).newest_ms == NOW_MS
    with pytest.raises(ApiError, match="10001") as refused:
        caught.value.walk(lying, limits=SHORT)
    assert refused.value.code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", CODECS)
def test_the_records_of_the_densest_batches_of_producers_are_not_counted(
    codec: CompressionType,
) -> None:
    batch = bytes(build_batch([Record(None, None, NOW_MS)] * 10_000, compression=codec))
    assert check(batch).header.record_count == 10_000
    assert read_ordinary_batch(memoryview(batch), rules(), NOW_MS) is not None


# Of 100 KB, because a frame of one block is never linked.
LZ4_RECORD = batch_of(random.Random(1).randbytes(100_000))[61:]
LZ4_FRAME = partial(lz4.frame.compress, LZ4_RECORD, block_size=lz4.frame.BLOCKSIZE_MAX64KB)
FRAME_TO_SKIP = b"\x50\x2a\x4d\x18" + struct.pack("<I", 4) + b"skip"


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(LZ4_FRAME(), id="linked blocks"),
        pytest.param(FRAME_TO_SKIP + LZ4_FRAME(block_linked=False), id="a frame to skip"),
        pytest.param(b"\x04\x22\x4d\x18\x61" + bytes(60), id="a dictionary"),
        pytest.param(b"\x04\x22\x4d\x18\xa0" + bytes(60), id="another version"),
        pytest.param(b"\x04\x22\x4d\x18", id="four bytes"),
    ],
)
@pytest.mark.parametrize("topic_codec", ["producer", "zstd"])
def test_an_lz4_frame_that_java_does_not_read_is_refused(stored: bytes, topic_codec: str) -> None:
    batch = batch_around(stored, CompressionType.LZ4, 1)
    assert refusal(batch, compression_type=topic_codec) is ErrorCode.INVALID_RECORD
    assert read_ordinary_batch(memoryview(batch), rules(), NOW_MS) is None


@pytest.mark.parametrize("flag", ["content_checksum", "block_checksum", "store_size"])
def test_an_lz4_frame_of_independent_blocks_is_stored_whatever_else_it_has(flag: str) -> None:
    stored = LZ4_FRAME(block_linked=False, **{flag: True})
    batch = batch_around(stored, CompressionType.LZ4, 1)
    assert whole(check(batch))[61:] == stored
    assert read_ordinary_batch(memoryview(batch), rules(), NOW_MS) is not None


def test_an_hour_ahead_is_accepted() -> None:
    check(batch_of(b"v", timestamps=[NOW_MS + HOUR_MS]))


def test_max_message_bytes_is_the_whole_batch() -> None:
    check(BATCH, max_message_bytes=len(BATCH))
    too_small = len(BATCH) - 1
    assert refusal(BATCH, max_message_bytes=too_small) is ErrorCode.MESSAGE_TOO_LARGE


def test_too_large_comes_before_corrupt() -> None:
    broken = BATCH[:-1] + b"\xff"
    assert refusal(broken, max_message_bytes=10) is ErrorCode.MESSAGE_TOO_LARGE


# --- topics that look at records


@pytest.mark.parametrize("compression", CompressionType)
def test_a_compacted_topic_refuses_records_without_a_key(compression: CompressionType) -> None:
    records = [Record(b"k", b"1", NOW_MS), Record(None, b"2", NOW_MS), Record(None, b"3", NOW_MS)]
    batch = bytes(build_batch(records, compression=compression))
    with pytest.raises(RecordsRefusedError) as caught:
        check(batch, cleanup_policy=("compact",))
    assert caught.value.code is ErrorCode.INVALID_RECORD
    assert [index for index, _ in caught.value.record_errors] == [1, 2]
    check(batch)


def test_a_compacted_topic_takes_records_with_an_empty_key() -> None:
    check(batch_of(b"v", key=b""), cleanup_policy=("compact", "delete"))


def test_old_records_are_refused_where_the_topic_bounds_them() -> None:
    batch = batch_of(b"a", b"b", timestamps=[NOW_MS - 1001, NOW_MS])
    with pytest.raises(RecordsRefusedError) as caught:
        check(batch, message_timestamp_before_max_ms=1000)
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in caught.value.record_errors] == [0]
    check(batch, message_timestamp_before_max_ms=1001)


@pytest.mark.parametrize("compression", CompressionType)
def test_late_records_are_named(compression: CompressionType) -> None:
    times = [NOW_MS, NOW_MS + HOUR_MS + 1, NOW_MS + HOUR_MS]
    with pytest.raises(RecordsRefusedError) as caught:
        check(batch_of(b"a", b"b", b"c", timestamps=times, compression=compression))
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in caught.value.record_errors] == [1]


def test_a_late_header_over_records_in_bounds_is_corrected() -> None:
    assert whole(check(patched(BATCH, 35, ">q", 99 * NOW_MS)))[16:] == BATCH[16:]


def test_where_the_broker_stamps_every_record_that_a_producer_stamped_is_named() -> None:
    with pytest.raises(RecordsRefusedError) as caught:
        check(patched(BATCH, 21, ">h", 0x08), message_timestamp_type="LogAppendTime")
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in caught.value.record_errors] == [0, 1, 2]


def test_records_without_a_timestamp_are_in_bounds() -> None:
    check(batch_of(b"a", timestamps=[-1]), message_timestamp_before_max_ms=1000)


def test_full_validation_reads_the_records() -> None:
    data = bytearray(BATCH)
    data[61] = 0x7F  # the first record's length
    stamp_crc(data)
    check(bytes(data))
    assert refusal(bytes(data), validate_records=True) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("compression", CODECS)
def test_full_validation_finds_what_cannot_be_decompressed(compression: CompressionType) -> None:
    data = bytearray(batch_of(b"v" * 500, compression=compression))
    data[66:] = bytes(reversed(data[66:]))  # all but the flags of an LZ4 frame
    stamp_crc(data)
    check(bytes(data))
    assert refusal(bytes(data), validate_records=True) is ErrorCode.INVALID_RECORD


def test_full_validation_corrects_the_newest_timestamp() -> None:
    lying = patched(BATCH, 35, ">q", NOW_MS + 5)
    assert check(lying).header.max_timestamp == NOW_MS + 5
    checked = check(lying, validate_records=True)
    assert checked.header.max_timestamp == NOW_MS
    assert whole(checked)[16:] == BATCH[16:]


# --- what is rewritten


@pytest.mark.parametrize("compression", CompressionType)
def test_log_append_time_replaces_the_producers(compression: CompressionType) -> None:
    batch = batch_of(b"a", b"b", timestamps=[5, 99 * NOW_MS], compression=compression)
    checked = check(batch, message_timestamp_type="LogAppendTime")
    written = whole(checked)
    header = read_header(written)
    assert checked.log_append_time_ms == NOW_MS
    assert (header.is_log_append_time, header.max_timestamp) == (True, NOW_MS)
    assert header.crc == batch_crc(written) == checked.header.crc
    assert written[61:] == batch[61:]
    assert [record.timestamp_ms for record in read_records(written)] == [NOW_MS, NOW_MS]


@pytest.mark.parametrize("wanted", CODECS)
@pytest.mark.parametrize("came", CompressionType)
def test_the_topics_compression_type_is_applied(
    came: CompressionType, wanted: CompressionType
) -> None:
    batch = batch_of(b"a" * 99, b"b", timestamps=[NOW_MS - 7, NOW_MS - 9], compression=came,
                     producer=(4, 2, 8))  # fmt: skip
    checked = check(batch, compression_type=wanted.name.lower())
    written = whole(checked)
    header = read_header(written)
    if came is wanted:
        assert written[16:] == batch[16:]
    assert header.compression is wanted
    assert header.crc == batch_crc(written)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4, 2, 8)
    assert list(read_records(written)) == list(read_records(batch))


@pytest.mark.parametrize(
    ("codec", "low", "high"), [("gzip", 1, 9), ("lz4", 9, 12), ("zstd", -1000, 19)]
)
def test_the_topics_compression_level_is_applied(codec: str, low: int, high: int) -> None:
    text = "\n".join(f"{n}: {n * 7919 % 10_007}" for n in range(2000)).encode()
    batch = batch_of(text)
    sizes = []
    for level in (low, high):
        checked = check(batch, **{"compression_type": codec, f"compression_{codec}_level": level})
        sizes.append(checked.header.size_bytes)
        assert [record.value for record in read_records(whole(checked))] == [text]
    has_one_level = codec == "lz4" and lz4_library() is lz4_cramjam
    assert has_one_level or sizes[1] < sizes[0]


def test_levels_are_those_of_the_topics_codec_alone() -> None:
    levels = {f"compression_{codec}_level": 1 for codec in ("gzip", "lz4", "zstd")}
    for name, level in (("producer", None), ("uncompressed", None), ("snappy", None), ("lz4", 1)):
        assert target_compression(TopicConfig(compression_type=name, **levels))[1] == level


def test_uncompressed_is_a_compression_type() -> None:
    batch = batch_of(b"a" * 99, compression=CompressionType.ZSTD)
    checked = check(batch, compression_type="uncompressed")
    assert checked.header.compression is CompressionType.NONE


def test_recompression_may_make_a_batch_too_large() -> None:
    batch = batch_of(b"a" * 5000, compression=CompressionType.ZSTD)
    settings = {"compression_type": "uncompressed", "max_message_bytes": 1000}
    assert refusal(batch, **settings) is ErrorCode.MESSAGE_TOO_LARGE


def test_recompression_keeps_log_append_time() -> None:
    checked = check(batch_of(b"a"), compression_type="lz4", message_timestamp_type="LogAppendTime")
    written = whole(checked)
    assert read_header(written).is_log_append_time
    assert [record.timestamp_ms for record in read_records(written)] == [NOW_MS]


def test_what_cannot_be_read_cannot_be_recompressed() -> None:
    data = bytearray(BATCH)
    data[61] = 0x7F
    stamp_crc(data)
    assert refusal(bytes(data), compression_type="gzip") is ErrorCode.INVALID_RECORD


def test_the_crc_is_castagnolis() -> None:
    assert read_header(BATCH).crc == crc32c(BATCH[21:])
