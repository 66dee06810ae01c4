"""The header of a v2 batch, its checksum, and whole batches against Apache Kafka's bytes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.protocol.batch_header import (
    HEADER_BYTES,
    MAGIC_V2,
    MAX_SEQUENCE,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
    CorruptRecordError,
    batch_prefix,
    check_crc,
    decrement_sequence,
    increment_sequence,
    pack_header,
    read_header,
    stamp_log_append_time,
)
from odradek.protocol.compression import CompressionType
from odradek.protocol.record import Record, read_records
from odradek.protocol.record_batch import build_batch
from tests.support.golden import (
    APPEND_TIME,
    BASE_OFFSET,
    BASE_TIME,
    GOLDEN,
    LEADER_EPOCH,
    golden_records,
)

RECORDS = [Record(b"k", b"v", BASE_TIME), Record(None, b"w", BASE_TIME + 5)]


def golden(name: str) -> bytes:
    return (GOLDEN / f"batch-{name}.bin").read_bytes()


def test_header_fields_of_a_batch_that_kafka_wrote() -> None:
    data = golden("idempotent")
    header = read_header(data)
    assert header.base_offset == BASE_OFFSET
    assert header.size_bytes == len(data)
    assert header.partition_leader_epoch == LEADER_EPOCH
    assert header.magic == MAGIC_V2
    assert (header.last_offset, header.next_offset) == (1004, 1005)
    assert header.record_count == 5
    assert (header.producer_id, header.producer_epoch) == (4242, 3)
    assert header.base_sequence == MAX_SEQUENCE - 2
    assert header.last_sequence == 1
    assert header.base_timestamp == BASE_TIME
    assert header.compression is CompressionType.NONE
    check_crc(data, header)


def test_flags_of_batches_that_kafka_wrote() -> None:
    transactional = read_header(golden("transactional"))
    assert transactional.is_transactional
    assert not transactional.is_control
    assert transactional.compression is CompressionType.LZ4
    commit = read_header(golden("commit"))
    assert commit.is_transactional
    assert commit.is_control
    append_time = read_header(golden("append-time"))
    assert append_time.is_log_append_time
    assert append_time.max_timestamp == APPEND_TIME
    plain = read_header(golden("none"))
    assert not plain.is_log_append_time
    assert not plain.has_delete_horizon
    assert plain.producer_id == NO_PRODUCER_ID
    assert plain.last_sequence == NO_SEQUENCE


def test_an_uncompressed_batch_is_built_as_kafka_builds_it() -> None:
    built = build_batch(
        golden_records(100), base_offset=BASE_OFFSET, partition_leader_epoch=LEADER_EPOCH
    )
    assert built == golden("none")


def test_an_idempotent_batch_is_built_as_kafka_builds_it() -> None:
    built = build_batch(
        golden_records(5),
        base_offset=BASE_OFFSET,
        partition_leader_epoch=LEADER_EPOCH,
        producer_id=4242,
        producer_epoch=3,
        base_sequence=MAX_SEQUENCE - 2,
    )
    assert built == golden("idempotent")


def test_a_batch_with_log_append_time_is_built_as_kafka_builds_it() -> None:
    built = build_batch(
        golden_records(5),
        base_offset=BASE_OFFSET,
        partition_leader_epoch=LEADER_EPOCH,
        log_append_time_ms=APPEND_TIME,
    )
    assert built == golden("append-time")


def test_stamping_log_append_time_gives_the_batch_that_kafka_writes() -> None:
    batch = build_batch(
        golden_records(5), base_offset=BASE_OFFSET, partition_leader_epoch=LEADER_EPOCH
    )
    stamp_log_append_time(batch, APPEND_TIME)
    assert batch == golden("append-time")


def test_the_prefix_and_the_rest_of_the_clients_bytes_make_a_sound_batch() -> None:
    sent = bytes(build_batch(RECORDS))
    stored = batch_prefix(77, read_header(sent).batch_length, 12) + sent[16:]
    header = read_header(stored)
    check_crc(stored, header)
    assert (header.base_offset, header.partition_leader_epoch) == (77, 12)
    assert [record.offset for record in read_records(stored)] == [77, 78]


def test_a_header_is_read_from_the_middle_of_a_buffer() -> None:
    first, second = golden("none"), golden("zstd")
    buffer = memoryview(bytearray(first + second))
    assert read_header(buffer, len(first)) == read_header(second)


def test_packing_a_header_gives_the_bytes_it_was_read_from() -> None:
    data = golden("transactional")
    assert pack_header(read_header(data)) == data[:HEADER_BYTES]


def test_a_header_cut_at_any_byte_is_refused() -> None:
    data = golden("none")
    for size in range(HEADER_BYTES):
        with pytest.raises(CorruptRecordError, match=f"61 bytes, {size} are left"):
            read_header(data[:size])


def test_flipping_any_checked_byte_of_a_batch_breaks_the_checksum() -> None:
    sound = golden("none")[:16] + bytes(build_batch(RECORDS))[16:]
    for position in range(17, len(sound)):
        batch = bytearray(sound)
        batch[position] ^= 0x10
        with pytest.raises(CorruptRecordError, match="CRC"):
            check_crc(batch, read_header(batch))


def test_what_the_broker_stamps_lies_outside_the_checksum() -> None:
    for position in range(16):
        batch = build_batch(RECORDS)
        batch[position] ^= 0x10
        check_crc(batch, read_header(batch))


@pytest.mark.parametrize("compression_id", [5, 6, 7])
def test_a_compression_id_without_a_codec_is_refused(compression_id: int) -> None:
    header = read_header(build_batch(RECORDS))._replace(attributes=compression_id)
    assert header.compression_id == compression_id
    with pytest.raises(CorruptRecordError, match=f"compression id {compression_id}"):
        _ = header.compression


def test_a_batch_without_records_is_not_built() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        build_batch([])


def test_a_built_batch_has_no_producer_unless_it_is_given() -> None:
    header = read_header(build_batch(RECORDS))
    assert header.producer_id == NO_PRODUCER_ID
    assert header.base_sequence == NO_SEQUENCE
    assert header.partition_leader_epoch == -1


def test_sequences_wrap_behind_the_largest_int32() -> None:
    assert increment_sequence(MAX_SEQUENCE, 1) == 0
    assert increment_sequence(MAX_SEQUENCE - 1, 3) == 1
    assert decrement_sequence(1, 3) == MAX_SEQUENCE - 1


@settings(deadline=None)
@given(st.integers(0, MAX_SEQUENCE), st.integers(0, MAX_SEQUENCE))
def test_decrementing_a_sequence_undoes_incrementing(sequence: int, step: int) -> None:
    assert decrement_sequence(increment_sequence(sequence, step), step) == sequence


INT16, INT32, INT64 = (st.integers(-(1 << n), (1 << n) - 1) for n in (15, 31, 63))


@settings(deadline=None)
@given(
    st.builds(
        BatchHeader,
        INT64, INT32, INT32, st.integers(-128, 127), st.integers(0, 0xFFFFFFFF), INT16,
        INT32, INT64, INT64, INT64, INT16, INT32, INT32,
    )
)  # fmt: skip
def test_every_header_is_read_as_it_was_packed(header: BatchHeader) -> None:
    assert read_header(pack_header(header)) == header
