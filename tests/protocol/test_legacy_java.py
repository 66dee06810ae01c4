"""Apache Kafka's own classes and ours, on message sets: reading, writing, converting up and down.

3.9 is the last Kafka that converts down; how it converts up is unchanged in 4.4, which is asked.
"""

import itertools

import pytest

from odradek.protocol.batch_header import (
    HEADER_BYTES,
    MAGIC_V2,
    CorruptRecordError,
    check_crc,
    read_header,
)
from odradek.protocol.compression import CompressionType
from odradek.protocol.conversion import convert_down, convert_up
from odradek.protocol.errors import ApiError
from odradek.protocol.legacy import build_message_set, read_message_set
from odradek.protocol.record import Record, read_records
from odradek.protocol.record_batch import build_batch
from tests.support import message_sets as by_hand
from tests.support.kafka_legacy import (
    APPEND_TIME,
    LEGACY_CODECS,
    as_read,
    ask_kafka_39,
    ask_kafka_44,
    build_line,
    golden_names,
    golden_set,
    legacy_records,
    read_answer,
)
from tests.support.message_sets import GZIP, LOG_APPEND_TIME, LZ4, SNAPPY, message, wrapper

pytestmark = pytest.mark.java

NONE = CompressionType.NONE
# Codecs that have one way only to write a few hundred bytes: what comes out must be Kafka's bytes.
EXACT = (NONE, CompressionType.LZ4)
FORMATS = list(itertools.product((0, 1), LEGACY_CODECS, (None, APPEND_TIME)))


def test_we_read_and_write_what_kafka_does() -> None:
    records = legacy_records(200)
    made = ask_kafka_39([build_line(records, *form) for form in FORMATS])
    ours = [
        build_message_set(records, magic=magic, compression=codec, log_append_time_ms=append_time)
        for magic, codec, append_time in FORMATS
    ]
    read = ask_kafka_39([f"read {data.hex()}" for data in ours])
    for form, kafkas, our, answer in zip(FORMATS, made, ours, read, strict=True):
        magic, codec, append_time = form
        expected = as_read(records, magic, append_time)
        assert list(read_message_set(bytes.fromhex(kafkas), whole=True)) == expected, form
        assert read_answer(answer) == expected, form
        if codec is NONE:
            assert our.hex() == kafkas, form


def stored_batches() -> list[bytes]:
    """What a log may hold: codecs, producers, headers, LogAppendTime, markers, a cut, old sets."""
    records = [record._replace(headers=(("h", b"x"),), offset=0) for record in legacy_records(30)]
    made = [
        build_batch(records, base_offset=1000, compression=codec, log_append_time_ms=append_time)
        for codec in LEGACY_CODECS
        for append_time in (None, APPEND_TIME)
    ]
    marker = build_batch(
        [Record(bytes(4), bytes(6), 1)], base_offset=1030, producer_id=9, producer_epoch=0,
        is_transactional=True, is_control=True,
    )  # fmt: skip
    made.append(
        build_batch(
            records, base_offset=1000, producer_id=9, producer_epoch=0, base_sequence=0,
            is_transactional=True,
        ) + marker + build_batch(records, base_offset=1031)
    )  # fmt: skip
    made += [marker, made[0] + made[0][:100], build_batch([Record(b"k", b"v", -1)])]
    return [*map(bytes, made), *map(golden_set, golden_names())]


def test_we_convert_down_as_kafka_did() -> None:
    asked = list(itertools.product(stored_batches(), (0, 1), (0, 1012, 5000)))
    answers = ask_kafka_39(
        [f"down {magic} {first_offset} {data.hex()}" for data, magic, first_offset in asked]
    )
    exact = 0
    for (data, magic, first_offset), answer in zip(asked, answers, strict=True):
        ours = convert_down(data, magic=magic, first_offset=first_offset)
        kafkas = bytes.fromhex(answer)
        assert list(read_message_set(ours, whole=True)) == list(read_message_set(kafkas))
        header = read_header(data)
        codec = header.compression_id if header.magic == MAGIC_V2 else data[17] & 7
        if codec in EXACT or header.magic <= magic:
            assert ours == kafkas
            exact += 1
    assert exact > 80


def test_zstd_and_negative_times_are_where_we_know_better() -> None:
    packed = build_batch([Record(b"k", b"v", 1)], compression=CompressionType.ZSTD)
    negative = build_batch([Record(b"k", b"v", -7)])
    zstd, time = ask_kafka_39([f"down 1 0 {packed.hex()}", f"down 1 0 {negative.hex()}"])
    assert "UnsupportedCompressionTypeException" in zstd
    assert "Invalid negative timestamp -7" in time  # an old client gets no answer at all
    assert convert_down(negative, magic=1, first_offset=0)


def produced_sets() -> list[bytes]:
    made = [golden_set(name) for name in golden_names()]
    made += [
        by_hand.message_set(b"a", None, b"", magic=magic, key=key)
        for magic in (0, 1)
        for key in (None, b"", b"key")
    ]
    made += [
        wrapper(by_hand.message_set(b"a", b"b", magic=magic), codec, magic=magic, offset=offset)
        for magic in (0, 1)
        for codec in (GZIP, SNAPPY, LZ4)
        for offset in (0, 1, 1000)
    ]
    made += [
        message(b"a", offset=5) + message(b"b", offset=3),
        message(b"a", timestamp_ms=-1) + message(b"b", timestamp_ms=9),
        message(b"whole") + message(b"cut")[:-1],
        wrapper(message(b"whole") + message(b"cut")[:-1], GZIP),
        message(b"a", attributes=LOG_APPEND_TIME),
        message(b"a", attributes=LOG_APPEND_TIME, timestamp_ms=-1),
        message(b"a", magic=0, attributes=LOG_APPEND_TIME),
        wrapper(message(b"a"), GZIP, attributes=LOG_APPEND_TIME, timestamp_ms=7),
        wrapper(message(b"a"), GZIP, attributes=0x70, key=b"wrapper"),
    ]
    return made + refused_sets()


def refused_sets() -> list[bytes]:
    return [
        message(b"a") + wrapper(message(b"b"), GZIP),
        wrapper(message(b"a"), GZIP) + message(b"b"),
        wrapper(message(b"a"), GZIP) + wrapper(message(b"b"), SNAPPY),
        message(b"a", magic=0) + message(b"b"),
        message(b"a") + bytes(build_batch([Record(b"k", b"v", 1)])),
        wrapper(message(b"a", magic=0), GZIP),
        wrapper(message(b"a"), GZIP, magic=0),
        wrapper(wrapper(message(b"a"), GZIP), GZIP),
        wrapper(b"", GZIP),
        message(None, None, attributes=GZIP),
        message(b"zstd", attributes=4),
        wrapper(message(b"a", offset=5), GZIP, offset=3),
        message(b"a")[:-1] + b"?",
        wrapper(message(b"a")[:-1] + b"?", GZIP),
        message(b"a", magic=3),
        message(b"a", magic=0) + message(b"b")[:-1] + b"?",
    ]


def our_answer(data: bytes, codec: CompressionType | None, log_append_time: bool) -> bytes | str:
    try:
        return bytes(convert_up(data, compression=codec, log_append_time=log_append_time))
    except ApiError as error:
        return f"! {error.code.name}"
    except CorruptRecordError:
        return "! CORRUPT_MESSAGE"


def test_we_convert_up_as_kafka_does() -> None:
    codecs = (None, NONE, CompressionType.LZ4, CompressionType.ZSTD)
    asked = list(itertools.product(produced_sets(), codecs, (False, True)))
    answers = ask_kafka_44(
        [
            f"{codec.name.lower() if codec is not None else '-'} "
            f"{'LogAppendTime' if stamped else 'CreateTime'} {data.hex()}"
            for data, codec, stamped in asked
        ]
    )
    refused = exact = 0
    for (data, codec, stamped), answer in zip(asked, answers, strict=True):
        ours = our_answer(data, codec, stamped)
        if isinstance(ours, str) or answer.startswith("!"):
            assert ours == answer, data.hex()
            refused += 1
        else:
            exact += is_kafkas(ours, bytes.fromhex(answer), stamped)
    assert refused > 100
    assert exact > 100


def is_kafkas(ours: bytes, kafkas: bytes, stamped: bool) -> bool:
    """Whether every byte is Kafka's; what the log stamps aside, every record and field must be."""
    header, expected = read_header(ours), read_header(kafkas)
    check_crc(ours, header)
    if stamped:  # by Kafka at once, here by the log
        assert expected.is_log_append_time
        time_of_kafka = expected.max_timestamp
        expected = expected._replace(
            attributes=header.attributes, max_timestamp=header.max_timestamp
        )
        assert time_of_kafka > header.max_timestamp
    same_size = expected._replace(batch_length=header.batch_length, crc=header.crc)
    assert header == same_size
    assert list(read_records(ours)) == list(read_records(kafkas, header=expected))
    if header.compression not in EXACT:
        return False
    assert ours[HEADER_BYTES:] == kafkas[HEADER_BYTES:]
    return stamped or ours == kafkas
