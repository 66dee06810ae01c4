"""Files that a start does not find as they were left: what can be made anew is, and the answers to
every question are the same; where the log itself is unsound, one line says so and all else goes on.
"""

import errno
import logging
import shutil
import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

import pytest

from odradek.protocol.compression import Buffer
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.storage.files import Files, OpenFile
from odradek.storage.log import PartitionLog
from odradek.storage.txn_index import AbortedTransaction, read_aborted, rewrite_aborted
from tests.storage.recovering.test_recovery import (
    answers,
    cut_one_byte,
    empty,
    fill_with_noise,
    fill_with_zeros,
    filled,
    remove,
)
from tests.storage.test_log_manager import Node
from tests.support.crashing_files import CrashedError, CrashingFiles
from tests.support.log_box import NOW_MS, LogBox, batch_of, put, values_from
from tests.support.log_files import end_transaction, used_log

SETTINGS = {"segment_bytes": 1500, "index_interval_bytes": 200}
DAMAGES = [remove, empty, fill_with_zeros, cut_one_byte, fill_with_noise]
Damage = Callable[[Path, bytes], None]


def transactions(log: PartitionLog) -> list[list[AbortedTransaction]]:
    """What a read_committed consumer is told at every offset."""
    return [
        log.read_committed(offset, 1 << 20, at_least_one_batch=True).aborted
        for offset in offsets_of(log)
    ]


def offsets_of(log: PartitionLog) -> range:
    return range(log.log_start_offset, log.log_end_offset)


# --- transaction indexes


@pytest.mark.parametrize("damage", [empty, cut_one_byte, fill_with_zeros, fill_with_noise])
def test_a_garbled_transaction_index_is_made_anew_after_a_clean_stop(
    tmp_path: Path, damage: Damage
) -> None:
    box = used_log(tmp_path)
    wanted = transactions(box.open())
    assert any(wanted)
    for name in box.names(".txnindex"):
        path = box.directory / name
        damage(path, path.read_bytes())
        assert transactions(box.open()) == wanted, name
        assert path.read_bytes()


@pytest.mark.parametrize("damage", DAMAGES)
def test_transaction_indexes_are_made_anew_after_an_unclean_stop(
    tmp_path: Path, damage: Damage
) -> None:
    box = used_log(tmp_path)
    wanted = transactions(box.open())
    for name in box.names(".txnindex"):
        path = box.directory / name
        damage(path, path.read_bytes())
    assert transactions(box.open(clean=False)) == wanted


def test_a_transaction_index_that_cannot_be_replaced_keeps_its_entries(tmp_path: Path) -> None:
    class FullDisk(Files):
        def append(self, file: OpenFile, buffers: Sequence[Buffer]) -> int:
            raise OSError(errno.ENOSPC, "no space left on device", str(file.path))

    path = tmp_path / "00000000000000000000.txnindex"
    entries = [AbortedTransaction(1, 0, 1, 0), AbortedTransaction(2, 2, 3, 2)]
    rewrite_aborted(Files(), path, entries)
    with pytest.raises(OSError, match="no space"):
        rewrite_aborted(FullDisk(), path, entries[:1])
    assert read_aborted(Files(), path) == entries


def test_the_snapshots_that_a_rebuilt_transaction_index_has_deleted_are_known_to_be(
    tmp_path: Path,
) -> None:
    box = used_log(tmp_path)
    first = box.directory / box.names(".txnindex")[0]
    first.write_bytes(first.read_bytes()[:-1])
    snapshots = box.open(clean=False, recovery_point=1 << 40).producers.snapshot_offsets
    assert [f"{offset:020d}.snapshot" for offset in snapshots] == box.names(".snapshot")


def test_a_kill_at_any_rename_of_a_deletion_makes_no_aborted_record_committed(
    tmp_path: Path,
) -> None:
    box = used_log(tmp_path / "whole")
    log = box.open()
    wanted = dict(enumerate(transactions(log)))
    deleted = next(n for n, each in enumerate(log.segments, 1) if each.aborted())
    log.close(NOW_MS)
    starts = set()
    for step in count():
        killed = LogBox(tmp_path / str(step))
        shutil.copytree(box.directory, killed.directory)
        log = killed.open()
        old, files = list(log.segments)[:deleted], CrashingFiles(step)
        for segment in old:
            segment.files = files
        try:
            log.delete_first_segments(deleted, NOW_MS)
        except CrashedError:
            found = killed.open(clean=False, recovery_point=log.log_end_offset)
            starts.add(found.log_start_offset)
            assert transactions(found) == [wanted[offset] for offset in offsets_of(found)], step
        else:
            break
    assert starts == {segment.base_offset for segment in (*old, log.segments[0])}


def test_every_changed_byte_of_a_transaction_index_that_shows_is_put_right(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    log = box.open()
    log.become_leader(0)
    put(log, b"before")
    log.append(
        batch_of(b"t", producer=(9, 0, 0), is_transactional=True),
        now_ms=NOW_MS,
        transaction_verified=True,
    )
    end_transaction(log, 9, aborts=True)
    log.close(NOW_MS)
    [name] = box.names(".txnindex")
    path = box.directory / name
    stored = path.read_bytes()
    wanted = transactions(box.open())
    unseen = []
    for position in range(len(stored)):
        data = bytearray(stored)
        data[position] ^= 0x80
        path.write_bytes(data)
        if transactions(box.open()) != wanted:
            unseen.append(position)
    assert set(unseen) <= {*range(3, 10)}  # another producer id is as plausible


def transaction(log: PartitionLog, sequence: int, *, aborts: bool) -> None:
    batch = batch_of(b"t", producer=(9, 0, sequence), is_transactional=True)
    log.append(batch, now_ms=NOW_MS, transaction_verified=True)
    end_transaction(log, 9, aborts=aborts)


def damage_index(path: Path, *entries: AbortedTransaction) -> None:
    """Write an index with these entries and one byte more, so that it is rebuilt."""
    rewrite_aborted(Files(), path, entries)
    with path.open("ab") as file:
        file.write(b"\0")


def test_an_entry_that_names_no_abort_marker_is_dropped(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    log = box.open()
    put(log, b"before")
    for sequence, aborts in enumerate((True, False, True)):
        transaction(log, sequence, aborts=aborts)
    log.close(NOW_MS)
    path = box.path(0, ".txnindex")
    wanted = transactions(box.open())
    first, last = read_aborted(Files(), path)
    assert [first.last_offset, last.last_offset] == [2, 6]
    of_another = first._replace(producer_id=8)
    for wrong in (
        first._replace(last_offset=4),  # the producer's commit marker
        first._replace(last_offset=5),  # no marker
        first._replace(last_offset=9),  # after the log's end
        of_another,
        of_another._replace(last_offset=4),
    ):
        damage_index(path, wrong, last)
        assert transactions(box.open()) == wanted, wrong
        assert read_aborted(Files(), path) == [first, last]


@pytest.mark.parametrize("unreadable", [0, 1])
def test_entries_are_kept_after_a_batch_that_cannot_be_read(
    tmp_path: Path, unreadable: int
) -> None:
    """The batch is in the segment where the transaction begins, or in that of its marker.

    In the latter the marker is not known, so that an entry of another producer is kept, too.
    """
    box = LogBox(tmp_path)
    log = box.open()
    put(log, b"a batch", b"of two")
    log.append(
        batch_of(b"t", producer=(9, 0, 0), is_transactional=True),
        now_ms=NOW_MS,
        transaction_verified=True,
    )
    log.roll(NOW_MS)
    put(log, b"another")
    end_transaction(log, 9, aborts=True)
    log.roll(NOW_MS)
    put(log, b"last")
    log.close(NOW_MS)
    for name in box.names(".snapshot"):
        (box.directory / name).unlink()
    path = box.path(3, ".txnindex")
    (entry,) = read_aborted(Files(), path)
    assert (entry.first_offset, entry.last_offset) == (2, 4)
    damage_batch(box, 3 * unreadable, 16)  # the magic of the segment's first batch
    damage_index(path, entry)
    box.open()
    assert read_aborted(Files(), path) == [entry]
    of_another = entry._replace(producer_id=8)
    damage_index(path, of_another)
    box.open()
    assert read_aborted(Files(), path) == ([of_another] if unreadable else [])


# --- the log itself


def damage_batch(box: LogBox, base_offset: int, byte: int, value: int = 0x5A) -> None:
    path = box.path(base_offset, ".log")
    data = bytearray(path.read_bytes())
    data[byte] = value
    path.write_bytes(data)


def test_an_unsound_batch_in_the_synced_part_does_not_keep_the_log_from_opening(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    box = LogBox(tmp_path, segment_bytes=3 * len(batch_of(b"v")))
    filled(box, 8).close(NOW_MS)
    for name in box.names(".snapshot"):
        (box.directory / name).unlink()  # so that the producers must be looked up in the log
    damage_batch(box, 3, 16)  # its magic
    with caplog.at_level(logging.ERROR):
        log = box.open()
    assert (log.log_start_offset, log.log_end_offset) == (0, 8)
    assert len([line for line in caplog.messages if "corrupt batch" in line]) == 1
    put(log, b"next")
    with pytest.raises(ApiError) as refusal:
        log.read(3, 1 << 20, at_least_one_batch=True)
    assert refusal.value.code is ErrorCode.CORRUPT_MESSAGE
    assert log.read(6, 1 << 20, at_least_one_batch=True).size_bytes > 0


@pytest.mark.parametrize("has_damaged_entries", [False, True])
def test_a_log_is_appended_to_although_its_newest_batch_is_damaged(
    tmp_path: Path, has_damaged_entries: bool
) -> None:
    box = LogBox(tmp_path, index_interval_bytes=0, message_timestamp_after_max_ms=1 << 62)
    log = box.open()
    for later_ms in (0, 10, 20, 3_600_000, 0, 0):
        put(log, b"v", timestamps=[NOW_MS + later_ms])
    log.close(NOW_MS)
    damage_batch(box, 0, 3 * len(batch_of(b"v")) + 16)  # the magic of the newest
    if has_damaged_entries:
        for suffix, entry in (
            (".index", struct.pack(">ii", 1000, 5 * len(batch_of(b"v")))),
            (".timeindex", struct.pack(">qi", NOW_MS + 15, 1000)),
        ):
            path = box.path(0, suffix)
            path.write_bytes(path.read_bytes()[: -len(entry)] + entry)
    log = box.open()
    assert [put(log, b"w", timestamps=[NOW_MS + 30]) for _ in range(3)] == [6, 7, 8]
    assert values_from(log, 6) == [b"w"] * 3
    sizes = [box.path(each.base_offset, ".log").stat().st_size for each in log.segments]
    assert sum(sizes) == log.size_bytes == 9 * len(batch_of(b"v"))


def test_a_control_batch_without_a_marker_ends_the_log_when_it_is_recovered(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    log = box.open()
    put(log, b"kept")
    empty_value = Record(b"\0\0\0\0", b"", NOW_MS)  # it has the key of an ABORT
    box.tear(
        bytes(
            build_batch(
                [empty_value], producer_id=9, producer_epoch=0, base_offset=1, is_control=True
            )
        )
    )
    log = box.open(clean=False)
    assert values_from(log) == [b"kept"]


def test_one_line_names_the_file_and_the_byte_where_the_log_was_cut(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    box = LogBox(tmp_path)
    filled(box, 3)
    size = len(batch_of(b"v"))
    damage_batch(box, 0, size + 30)
    with caplog.at_level(logging.WARNING):
        box.open(clean=False)
    [line] = [line for line in caplog.messages if "corrupt" in line]
    assert str(box.path(0, ".log")) in line
    assert f"byte {size}" in line
    assert f"{2 * size} corrupt bytes at the end were cut" in box.reports[-1]


# --- checkpoints of a directory


CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_checkpoint_may_be_lost_or_garbled(tmp_path: Path, clean: bool, damage: Damage) -> None:
    """But for the log start offset, which is known nowhere else down to the record."""
    node = Node(tmp_path / "kept")
    manager = node.start()
    log = node.create(manager, "orders")
    for n in range(8):
        put(log, b"%d" % n, producer=(5, 0, n), timestamps=[NOW_MS + n])
    manager.close(now_ms=NOW_MS)
    (tmp_path / "kept" / "data" / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 6\n")
    wanted = None
    for name in (None, *CHECKPOINTS):
        copy = tmp_path / "copy"
        shutil.copytree(tmp_path / "kept", copy)
        if not clean:
            (copy / "data" / ".kafka_cleanshutdown").unlink()
        if name is not None:
            path = copy / "data" / name
            damage(path, path.read_bytes())
        manager = Node(copy).start()
        found = answers(manager.get("orders", 0))
        wanted = wanted or found
        assert found == wanted, name
        manager.close(now_ms=NOW_MS)
        shutil.rmtree(copy)


# --- what a clean start reads


class CountingFiles(Files):
    """Remembers which files were opened, and what was read of logs."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.read_bytes = 0

    def open(self, path: Path, *, create: bool = False, read_only: bool = False) -> OpenFile:
        self.opened.append(path.name)
        return super().open(path, create=create, read_only=read_only)

    def pread(self, file: OpenFile, size: int, position: int) -> bytes:
        data = super().pread(file, size, position)
        if file.path.suffix == ".log":
            self.read_bytes += len(data)
        return data


def test_a_clean_start_reads_only_the_end_of_the_last_segment(tmp_path: Path) -> None:
    size = len(batch_of(b"v" * 100))
    box = LogBox(tmp_path, segment_bytes=200 * size, index_interval_bytes=1000)
    log = box.open()
    for n in range(900):
        put(log, b"v" * 100, producer=(5, 0, n))
    log.close(NOW_MS)
    files = CountingFiles()
    again = LogBox(tmp_path, files=files, segment_bytes=200 * size, index_interval_bytes=1000)
    log = again.open()
    assert log.log_end_offset == 900
    assert files.read_bytes <= 2 * 4096
    assert files.opened == [f"{800:020d}.index", f"{800:020d}.log"]
    assert not any(segment.has_open_file for segment in log.segments)


def test_after_a_clean_start_a_batch_that_is_sent_again_is_still_recognized(
    tmp_path: Path,
) -> None:
    box = LogBox(tmp_path)
    filled(box, 8).close(NOW_MS)
    log = box.open()
    assert put(log, b"8", producer=(5, 0, 8), timestamps=[NOW_MS + 8]) == 8
    for n in (4, 5, 6, 7, 8):
        result = log.append(batch_of(b"%d" % n, producer=(5, 0, n)), now_ms=NOW_MS)
        assert (result.base_offset, result.is_duplicate) == (n, True)
    with pytest.raises(ApiError) as refusal:
        log.append(batch_of(b"3", producer=(5, 0, 3)), now_ms=NOW_MS)
    assert refusal.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_what_was_recalled_late_is_what_is_recalled_at_once(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    filled(box, 8).close(NOW_MS)
    late, at_once = box.open(), box.open(clean=False)
    late.append(batch_of(b"7", producer=(5, 0, 7)), now_ms=NOW_MS)
    late.append(batch_of(b"6", producer=(5, 0, 6)), now_ms=NOW_MS)
    mine, others = (list(log.producers.producers[5].batches) for log in (late, at_once))
    assert mine == others
    assert len(mine) == 5


# --- progress


def numbers(lines: list[str]) -> Iterator[int]:
    for line in lines:
        if "recovering segment" in line:
            yield int(line.split(", ")[1].split()[0])


def test_progress_of_many_segments_is_told_now_and_then(tmp_path: Path) -> None:
    box = LogBox(tmp_path, segment_bytes=len(batch_of(b"v")))
    log = box.open()
    for _ in range(100):
        put(log, b"v")
    box.open(clean=False)
    told = list(numbers(box.reports))
    assert told[0] == 0
    assert len(told) == 20
    assert told == sorted(told)


def test_progress_of_many_logs_is_told_now_and_then(tmp_path: Path) -> None:
    node = Node(tmp_path)
    with node.killed() as manager:
        for partition in range(60):
            put(node.create(manager, "orders", partition), b"v")
    manager = node.start()
    lines = [line for line in node.reports if "logs done" in line]
    assert len(lines) == 20
    assert lines[0].endswith("0 of 60 logs done")
    manager.close(now_ms=NOW_MS)
