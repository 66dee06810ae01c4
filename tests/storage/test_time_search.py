"""Offsets by time: found in records, of which few are read on the event loop."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from odradek.protocol.batch_header import (
    MAX_TIMESTAMP_POSITION,
    TooManyRecordsError,
    read_header,
    stamp_crc,
)
from odradek.protocol.compression import CompressionType
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage import time_search
from odradek.storage.files import Files, NonBlockingReads, WouldWaitError
from odradek.storage.log import PartitionLog
from odradek.storage.record_walk import AT_ONCE, LONG, SHORT, WalkLimits
from odradek.storage.time_search import OffsetAtTime, search_batches
from tests.support.hostile_batches import ZSTD, batch_around, records, zeros
from tests.support.log_box import NOW_MS, LogBox, batch_of, put
from tests.support.message_sets import GZIP, START_MS, message_set, wrapper

T = TypeVar("T")


class Attempts:
    """Makes a lookup as the broker does (ColdReads), and notes what is walked elsewhere."""

    def __init__(self, files: Files) -> None:
        self.count = 0
        self.walked_bytes: list[int] = []
        self.attempt = NonBlockingReads(files)
        self._files = files

    def look_up(self, work: Callable[[], T]) -> T:
        while True:
            self.count += 1
            try:
                with self.attempt:
                    return work()
            except WouldWaitError as lacking:
                for call in lacking.calls.values():
                    call()
                self.attempt.made |= lacking.calls.keys()
                for key, (file, size, position, walk) in lacking.walks.items():
                    data = self._files.pread_exact(file, size, position)
                    self.walked_bytes.append(size)
                    self.attempt.results[key] = self._walked(walk, data)

    def _walked(self, walk: Callable[..., object], data: bytes) -> object:
        for limits in (SHORT, LONG):
            try:
                return walk(data, limits=limits)
            except TooManyRecordsError:
                continue
            except ApiError as error:
                return error
        raise AssertionError("LONG is the last limit")


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> list[WalkLimits]:
    """The limits of each batch that is unpacked at once."""
    seen: list[WalkLimits] = []
    search = time_search._search

    def noting(*arguments: object) -> object:
        limits = arguments[-1]
        assert isinstance(limits, WalkLimits)
        if limits.steps <= AT_ONCE.steps:
            seen.append(limits)
        return search(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(time_search, "_search", noting)
    return seen


def attempts(log: PartitionLog) -> Attempts:
    return Attempts(log.segments.active.files)


def with_newest(batch: bytes, newest_ms: int) -> bytes:
    """The batch under a header that has another newest timestamp."""
    data = bytearray(batch)
    data[MAX_TIMESTAMP_POSITION : MAX_TIMESTAMP_POSITION + 8] = newest_ms.to_bytes(8, "big")
    stamp_crc(data)
    return bytes(data)


def test_the_records_of_a_large_batch_are_read_elsewhere(
    tmp_path: Path, at_once: list[WalkLimits]
) -> None:
    log = LogBox(tmp_path).open()
    put(log, b"v", timestamps=[NOW_MS - 1])
    large = zeros(64 << 20, ZSTD)
    log.append(large, now_ms=NOW_MS)
    for work in (lambda: log.offset_for_timestamp(NOW_MS), log.offset_of_max_timestamp):
        made = attempts(log)
        assert made.look_up(work) == OffsetAtTime(NOW_MS, 1, 0)
        assert made.walked_bytes == [len(large)]
    assert all(limits.unpacked_bytes <= AT_ONCE.unpacked_bytes for limits in at_once)


@pytest.mark.parametrize("compression", CompressionType)
def test_the_records_of_a_small_batch_are_read_at_once(
    tmp_path: Path, compression: CompressionType
) -> None:
    log = LogBox(tmp_path).open()
    put(log, *[b"v"] * 100, timestamps=list(range(100)), compression=compression)
    made = attempts(log)
    found = made.look_up(lambda: log.offset_for_timestamp(50))
    assert found == OffsetAtTime(50, 50, 0)
    assert made.look_up(log.offset_of_max_timestamp) == OffsetAtTime(99, 99, 0)
    assert not made.walked_bytes


def test_headers_that_announce_later_records_than_there_are_cost_little(
    tmp_path: Path, at_once: list[WalkLimits]
) -> None:
    log = LogBox(tmp_path, index_interval_bytes=0, segment_bytes=200_000).open()
    lying = with_newest(batch_of(b"v" * 1000, timestamps=[5]), 1000)
    for _ in range(1000):
        log.append(lying, now_ms=NOW_MS)
    put(log, b"v", timestamps=[1000])
    assert len(log.segments) > 4
    made = attempts(log)
    assert made.look_up(lambda: log.offset_for_timestamp(900)) == OffsetAtTime(1000, 1000, 0)
    assert len(made.walked_bytes) < 3 * len(log.segments)
    assert len(at_once) <= len(made.walked_bytes) + 1


def test_a_lookup_in_attempts_finds_the_same_as_one_at_once(tmp_path: Path) -> None:
    log = LogBox(tmp_path, index_interval_bytes=0, segment_bytes=20_000).open()
    for number in range(60):
        codec = CompressionType(number % 5)
        newest = number * 10 % 70
        batch = batch_of(*[b"v"] * 300, timestamps=[newest - n % 7 for n in range(300)])
        put(log, *[b"v"] * 300, timestamps=[newest - n % 7 for n in range(300)], compression=codec)
        log.append(with_newest(batch, newest + 3), now_ms=NOW_MS)
    log.increment_log_start_offset(1234)
    for timestamp_ms in range(-10, 75):
        made = attempts(log)
        found = made.look_up(lambda wanted=timestamp_ms: log.offset_for_timestamp(wanted))
        assert found == log.offset_for_timestamp(timestamp_ms)
        assert found is None or found.offset >= 1234


@pytest.mark.parametrize("is_damaged", [False, True])
def test_an_index_is_rebuilt_only_if_it_does_not_match_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, is_damaged: bool
) -> None:
    log = LogBox(tmp_path, index_interval_bytes=0).open()
    for number in range(10):
        put(log, b"v", timestamps=[1 + number * 10])
    index = log.segments.active.time_index
    assert index.entries > 5
    if is_damaged:
        index.reset()
        for number in range(5):
            index.maybe_append(1 + number * 10, number + 5)
    for timestamp_ms in range(100):
        found = log.offset_for_timestamp(timestamp_ms)
        offset = (timestamp_ms + 8) // 10
        expected = None if offset > 9 else OffsetAtTime(1 + offset * 10, offset, 0)
        assert found == expected
    rebuilt = [record for record in caplog.records if "rebuilding" in record.message]
    assert len(rebuilt) == is_damaged


def test_the_log_may_change_between_two_attempts(tmp_path: Path) -> None:
    log = LogBox(tmp_path).open()
    put(log, *[b"v"] * 1000)
    made = attempts(log)
    with pytest.raises(WouldWaitError) as lacking, made.attempt:
        log.offset_for_timestamp(NOW_MS)
    ((key, (file, size, position, walk)),) = lacking.value.walks.items()
    made.attempt.results[key] = walk(made._files.pread_exact(file, size, position), limits=SHORT)
    log.increment_log_start_offset(500)
    assert made.look_up(lambda: log.offset_for_timestamp(NOW_MS)) == OffsetAtTime(NOW_MS, 500, 0)


def test_an_error_of_a_walk_is_that_of_the_lookup(tmp_path: Path) -> None:
    log = LogBox(tmp_path).open()
    log.append(batch_around(b"\x28\xb5\x2f\xfd" + bytes(1000), ZSTD, 1000), now_ms=NOW_MS)
    made = attempts(log)
    for _ in range(2):
        with pytest.raises(ApiError) as caught:
            made.look_up(lambda: log.offset_for_timestamp(NOW_MS))
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


# --- search_batches


def test_a_search_goes_on_after_the_last_whole_batch() -> None:
    first, second = batch_of(b"a", b"b", timestamps=[1, 2]), batch_of(b"c", timestamps=[3])
    both = bytearray(first + second)
    both[len(first) : len(first) + 8] = (2).to_bytes(8, "big")  # its base offset
    for end in range(len(first), len(both)):
        assert search_batches(both[:end], timestamp_ms=3, start_offset=0, limits=SHORT) == 2
    found = search_batches(both, timestamp_ms=3, start_offset=0, limits=SHORT)
    assert found == OffsetAtTime(3, 2, read_header(second).partition_leader_epoch)
    assert search_batches(both, timestamp_ms=4, start_offset=0, limits=SHORT) == 3


def test_a_wrapper_after_a_batch_is_not_unpacked_at_once() -> None:
    batch = batch_of(b"a", timestamps=[1])
    both = with_newest(batch, 9) + wrapper(message_set(b"b"), GZIP, offset=1)
    search = partial(search_batches, both, timestamp_ms=9, start_offset=0)
    assert search(limits=AT_ONCE) == 1
    assert search(limits=SHORT) == OffsetAtTime(START_MS, 1, -1)


@pytest.mark.slow
def test_a_search_ends_at_its_limits() -> None:
    batch = records(1 << 20)
    count = read_header(batch).record_count
    lying = with_newest(batch, NOW_MS + 1)
    both = lying + count.to_bytes(8, "big") + lying[8:]
    search = partial(search_batches, both, timestamp_ms=NOW_MS + 1, start_offset=0)
    with pytest.raises(TooManyRecordsError):
        search(limits=AT_ONCE)
    assert search(limits=SHORT) == count  # it has used 150,000 of 200,000 steps
    assert search(limits=LONG) == 2 * count
