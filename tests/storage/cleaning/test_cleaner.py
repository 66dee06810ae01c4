"""One round of the log cleaner, and the swap that follows: what the model tests do not look at."""

import errno
import os
import pickle
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.protocol.batch_header import read_header, stamp_crc
from odradek.protocol.compression import CompressionType
from odradek.protocol.errors import ApiError
from odradek.protocol.record import Record, read_records
from odradek.protocol.record_batch import build_batch
from odradek.storage.batch_scan import CorruptBatchError
from odradek.storage.cleaning.cleaner import Cleaner
from odradek.storage.cleaning.plan import LogToClean, assess, last_records_in_parts, task_for
from odradek.storage.cleaning.segment_groups import group_segments
from odradek.storage.cleaning.segment_swap import SegmentSwap
from odradek.storage.cleaning.task import LAST_RECORD, CleanedGroup, SegmentToClean
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.log_reader import LogReader
from odradek.storage.producer_entry import ProducerEntry
from odradek.storage.segment import FILE_KINDS, Segment
from odradek.storage.txn_index import AbortedTransaction
from tests.support.crashing_files import QuickFiles
from tests.support.dirty_logs import BUFFER_BYTES, Writer, clean, end_transaction, swap_in
from tests.support.log_box import NOW_MS, LogBox, batch_of, put, records_from, values_from
from tests.support.open_files import open_files

DAY_MS = 86_400_000


def box_at(root: Path, files: Files | None = None, **settings: Any) -> LogBox:
    settings = {"segment_bytes": 1000, "segment_index_bytes": 1024, **settings}
    return LogBox(root, files=files or QuickFiles(), cleanup_policy=("compact",), **settings)


def put_keys(log: PartitionLog, keys: str, value: bytes | None = b"v", **fields: Any) -> None:
    """A batch with a record for each letter."""
    records = [Record(key.encode(), value, NOW_MS) for key in keys]
    log.append(bytes(build_batch(records, **fields)), now_ms=NOW_MS, transaction_verified=True)


def keys_of(box: LogBox) -> str:
    return "".join((record.key or b"-").decode() for record in LogReader(box.directory).records())


# --- what a round does


def test_of_every_key_the_last_record_stays_and_the_active_segment_is_left_alone(
    tmp_path: Path,
) -> None:
    box = box_at(tmp_path)
    log = box.open()
    put_keys(log, "abca")
    put_keys(log, "bd")
    log.roll(NOW_MS)
    put_keys(log, "ea")
    result = clean(log, NOW_MS)
    assert keys_of(box) == "cabdea"
    assert result.end_offset == 6
    assert (result.stats.messages_read, result.stats.messages_written) == (6, 4)


def test_batches_that_lose_nothing_are_copied_byte_for_byte(tmp_path: Path) -> None:
    box = box_at(tmp_path)
    log = box.open()
    for number, codec in enumerate(CompressionType):
        put_keys(log, f"{number}", compression=codec)
    log.roll(NOW_MS)
    before = box.path(0, ".log").read_bytes()
    clean(log, NOW_MS)
    assert box.path(0, ".log").read_bytes() == before


@pytest.mark.parametrize("damage", ["crc", "inside"])
def test_a_batch_that_cannot_be_read_is_copied_as_it_is_and_named(
    tmp_path: Path, damage: str
) -> None:
    box = box_at(tmp_path)
    log = box.open()
    put_keys(log, "ab")
    bad = bytearray(build_batch([Record(b"a", b"lost?", NOW_MS)], base_offset=2))
    bad[-1] ^= 0xFF  # the count of its headers
    if damage == "inside":
        stamp_crc(bad)
    start = log.segments.active.size_bytes
    put_keys(log, "a", b"lost?")  # of the same size: it makes room
    put_keys(log, "b")
    log.roll(NOW_MS)
    with box.path(0, ".log").open("r+b") as file:
        file.seek(start)
        file.write(bad)
    result = clean(log, NOW_MS)
    (line,) = result.unreadable
    assert "orders-0: the batch at offset 2" in line
    data = box.path(0, ".log").read_bytes()
    sizes = sizes_of(data)
    assert len(sizes) == 3
    assert data[sizes[0] : sizes[0] + sizes[1]] == bad
    # What it may have replaced is still there; what is older than a sound one is not.
    assert [record.key for record in read_records(data[: sizes[0]])] == [b"a"]
    assert [record.key for record in read_records(data[sum(sizes[:2]) :])] == [b"b"]


def sizes_of(data: bytes) -> list[int]:
    """Of the batches that lie behind each other."""
    sizes: list[int] = []
    while sum(sizes) < len(data):
        sizes.append(read_header(data, sum(sizes)).size_bytes)
    return sizes


def test_where_no_batch_can_begin_the_round_ends_and_leaves_nothing(tmp_path: Path) -> None:
    box = box_at(tmp_path)
    log = box.open()
    put_keys(log, "ab")
    start = log.segments.active.size_bytes
    put_keys(log, "a")
    log.roll(NOW_MS)
    with box.path(0, ".log").open("r+b") as file:
        file.seek(start + 8)
        file.write(b"\x00\x00\x00\x01")
    with pytest.raises(CorruptBatchError, match=f"at byte {start}: length 1 is too small"):
        clean(log, NOW_MS)
    assert box.names(".cleaned") == []


def test_a_batch_larger_than_the_buffer_is_read_whole(tmp_path: Path) -> None:
    box = box_at(tmp_path, segment_bytes=100_000)
    log = box.open()
    for number in range(3):
        put_keys(log, "ab", bytes([number]) * 20_000)
    log.roll(NOW_MS)
    clean(log, NOW_MS)
    records = list(LogReader(box.directory).records())
    assert [(record.key, record.value) for record in records] == [
        (b"a", b"\x02" * 20_000),
        (b"b", b"\x02" * 20_000),
    ]


def test_tombstones_go_when_their_horizon_has_passed(tmp_path: Path) -> None:
    box = box_at(tmp_path, delete_retention_ms=1000)
    log = box.open()
    put_keys(log, "ab")
    put_keys(log, "a", None)
    log.roll(NOW_MS)
    put_keys(log, "c")
    for now_ms, left in ((NOW_MS, "bac"), (NOW_MS + 999, "bac"), (NOW_MS + 1000, "bc")):
        clean(log, now_ms)
        assert keys_of(box) == left, now_ms


def test_a_tombstone_that_may_stay_for_ever_needs_no_horizon(tmp_path: Path) -> None:
    box = box_at(tmp_path, delete_retention_ms=2**63 - 1)
    log = box.open()
    put_keys(log, "a", None)
    log.roll(NOW_MS)
    clean(log, NOW_MS)
    clean(log, NOW_MS + 10**9)
    assert keys_of(box) == "a"
    assert not read_header(box.path(0, ".log").read_bytes()).has_delete_horizon


def test_the_last_batch_of_a_living_producer_stays_without_its_records(tmp_path: Path) -> None:
    box = box_at(tmp_path)
    log = box.open()
    put_keys(log, "ab", producer_id=7, producer_epoch=1, base_sequence=40)
    put_keys(log, "ab")
    log.roll(NOW_MS)
    put_keys(log, "c")
    clean(log, NOW_MS)
    header = read_header(box.path(0, ".log").read_bytes())
    assert (header.record_count, header.last_offset, header.last_sequence) == (0, 1, 41)
    for path in box.directory.glob("*.snapshot"):
        path.unlink()
    log = box.open(clean=False)
    put_keys(log, "d", producer_id=7, producer_epoch=1, base_sequence=42)
    assert keys_of(box) == "abcd"


def test_the_marker_of_an_empty_transaction_goes_after_its_own_horizon(tmp_path: Path) -> None:
    box = box_at(tmp_path, delete_retention_ms=1000)
    log = box.open()
    put_keys(log, "ab", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    end_transaction(log, 7, 0, commit=False)
    put_keys(log, "c", producer_id=7, producer_epoch=0, base_sequence=2)
    log.roll(NOW_MS)
    put_keys(log, "d")
    found = []
    for now_ms in (NOW_MS, NOW_MS + 1, NOW_MS + 1001):
        clean(log, now_ms)
        headers = [header for _, header in log.segments[0].headers_from(0)]
        found.append([header.is_control for header in headers])
    assert found == [[True, False], [True, False], [False]]
    assert keys_of(box) == "cd"


def test_a_round_that_begins_behind_an_aborted_transaction_knows_the_next_one(
    tmp_path: Path,
) -> None:
    box = box_at(tmp_path)
    log = box.open()
    producer = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
    put_keys(log, "x", base_sequence=0, **producer)
    end_transaction(log, 7, 0, commit=False)
    log.roll(NOW_MS)
    put_keys(log, "a")
    put_keys(log, "a", b"aborted", base_sequence=1, **producer)
    end_transaction(log, 7, 0, commit=False)
    put_keys(log, "bb", base_sequence=2, **producer)
    end_transaction(log, 7, 0, commit=True)
    log.roll(NOW_MS)
    clean(log, NOW_MS, checkpoint=2)
    assert keys_of(box) == "ab"


# --- hooks


def test_reads_and_writes_are_told_of(tmp_path: Path) -> None:
    box = box_at(tmp_path)
    log = box.open()
    Writer(1, null_keys=False).write(log, 50)
    told: list[int] = []
    stats = clean(log, NOW_MS, on_io=told.append).stats
    moved = stats.map_bytes_read + stats.bytes_read + stats.bytes_written
    assert moved <= sum(told) < 1.2 * moved  # a batch that is cut by a read is read again
    assert max(told) <= 8192


def test_the_count_of_records_reports_and_ends_when_they_are_too_many(tmp_path: Path) -> None:
    box = box_at(tmp_path)
    log = box.open()
    for number in range(400):
        put(log, b"v", key=b"%d" % number)
    task = task_for(log, assess(log, None, NOW_MS), NOW_MS)
    # The second map has room for 90 keys; a segment has 13 records.
    for buffer_bytes, reports in [(1 << 20, len(task.segments)), (2400, 7)]:
        told: list[int] = []
        cleaner = Cleaner(box.files, dedupe_buffer_bytes=buffer_bytes, on_io=told.append)
        cleaner.clean(task, lambda _: None)
        assert told.count(0) == reports
        log.discard_cleaned()


def test_a_round_that_is_called_off_leaves_nothing_of_its_group(tmp_path: Path) -> None:
    box = box_at(tmp_path)
    log = box.open()
    Writer(1, null_keys=False).write(log, 100)
    task = task_for(log, assess(log, None, NOW_MS), NOW_MS)
    groups: list[CleanedGroup] = []

    class CalledOff(BaseException):
        pass

    def call_off(_size: int) -> None:
        if len(groups) == 2:
            raise CalledOff

    cleaner = Cleaner(box.files, dedupe_buffer_bytes=BUFFER_BYTES, on_io=call_off)
    with pytest.raises(CalledOff):
        cleaner.clean(task, groups.append)
    assert len(groups) == 2
    offsets = {name.split(".")[0] for name in box.names(".cleaned")}
    assert offsets == {f"{group.segments[0].base_offset:020d}" for group in groups}
    log.discard_cleaned()
    assert box.names(".cleaned") == []


# --- the plan


def test_how_dirty_a_log_is(tmp_path: Path) -> None:
    box = box_at(tmp_path)
    log = box.open()
    assert assess(log, None, NOW_MS) == LogToClean(
        0, 0, 0, 0, 0, checkpoint_is_invalid=False, truncations=0
    )
    for keys in ("ab", "cd", "ef"):
        put_keys(log, keys)
        log.roll(NOW_MS)
    put_keys(log, "g")
    size = log.segments[0].size_bytes
    plan = assess(log, 2, NOW_MS)
    assert plan == LogToClean(2, 6, size, 2 * size, 0, checkpoint_is_invalid=False, truncations=0)
    assert plan.cleanable_ratio == pytest.approx(2 / 3)
    assert plan.is_due(0.5)
    assert not plan.is_due(0.7)
    assert assess(log, 99, NOW_MS).checkpoint_is_invalid
    assert assess(log, 99, NOW_MS).first_dirty_offset == 0
    log.increment_log_start_offset(3)
    assert assess(log, 2, NOW_MS).checkpoint_is_invalid
    assert assess(log, 2, NOW_MS).first_dirty_offset == 3


def test_young_segments_and_open_transactions_are_left_alone(tmp_path: Path) -> None:
    box = box_at(tmp_path, min_compaction_lag_ms=1000)
    log = box.open()
    for keys in ("ab", "cd", "ef"):
        put_keys(log, keys)
        log.roll(NOW_MS)
    assert assess(log, None, NOW_MS + 999).first_uncleanable_offset == 0
    assert assess(log, None, NOW_MS + 1000).first_uncleanable_offset == 6
    log.update_config(log.config.replace(min_compaction_lag_ms=0))
    put_keys(log, "g", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    log.roll(NOW_MS)
    put_keys(log, "h")
    log.roll(NOW_MS)
    assert assess(log, None, NOW_MS).first_uncleanable_offset == 6
    end_transaction(log, 7, 0, commit=True)
    assert assess(log, None, NOW_MS).first_uncleanable_offset == 8


def test_a_log_with_old_dirty_records_is_due_whatever_its_ratio(tmp_path: Path) -> None:
    box = box_at(tmp_path, max_compaction_lag_ms=DAY_MS)
    log = box.open()
    put_keys(log, "ab")
    log.roll(NOW_MS)
    put_keys(log, "a")
    assert not assess(log, 0, NOW_MS + DAY_MS).is_due(1.0)
    assert assess(log, 0, NOW_MS + DAY_MS + 5).compaction_delay_ms == 5
    assert assess(log, 0, NOW_MS + DAY_MS + 5).is_due(1.0)
    assert not assess(log, 2, NOW_MS + DAY_MS + 5).is_due(1.0)


@pytest.mark.parametrize(
    ("segments", "groups"),
    [
        ([(0, 40), (10, 40), (20, 40)], [[0, 10], [20]]),
        ([(0, 100), (10, 0), (20, 1)], [[0, 10], [20]]),
        ([(0, 10), (2**31, 10)], [[0], [2**31]]),
        ([(0, 10), (2**31 - 2, 10), (2**31 - 1, 10)], [[0, 2**31 - 2], [2**31 - 1]]),
        ([(0, 10), (2**40, 0)], [[0, 2**40]]),
        ([(0, 200), (10, 10)], [[0], [10]]),
        ([], []),
    ],
)
def test_segments_are_grouped_by_size_and_range(
    segments: list[tuple[int, int]], groups: list[list[int]]
) -> None:
    found = group_segments(
        [SegmentToClean(*each) for each in segments],
        segments[-1][0] + 100 if segments else 0,
        segment_bytes=100,
        index_bytes=100,
        index_sizes=lambda _: (8, 12),
    )
    assert [[each.base_offset for each in group] for group in found] == groups


def test_segments_are_grouped_by_their_indexes_too() -> None:
    segments = [SegmentToClean(base, 1) for base in range(5)]
    found = group_segments(
        segments, 5, segment_bytes=100, index_bytes=100, index_sizes=lambda _: (8, 40)
    )
    assert [len(group) for group in found] == [2, 2, 1]


def test_the_last_records_of_many_producers_are_collected_in_parts(tmp_path: Path) -> None:
    log = box_at(tmp_path).open()
    for number in range(2500):
        log.producers.producers[number] = ProducerEntry(number, 0, NOW_MS)
    parts = list(last_records_in_parts(log))
    assert [len(part) // LAST_RECORD.size for part in parts] == [1000, 1000, 500]
    task = task_for(log, assess(log, None, NOW_MS), NOW_MS)
    assert task.last_records == b"".join(parts)
    assert len(pickle.dumps(task)) < 2500 * LAST_RECORD.size + 2000


# --- the swap


def test_readers_of_the_old_files_read_on_and_the_files_go_after_their_delay(
    tmp_path: Path,
) -> None:
    box = box_at(tmp_path, file_delete_delay_ms=500)
    log = box.open()
    put(log, b"old", b"new")
    log.roll(NOW_MS)
    put(log, b"newest")
    piece = log.read(0, 1 << 20, at_least_one_batch=True)
    clean(log, NOW_MS)
    data = os.pread(piece.file.fd, piece.size_bytes, piece.position)
    assert [record.value for record in read_records(data)] == [b"old", b"new"]
    assert [record.value for record in records_from(log, 0)] == [b"new", b"newest"]
    assert box.names(".deleted") == [
        f"{0:020d}{end}.deleted" for end in (".index", ".log", ".timeindex")
    ]
    box.timer.ms = 500
    assert {path.name for path in box.deletions.take_due()} >= set(box.names(".deleted"))


def test_segments_keep_when_they_were_written_and_lose_their_snapshots(tmp_path: Path) -> None:
    box = box_at(tmp_path)
    log = box.open()
    for number in range(3):
        put_keys(log, "a", producer_id=7, producer_epoch=0, base_sequence=number)
        log.roll(NOW_MS)
    for base_offset in range(3):
        box.files.set_modified_ms(box.path(base_offset, ".log"), NOW_MS + base_offset)
    assert len(box.names(".snapshot")) == 3
    clean(log, NOW_MS)
    assert log.segments.base_offsets == [0, 3]
    assert box.files.modified_ms(box.path(0, ".log")) == NOW_MS + 2
    assert box.names(".snapshot") == [f"{3:020d}.snapshot"]


def test_what_an_abandoned_round_left_does_not_undo_a_later_swap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = box_at(tmp_path)
    log = box.open()
    for keys in ("ab", "ab", "ab"):
        put_keys(log, keys)
        log.roll(NOW_MS)
    log.delete_first_segments(1, NOW_MS)
    box.path(0, ".log.cleaned").write_bytes(b"left")
    box.path(0, ".index.swap").write_bytes(b"left")
    seen: list[list[str]] = []
    real = PartitionLog.complete_replacement

    def look_before(*arguments: Any) -> bool:
        seen.append([*box.names(".cleaned"), *box.names(".swap")])
        return real(*arguments)

    monkeypatch.setattr(PartitionLog, "complete_replacement", look_before)
    clean(log, NOW_MS)
    assert seen == [[f"{2:020d}{end}.swap" for end in (".index", ".log", ".timeindex")]]


def test_a_swap_of_segments_that_went_meanwhile_is_passed_over(tmp_path: Path) -> None:
    box = box_at(tmp_path)
    log = box.open()
    put_keys(log, "ab")
    log.roll(NOW_MS)
    put_keys(log, "ab")
    groups: list[CleanedGroup] = []
    task = task_for(log, assess(log, None, NOW_MS), NOW_MS)
    Cleaner(box.files, dedupe_buffer_bytes=BUFFER_BYTES).clean(task, groups.append)
    log.delete_first_segments(1, NOW_MS)
    swap_in(log, groups[0], NOW_MS)
    assert log.segments.base_offsets == [2]
    assert [*box.names(".cleaned"), *box.names(".swap")] == []


def test_a_swap_gives_way_between_segments_and_the_log_is_used_meanwhile(tmp_path: Path) -> None:
    """A thousand small segments in one turn would hold all clients up for a fifth of a second."""
    box = box_at(tmp_path, segment_bytes=2 * len(batch_of(b"0")))
    log = box.open()
    for number in range(20):
        put(log, b"%d" % (number % 10))
    log.update_config(box.config.replace(internal_segment_bytes=1 << 20))  # all become one
    groups: list[CleanedGroup] = []
    task = task_for(log, assess(log, None, NOW_MS), NOW_MS)
    Cleaner(box.files, dedupe_buffer_bytes=BUFFER_BYTES).clean(task, groups.append)
    seen: list[tuple[int, list[bytes | None]]] = []

    def sliced(segments: Iterable[Segment]) -> Iterator[Segment]:
        for segment in segments:
            for each in list(log.segments)[:-1]:
                each.release_files()  # the next read opens them
            put(log, b"new")
            seen.append((len(log.segments), values_from(log)))
            yield segment

    [group] = groups
    swap = log.stage_replacement(group.segments, NOW_MS)
    swap.sync()
    assert log.complete_replacement(swap, group.replaced, sliced)
    assert (len(group.replaced), len(log.segments)) == (9, 2)
    assert len(seen) == 9 + 1 + 9
    old = [b"%d" % (number % 10) for number in range(20)]
    for number, (segments, values) in enumerate(seen, 1):
        kept = old if segments == 10 else values_from(log)[: -len(seen)]
        assert values == kept + [b"new"] * number
        assert (segments == 10) == (number <= 10)


def staged_swap(box: LogBox) -> tuple[PartitionLog, CleanedGroup, SegmentSwap]:
    """A staged swap of four segments for one. The first has an aborted transaction."""
    log = box.open()
    aborted = batch_of(b"t", key=b"a", producer=(9, 0, 0), is_transactional=True)
    log.append(aborted, now_ms=NOW_MS, transaction_verified=True)
    end_transaction(log, 9, 0, commit=False)
    log.roll(NOW_MS)
    for keys in ("ab", "ab", "xy"):
        put_keys(log, keys)
        log.roll(NOW_MS)
    groups: list[CleanedGroup] = []
    task = task_for(log, assess(log, None, NOW_MS), NOW_MS)
    Cleaner(Files(), dedupe_buffer_bytes=BUFFER_BYTES).clean(task, groups.append)
    [group] = groups
    assert len(group.replaced) == 4
    return log, group, log.stage_replacement(group.segments, NOW_MS)


def test_the_old_segments_of_a_swap_are_closed(tmp_path: Path) -> None:
    """An open file keeps its space when it is removed."""
    box = box_at(tmp_path)
    log, group, swap = staged_swap(box)
    read_to_the_end(log)
    assert len(open_files(box.directory)) > len(group.replaced)
    assert log.complete_replacement(swap, group.replaced)
    assert len(open_files(box.directory)) == 1  # of the active segment
    assert log._swap is None


def read_to_the_end(log: PartitionLog) -> tuple[list[int], list[AbortedTransaction]]:
    """The offsets that are left, and the aborted transactions among them."""
    fetched = log.read_committed(log.log_start_offset, 1 << 20, at_least_one_batch=True)
    return [record.offset for record in records_from(log)], fetched.aborted


def test_a_truncation_undoes_a_swap_that_has_replaced_nothing_yet(tmp_path: Path) -> None:
    box = box_at(tmp_path)
    log, group, swap = staged_swap(box)
    everything, aborted = read_to_the_end(log)
    assert aborted
    log.truncate_to(4, NOW_MS)
    assert log.complete_replacement(swap, group.replaced)
    assert read_to_the_end(log) == (everything[:4], aborted)
    assert [*box.names(".cleaned"), *box.names(".swap")] == []
    assert read_to_the_end(box.open()) == read_to_the_end(log)


class FullDisk(QuickFiles):
    """The removal number `fails_at` finds no space."""

    fails_at = -1

    def remove(self, path: Path) -> None:
        self.fails_at -= 1
        if self.fails_at == 0:
            raise OSError(errno.ENOSPC, "no space", str(path))
        super().remove(path)


@pytest.mark.parametrize("fails_at", range(1, 2 * len(FILE_KINDS) + 1))
def test_a_swap_that_a_truncation_cannot_undo_for_now_is_not_completed(
    tmp_path: Path, fails_at: int
) -> None:
    box = box_at(tmp_path, files := FullDisk())
    log, group, swap = staged_swap(box)
    before = read_to_the_end(log), log.truncations
    files.fails_at = fails_at
    with pytest.raises(ApiError):
        log.truncate_to(4, NOW_MS)
    assert log.complete_replacement(swap, group.replaced)
    assert read_to_the_end(log) == before[0]
    assert log.truncations > before[1]  # ends the round
    assert [*box.names(".cleaned"), *box.names(".swap")] == []
    assert read_to_the_end(box.open()) == before[0]


@pytest.mark.parametrize("at", [1, 3, 5])
def test_a_truncation_completes_a_swap_that_has_begun_to_replace_segments(
    tmp_path: Path, at: int
) -> None:
    """At 1 no old segment is renamed yet, at 5 all are, and the new one is not."""
    box = box_at(tmp_path)
    log, group, swap = staged_swap(box)
    everything, _ = read_to_the_end(log)
    steps = 0

    def sliced(segments: Iterable[Segment]) -> Iterator[Segment]:
        nonlocal steps
        for segment in segments:
            steps += 1
            if steps == at:
                log.truncate_to(7, NOW_MS)
                put_keys(log, "cd")
            yield segment

    assert log.complete_replacement(swap, group.replaced, sliced)
    offsets, _ = read_to_the_end(log)
    assert offsets[-2:] == [7, 8]
    assert set(offsets[:-2]) < {offset for offset in everything if offset < 7}
    assert [*box.names(".cleaned"), *box.names(".swap")] == []
    assert read_to_the_end(box.open()) == read_to_the_end(log)


class Failing(QuickFiles):
    """The rename number `fails_at` fails."""

    fails_at = -1
    renames = 0

    def rename(self, source: Path, target: Path) -> None:
        self.renames += 1
        if self.renames == self.fails_at:
            raise OSError(5, "broken", str(source))
        super().rename(source, target)


def test_a_swap_that_fails_changes_nothing_or_takes_the_log_offline_until_a_restart(
    tmp_path: Path,
) -> None:
    outcomes = []
    for fails_at in range(1, 20):
        files = Failing()
        box = box_at(tmp_path / str(fails_at), files)
        log = box.open()
        for keys in ("abc", "ab"):
            put_keys(log, keys)
            log.roll(NOW_MS)
        put_keys(log, "d")
        files.fails_at = files.renames + fails_at
        try:
            clean(log, NOW_MS)
        except ApiError:
            outcomes.append(log.is_online)
        if log.is_online and fails_at <= len(outcomes):
            # The last one is of a snapshot, and then the swap is done.
            assert keys_of(box) == ("abcabd" if fails_at <= 3 else "cabd")
            assert [*box.names(".cleaned"), *box.names(".swap")] == []
        else:
            files.fails_at = -1
            log = box.open(clean=False)
            assert keys_of(box) in ("cabd", "abcabd", "cababd")
    assert outcomes[:3] == [True] * 3
    assert set(outcomes[3:-1]) == {False}
    assert outcomes[-1]
