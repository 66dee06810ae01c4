"""Appending: offsets, producers, rolling; a failed append changes nothing."""

import errno
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from odradek.protocol.batch_header import read_header
from odradek.protocol.compression import Buffer
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.append import EndMarker
from odradek.storage.files import Files, NonBlockingReads, OpenFile
from odradek.storage.log import AppendOrigin, PartitionLog
from tests.support.faulty_files import FaultyFiles
from tests.support.log_box import (
    NOW_MS,
    LogBox,
    batch_of,
    put,
    read_slice,
    records_from,
    split,
    values_from,
)

DAY_MS = 86_400_000


def code_of(log: PartitionLog, batch: bytes, **options: Any) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        log.append(batch, now_ms=NOW_MS, **options)
    return caught.value.code


def test_an_append_amid_reads_that_must_not_wait_opens_the_indexes(tmp_path: Path) -> None:
    box = LogBox(tmp_path, index_interval_bytes=0)
    log = box.open()
    with NonBlockingReads(box.files):
        put(log, b"a")
        put(log, b"b")  # the first entry of the indexes
        put(log, b"c")
    assert values_from(log, 0) == [b"a", b"b", b"c"]


def test_offset_and_epoch_are_stamped_and_the_rest_is_the_clients(tmp_path: Path) -> None:
    log = LogBox(tmp_path).open()
    log.become_leader(7)
    put(log, b"a", b"b")
    batch = batch_of(b"c", b"d", b"e")
    result = log.append(batch, now_ms=NOW_MS)
    assert (result.base_offset, result.last_offset, result.log_append_time_ms) == (2, 4, -1)
    _, stored = split(read_slice(log, 0))
    assert read_header(stored)[:3] == (2, len(batch) - 12, 7)
    assert stored[16:] == batch[16:]


def test_log_append_time_is_answered_and_stored(tmp_path: Path) -> None:
    log = LogBox(tmp_path, message_timestamp_type="LogAppendTime").open()
    result = log.append(batch_of(b"a", timestamps=[3]), now_ms=NOW_MS + 5)
    assert result.log_append_time_ms == NOW_MS + 5
    assert [record.timestamp_ms for record in records_from(log)] == [NOW_MS + 5]
    assert log.offset_for_timestamp(NOW_MS) == (NOW_MS + 5, 0, 0)


def test_a_batch_over_segment_bytes_is_refused(tmp_path: Path) -> None:
    log = LogBox(tmp_path, segment_bytes=200).open()
    assert code_of(log, batch_of(bytes(200))) is ErrorCode.RECORD_LIST_TOO_LARGE
    assert log.log_end_offset == 0


def test_listeners_hear_of_appends_and_rolls(tmp_path: Path) -> None:
    log = LogBox(tmp_path).open()
    heard: list[str] = []
    log.on_append.add(lambda which: heard.append(f"{which.name} ends at {which.log_end_offset}"))
    log.on_roll.add(lambda which: heard.append(f"{which.segments.active.base_offset} is active"))
    put(log, b"a")
    log.roll(NOW_MS)
    with pytest.raises(ApiError):
        log.append(b"", now_ms=NOW_MS)
    assert heard == ["orders-0 ends at 1", "1 is active"]


# --- idempotent producers


def test_a_repeated_batch_is_answered_as_the_first_time(tmp_path: Path) -> None:
    log = LogBox(tmp_path).open()
    batches = [batch_of(b"v", b"w", producer=(5, 0, 2 * n)) for n in range(6)]
    for batch in batches:
        log.append(batch, now_ms=NOW_MS)
    again = log.append(batches[1], now_ms=NOW_MS)
    assert (again.is_duplicate, again.base_offset, again.last_offset) == (True, 2, 3)
    assert code_of(log, batches[0]) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER  # the last five
    assert log.log_end_offset == 12


@pytest.mark.parametrize("how", ["closed", "killed"])
@pytest.mark.parametrize("segment_bytes", [100, 5000])
def test_the_last_five_batches_are_known_after_a_restart(
    tmp_path: Path, how: str, segment_bytes: int
) -> None:
    box = LogBox(tmp_path, segment_bytes=segment_bytes)
    log = box.open()
    batches = [batch_of(b"v", producer=(5, 0, n)) for n in range(7)]
    for batch in batches:
        log.append(batch, now_ms=NOW_MS)
    if how == "closed":
        log.close(NOW_MS)
    log = box.open(clean=how == "closed")
    again = [log.append(batch, now_ms=NOW_MS) for batch in batches[2:]]
    assert [(each.is_duplicate, each.base_offset) for each in again] == [
        (True, offset) for offset in range(2, 7)
    ]
    for refused in (batches[1], batch_of(b"y", producer=(5, 0, 8))):
        assert code_of(log, refused) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    put(log, b"x", producer=(5, 0, 7))


def test_an_old_epoch_is_fenced(tmp_path: Path) -> None:
    log = LogBox(tmp_path).open()
    put(log, b"v", producer=(5, 3, 0))
    assert code_of(log, batch_of(b"w", producer=(5, 2, 1))) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.log_end_offset == 1


def test_a_transaction_must_be_known_to_the_coordinator(tmp_path: Path) -> None:
    log = LogBox(tmp_path).open()
    batch = batch_of(b"v", producer=(5, 0, 0), is_transactional=True)
    assert code_of(log, batch) is ErrorCode.INVALID_TXN_STATE
    log.append(batch, now_ms=NOW_MS, transaction_verified=True)
    put(log, b"w", producer=(5, 0, 1), is_transactional=True)  # it is open now
    assert (log.last_stable_offset, log.high_watermark) == (0, 2)


# --- batches of this broker


def test_the_coordinators_batches_get_offsets_and_epoch(tmp_path: Path) -> None:
    log = LogBox(tmp_path).open()
    log.become_leader(3)
    for batch, offsets in ((batch_of(b"a", b"b"), (0, 1)), (batch_of(b"c"), (2, 2))):
        result = log.append(batch, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)
        assert (result.base_offset, result.last_offset) == offsets
    assert [record.offset for record in records_from(log)] == [0, 1, 2]
    assert {read_header(each).partition_leader_epoch for each in split(read_slice(log, 0))} == {3}


def test_a_coordinator_appends_one_batch_at_a_time(tmp_path: Path) -> None:
    log = LogBox(tmp_path).open()
    with pytest.raises(ApiError) as refused:
        log.append(batch_of(b"a") + batch_of(b"b"), now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)
    assert refused.value.code is ErrorCode.INVALID_RECORD
    assert log.log_end_offset == 0


def test_a_marker_ends_the_transaction_and_an_abort_is_indexed(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    log = box.open()
    for value in (b"v", b"w"):
        batch = batch_of(value, producer=(5, 0, 0 if value == b"v" else 1), is_transactional=True)
        log.append(batch, now_ms=NOW_MS, transaction_verified=True)
    log.append_marker(
        EndMarker(5, 0, is_commit=False, coordinator_epoch=1, transaction_version=0), NOW_MS
    )
    assert log.last_stable_offset == log.high_watermark == 3
    entry = box.path(0, ".txnindex").read_bytes()
    assert entry == b"\x00\x00" + b"".join(n.to_bytes(8, "big") for n in (5, 0, 2, 3))
    log = box.open(clean=False)  # recovery makes the same file
    assert log.last_stable_offset == 3
    assert box.path(0, ".txnindex").read_bytes() == entry


# --- rolling


def bases(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_a_full_segment_is_rolled(tmp_path: Path) -> None:
    size = len(batch_of(b"v"))
    log = LogBox(tmp_path, segment_bytes=3 * size).open()
    for _ in range(7):
        put(log, b"v")
    assert bases(log) == [0, 3, 6]
    assert values_from(log) == [b"v"] * 7


def test_segment_ms_counts_from_the_first_records_timestamp(tmp_path: Path) -> None:
    log = LogBox(tmp_path, segment_ms=DAY_MS).open()
    put(log, b"first", timestamps=[NOW_MS - 3 * DAY_MS])
    put(log, b"a day", timestamps=[NOW_MS - 2 * DAY_MS], now_ms=NOW_MS + 99 * DAY_MS)
    assert bases(log) == [0]
    put(log, b"more", timestamps=[NOW_MS - 2 * DAY_MS + 1])
    assert bases(log) == [0, 2]


def test_segment_ms_counts_from_the_making_where_records_have_no_timestamp(tmp_path: Path) -> None:
    log = LogBox(tmp_path, segment_ms=DAY_MS).open()
    put(log, b"a", timestamps=[-1], now_ms=NOW_MS + DAY_MS)
    put(log, b"b", timestamps=[-1], now_ms=NOW_MS + DAY_MS + 1)
    assert bases(log) == [0, 1]


def test_jitter_rolls_earlier_and_never_later(tmp_path: Path) -> None:
    log = LogBox(tmp_path, segment_ms=DAY_MS, segment_jitter_ms=DAY_MS).open()
    waits = []
    first = NOW_MS - 2 * DAY_MS
    for step in range(0, 2 * DAY_MS, DAY_MS // 200):
        offset = put(log, b"v", timestamps=[first + step])
        if bases(log)[-1] == offset and offset:
            waits.append(step)
    spans = [late - early for early, late in zip([0, *waits], waits, strict=False)]
    assert spans
    assert all(span <= DAY_MS + DAY_MS // 200 for span in spans)
    assert len(set(spans)) > 1


@pytest.mark.parametrize("index_bytes", [40, 60])  # 5 offset entries; 3 or 5 time entries
def test_a_full_index_rolls(tmp_path: Path, index_bytes: int) -> None:
    box = LogBox(tmp_path, segment_index_bytes=index_bytes, index_interval_bytes=0)
    log = box.open()
    for n in range(12):
        put(log, b"v", timestamps=[NOW_MS + n])
    entries = min(index_bytes // 8, index_bytes // 12 - 1)
    assert bases(log)[1] == entries + 1  # the first batch has no entry
    assert values_from(log) == [b"v"] * 12


def test_indexes_with_more_entries_than_a_lowered_setting_allows_stay_whole(tmp_path: Path) -> None:
    log = LogBox(tmp_path, index_interval_bytes=0).open()
    for number in range(100):
        put(log, b"v", timestamps=[NOW_MS + number])
    log.close(NOW_MS)
    box = LogBox(tmp_path, index_interval_bytes=0, segment_index_bytes=400)
    before = [box.path(0, suffix).read_bytes() for suffix in (".index", ".timeindex")]
    log = box.open()
    put(log, b"v", timestamps=[NOW_MS + 100])
    assert bases(log) == [0, 100]
    assert [box.path(0, suffix).read_bytes() for suffix in (".index", ".timeindex")] == before


def test_an_offset_too_far_from_the_first_rolls(tmp_path: Path) -> None:
    log = LogBox(tmp_path).open()
    put(log, b"v")
    log.log_end_offset = 2**31
    put(log, b"far")
    assert bases(log) == [0, 2**31]
    assert values_from(log) == [b"v", b"far"]


def test_an_empty_segment_is_not_rolled(tmp_path: Path) -> None:
    log = LogBox(tmp_path).open()
    log.roll(NOW_MS)
    assert bases(log) == [0]


def test_files_are_preallocated_while_active_and_cut_when_rolled(tmp_path: Path) -> None:
    box = LogBox(tmp_path, segment_index_bytes=1000, preallocate=True, segment_bytes=5000)
    log = box.open()
    put(log, b"v")
    kinds = (".log", ".index", ".timeindex")
    sizes = [box.path(0, kind).stat().st_size for kind in kinds]
    assert sizes == [5000, 1000, 996]
    log.roll(NOW_MS)
    sizes = [box.path(0, kind).stat().st_size for kind in kinds]
    assert sizes == [len(batch_of(b"v")), 0, 12]
    assert box.names(".snapshot") == ["00000000000000000001.snapshot"]


def test_a_segment_whose_indexes_were_not_cut_at_a_clean_end_goes_on(tmp_path: Path) -> None:
    """As Kafka 4.4 leaves its metadata log."""
    box = LogBox(tmp_path, segment_index_bytes=1000)
    log = box.open()
    put(log, b"v")
    log.close(NOW_MS)
    for kind, size in ((".index", 1000), (".timeindex", 996)):
        box.path(0, kind).write_bytes(bytes(size))
    log = box.open()
    put(log, b"w")
    assert bases(log) == [0]
    assert values_from(log) == [b"v", b"w"]


def test_new_settings_hold_from_the_next_append_on(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    log = box.open()
    put(log, b"v")
    log.update_config(LogBox(tmp_path, segment_bytes=100, max_message_bytes=90).config)
    assert code_of(log, batch_of(b"v" * 50)) is ErrorCode.MESSAGE_TOO_LARGE
    put(log, b"w")
    assert bases(log) == [0, 1]


# --- indexes of the active segment


def index_on_disk(box: LogBox) -> list[tuple[int, int]]:
    """Offset and position of the entries in the file; what follows them in it is zeros."""
    data = box.path(0, ".index").read_bytes()
    return [pair for pair in struct.iter_unpack(">II", data) if pair != (0, 0)]


def test_the_index_on_disk_is_not_far_behind_the_log(tmp_path: Path) -> None:
    """Without a sync: who reads the files beside the broker does not scan the whole segment."""
    box = LogBox(tmp_path, index_interval_bytes=0)
    log = box.open()
    for number in range(300):
        put(log, b"%d" % number)
    on_disk = index_on_disk(box)
    assert 150 < len(on_disk) < 300
    log.close(NOW_MS)
    assert index_on_disk(box)[: len(on_disk)] == on_disk
    assert len(index_on_disk(box)) == 299


def test_an_index_that_cannot_be_written_fails_no_append(tmp_path: Path) -> None:
    files = FaultyFiles()
    box = LogBox(tmp_path, files=files, index_interval_bytes=0)
    log = box.open()
    put(log, b"first")
    files.fail(lambda kind, path: kind == "pwrite" and path.suffix in (".index", ".timeindex"))
    for number in range(299):
        put(log, b"%d" % number)
    assert index_on_disk(box) == []
    files.heal()
    log.close(NOW_MS)
    assert len(index_on_disk(box)) == 299
    assert len(values_from(box.open(clean=True))) == 300


# --- failures


class FailingFiles(Files):
    """Fails the calls that `fail` names; a failing write still writes `half` of it."""

    def __init__(self) -> None:
        self.fail: set[str] = set()
        self.error = errno.ENOSPC
        self.half = 0
        self.short_writes = False

    def _maybe_fail(self, call: str) -> None:
        if call in self.fail:
            raise OSError(self.error, os.strerror(self.error))

    def _writev(self, file: OpenFile, buffers: Sequence[Buffer], position: int) -> int:
        data = b"".join(buffers)
        if "write" in self.fail:
            os.pwrite(file.fd, data[: self.half], position)
        self._maybe_fail("write")
        return os.pwrite(file.fd, data[:7] if self.short_writes else data, position)

    def open(self, path: Path, *, create: bool = False, read_only: bool = False) -> OpenFile:
        if create:
            self._maybe_fail(f"create {path.suffix}")
        return super().open(path, create=create, read_only=read_only)

    def truncate(self, file: OpenFile, size: int) -> None:
        self._maybe_fail("truncate")
        super().truncate(file, size)

    def pread(self, file: OpenFile, size: int, position: int) -> bytes:
        self._maybe_fail("read")
        return super().pread(file, size, position)

    def fsync(self, file: OpenFile) -> None:
        self._maybe_fail("fsync")
        super().fsync(file)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
@pytest.mark.parametrize("half", [0, 1, 40, 10_000])
@pytest.mark.parametrize("cut_fails", [False, True])
def test_a_failed_write_leaves_the_log_as_it_was(
    tmp_path: Path, error: int, half: int, cut_fails: bool
) -> None:
    files = FailingFiles()
    box = LogBox(tmp_path, files=files, index_interval_bytes=0)
    log = box.open()
    reported: list[int | None] = []
    log.on_disk_error = lambda _, disk_error: reported.append(disk_error.errno)
    first, second = batch_of(b"a", producer=(5, 0, 0)), batch_of(b"b", producer=(5, 0, 1))
    log.append(first, now_ms=NOW_MS)
    before = (log.log_end_offset, log.size_bytes, log.segments.active.offset_index.entries)
    files.error, files.half = error, half
    files.fail = {"write", "truncate"} if cut_fails else {"write"}
    assert code_of(log, second) is ErrorCode.KAFKA_STORAGE_ERROR
    assert reported == [error]
    files.fail = set()
    now = (log.log_end_offset, log.size_bytes, log.segments.active.offset_index.entries)
    assert now == before
    assert values_from(log) == [b"a"]
    if half and cut_fails:
        killed = box.open(clean=False)
        assert values_from(killed)[0] == b"a"
        return
    assert not log.append(second, now_ms=NOW_MS).is_duplicate
    assert values_from(log) == values_from(box.open(clean=False)) == [b"a", b"b"]


def test_short_writes_are_finished(tmp_path: Path) -> None:
    files = FailingFiles()
    log = LogBox(tmp_path, files=files).open()
    files.short_writes = True
    for n in range(5):
        put(log, b"v%d" % n)
    assert values_from(log) == [b"v0", b"v1", b"v2", b"v3", b"v4"]


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex", ".snapshot"])
def test_a_roll_that_fails_can_be_tried_again(tmp_path: Path, suffix: str) -> None:
    files = FailingFiles()
    size = len(batch_of(b"v"))
    box = LogBox(tmp_path, files=files, segment_bytes=2 * size, index_interval_bytes=0)
    log = box.open()
    put(log, b"a")
    put(log, b"b")
    files.fail = {f"create {suffix}"}
    assert code_of(log, batch_of(b"c")) is ErrorCode.KAFKA_STORAGE_ERROR
    assert values_from(log) == [b"a", b"b"]
    files.fail = set()
    put(log, b"c")
    put(log, b"d")
    assert (bases(log), values_from(log)) == ([0, 2], [b"a", b"b", b"c", b"d"])
    log.close(NOW_MS)
    assert values_from(box.open()) == [b"a", b"b", b"c", b"d"]


def test_a_failed_read_is_a_storage_error(tmp_path: Path) -> None:
    files = FailingFiles()
    box = LogBox(tmp_path, files=files)
    put(box.open(), b"a")
    log = box.open(clean=False)
    files.fail, files.error = {"read"}, errno.EIO
    for action in (
        lambda: log.read(0, 10, at_least_one_batch=True),
        lambda: log.offset_for_timestamp(0),
    ):
        with pytest.raises(ApiError) as caught:
            action()
        assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_after_a_failed_sync_nothing_is_appended_any_more(tmp_path: Path) -> None:
    files = FailingFiles()
    log = LogBox(tmp_path, files=files).open()
    put(log, b"a")
    files.fail, files.error = {"fsync"}, errno.EIO
    with pytest.raises(ApiError) as caught:
        log.flush(NOW_MS)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    files.fail = set()
    assert log.recovery_point == 0
    assert code_of(log, batch_of(b"b")) is ErrorCode.KAFKA_STORAGE_ERROR
