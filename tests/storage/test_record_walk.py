"""The limits at which a walk of a produced batch is handed on or refused."""

import pickle
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType

import pytest

from odradek.protocol.batch_header import TooManyRecordsError
from odradek.protocol.compression import CompressionType
from odradek.protocol.conversion import convert_up
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.record import Record, read_records
from odradek.protocol.record_batch import build_batch
from odradek.storage.append_rules import AppendRules
from odradek.storage.batch_validator import check_client_batch
from odradek.storage.record_walk import (
    AT_ONCE,
    LONG,
    SHORT,
    RecordsRefusedError,
    WalkedRecords,
    WalkLimits,
    WalkTooLongError,
    convert_messages,
    walk_records,
)
from tests.support.hostile_batches import KINDS, messages, records, wrapped, zeros

NOW_MS = 1_700_000_000_000
NONE, GZIP, SNAPPY, LZ4, ZSTD = CompressionType
COMPACTED = AppendRules(
    max_message_bytes=1_048_588,
    compression=None,
    compression_level=None,
    log_append_time=False,
    timestamp_before_max_ms=2**63 - 1,
    timestamp_after_max_ms=3_600_000,
    compacted=True,
    read_records=True,
)
convert = partial(convert_messages, log_append_time=False, max_message_bytes=1_048_588)


def sound(count: int, codec: CompressionType = NONE) -> bytes:
    return bytes(
        build_batch([Record(b"k", b"%d" % n, NOW_MS) for n in range(count)], compression=codec)
    )


def calls_in(work: Callable[[], object]) -> int:
    """The number of function calls, in Python and C: a measure of time that does not vary."""
    count = 0

    def see(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def handed_on(batch: bytes, rules: AppendRules = COMPACTED) -> WalkTooLongError:
    with pytest.raises(WalkTooLongError) as caught:
        check_client_batch(memoryview(batch), rules, NOW_MS)
    return caught.value


@pytest.mark.parametrize(
    "kind", [kind for kind, (_, topic, version) in KINDS.items() if version > 2 and topic]
)
def test_no_batch_takes_longer_at_once_than_the_largest_ordinary_one(kind: str) -> None:
    ordinary = sound(AT_ONCE.steps, GZIP)
    check_client_batch(ordinary, COMPACTED, NOW_MS)  # loads the codec
    longest = calls_in(lambda: check_client_batch(ordinary, COMPACTED, NOW_MS))
    hostile = KINDS[kind].make()
    handed_on(hostile)
    assert calls_in(lambda: handed_on(hostile)) < 2 * longest


@pytest.mark.parametrize("kind", [kind for kind, (_, _, version) in KINDS.items() if version == 2])
def test_no_message_set_takes_longer_at_once_than_the_largest_ordinary_one(kind: str) -> None:
    most = AT_ONCE.steps // 4
    ordinary = messages(most * 34)
    longest = calls_in(lambda: convert(ordinary, limits=AT_ONCE))

    def work() -> None:
        with pytest.raises(TooManyRecordsError):
            convert(hostile, limits=AT_ONCE)

    hostile = KINDS[kind].make()
    work()
    assert calls_in(work) < 2 * longest


def test_a_batch_of_as_many_records_as_may_be_is_walked_at_once() -> None:
    check_client_batch(sound(AT_ONCE.steps), COMPACTED, NOW_MS)
    handed_on(sound(AT_ONCE.steps + 1))


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_batch_that_unpacks_to_as_much_as_may_be_is_walked_at_once(
    codec: CompressionType,
) -> None:
    check_client_batch(zeros(AT_ONCE.unpacked_bytes - 100, codec), COMPACTED, NOW_MS)
    handed_on(zeros(AT_ONCE.unpacked_bytes, codec))


def test_a_large_batch_that_is_not_compressed_is_walked_at_once_if_its_records_are_few() -> None:
    check_client_batch(zeros(1_000_000, NONE), COMPACTED, NOW_MS)


def test_a_batch_that_needs_no_walk_is_not_handed_on() -> None:
    rules = AppendRules(
        max_message_bytes=1_048_588,
        compression=None,
        compression_level=None,
        log_append_time=False,
        timestamp_before_max_ms=2**63 - 1,
        timestamp_after_max_ms=3_600_000,
        compacted=False,
        read_records=False,
    )
    check_client_batch(sound(100_000, LZ4), rules, NOW_MS)


def test_what_is_handed_on_owns_its_bytes_and_may_be_sent_to_a_process() -> None:
    batch = sound(1000, LZ4)
    borrowed = bytearray(batch)
    with pytest.raises(WalkTooLongError) as caught:
        check_client_batch(memoryview(borrowed), COMPACTED, NOW_MS)
    borrowed[:] = bytes(len(borrowed))
    walk = pickle.loads(pickle.dumps(caught.value.walk))
    walked = walk(caught.value.batch, limits=SHORT)
    assert walked == WalkedRecords(NOW_MS)
    checked = check_client_batch(caught.value.batch, COMPACTED, NOW_MS, walked)
    assert b"".join(checked.parts) == batch[16:]


def test_a_walk_that_is_done_elsewhere_finds_the_same_as_one_at_once() -> None:
    rules = AppendRules(
        max_message_bytes=1_048_588,
        compression=ZSTD,
        compression_level=None,
        log_append_time=True,
        timestamp_before_max_ms=2**63 - 1,
        timestamp_after_max_ms=3_600_000,
        compacted=False,
        read_records=False,
    )
    batch = sound(100, GZIP)
    walked = walk_records(batch, rules=rules, now_ms=NOW_MS - 5, limits=LONG)
    elsewhere = check_client_batch(batch, rules, NOW_MS, walked)
    at_once = check_client_batch(batch, rules, NOW_MS)
    assert elsewhere.header == at_once.header
    assert b"".join(elsewhere.parts) == b"".join(at_once.parts)


def test_above_the_last_limit_a_java_producer_is_told_to_split_its_batch() -> None:
    small = WalkLimits(1000, 10)
    for batch in (zeros(2000, GZIP), sound(11)):
        with pytest.raises(TooManyRecordsError):
            walk_records(batch, rules=COMPACTED, now_ms=NOW_MS, limits=small)
    with pytest.raises(ApiError) as caught:
        walk_records(zeros(LONG.unpacked_bytes, ZSTD), rules=COMPACTED, now_ms=NOW_MS, limits=LONG)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_message_sets_have_the_same_limits() -> None:
    with pytest.raises(TooManyRecordsError):
        convert(messages(34 * 3), limits=WalkLimits(1000, 8))
    with pytest.raises(TooManyRecordsError):
        convert(wrapped(34 * 3), limits=WalkLimits(1000, 8))
    with pytest.raises(TooManyRecordsError):
        convert(wrapped(34 * 3), limits=WalkLimits(101, 1000))
    assert convert(wrapped(34 * 3), limits=WalkLimits(102, 12)) == convert_up(wrapped(34 * 3))


def test_of_very_many_records_at_fault_only_the_first_are_named() -> None:
    body = bytes([12, 0, 0, 0, 1, 1, 0])  # no key
    batch = bytearray(records(12_000 * len(body), NONE))
    batch[61:] = body * 12_000
    with pytest.raises(RecordsRefusedError, match="12000 of 12000 records") as caught:
        walk_records(batch, rules=COMPACTED, now_ms=NOW_MS, limits=LONG)
    assert [index for index, _ in caught.value.record_errors] == list(range(10_000))


def test_a_rebuilt_batch_is_what_its_records_are() -> None:
    batch = records(70 * 7, GZIP)  # whose offsets are all 0
    walked = walk_records(batch, rules=COMPACTED, now_ms=NOW_MS, limits=AT_ONCE)
    assert walked.rebuilt is not None
    assert [each.offset for each in read_records(walked.rebuilt)] == list(range(70))
