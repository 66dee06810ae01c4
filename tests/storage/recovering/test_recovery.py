"""What a crash leaves, and what becomes of it: the acknowledged records, and nothing else."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.protocol.compression import CompressionType
from odradek.storage.log import PartitionLog
from tests.support.log_box import NOW_MS, LogBox, batch_of, put, records_from, values_from

SIZE = len(batch_of(b"v"))


def filled(box: LogBox, count: int = 6) -> PartitionLog:
    """One-record batches with rising timestamps, of an idempotent producer."""
    log = box.open()
    log.become_leader(2)
    for n in range(count):
        put(log, b"%d" % n, producer=(5, 0, n), timestamps=[NOW_MS + n])
    return log


def recall(log: PartitionLog) -> None:
    """Look for the producers, as a batch that is sent again has it done."""
    if log.producers.recall is not None:
        log.producers.recall()


def answers(log: PartitionLog) -> object:
    """All that a client could ask the log."""
    recall(log)
    times = [log.offset_for_timestamp(NOW_MS + n) for n in range(-1, 9)]
    return (
        log.log_start_offset,
        log.log_end_offset,
        records_from(log),
        times,
        log.offset_of_max_timestamp(),
        log.epochs.entries,
        {
            producer_id: (entry.epoch, list(entry.batches))
            for producer_id, entry in log.producers.producers.items()
        },
    )


# --- torn tails


@pytest.mark.parametrize("compression", [CompressionType.NONE, CompressionType.GZIP])
def test_a_tail_torn_at_any_byte_is_cut_and_nothing_else(
    tmp_path: Path, compression: CompressionType
) -> None:
    box = LogBox(tmp_path)
    log = box.open()
    put(log, b"kept")
    whole_bytes = log.size_bytes
    put(log, b"torn", b"batch", compression=compression)
    stored = box.path(0, ".log").read_bytes()
    for size in range(whole_bytes, len(stored) + 1):
        box.path(0, ".log").write_bytes(stored[:size])
        log = box.open(clean=False)
        complete = size == len(stored)
        assert log.log_end_offset == (3 if complete else 1)
        assert box.path(0, ".log").stat().st_size == (size if complete else whole_bytes)
        assert values_from(log)[0] == b"kept"


@pytest.mark.parametrize("is_clean", [False, True])
def test_the_first_producer_of_a_broker_is_known_again(tmp_path: Path, is_clean: bool) -> None:
    box = LogBox(tmp_path)
    log = box.open()
    put(log, b"first", producer=(0, 0, 0))
    again = box.open(clean=is_clean)
    recall(again)
    assert again.producers.producers[0].last_sequence == 0


def test_a_flipped_byte_ends_the_log_before_its_batch(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    filled(box, 3)
    stored = box.path(0, ".log").read_bytes()
    # Base offset and leader epoch of a batch lie outside its CRC.
    for position in (*range(SIZE + 8, SIZE + 12), *range(SIZE + 16, 2 * SIZE)):
        data = bytearray(stored)
        data[position] ^= 0x04
        box.path(0, ".log").write_bytes(data)
        log = box.open(clean=False)
        assert values_from(log) == [b"0"], f"byte {position}"
        assert log.producers.producers[5].last_sequence == 0


def test_segments_behind_a_corrupt_one_go(tmp_path: Path) -> None:
    box = LogBox(tmp_path, segment_bytes=2 * SIZE)
    filled(box)
    path = box.path(2, ".log")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    log = box.open(clean=False)
    assert values_from(log) == [b"0", b"1", b"2"]
    assert "00000000000000000004.log.deleted" in box.names()
    put(log, b"next", producer=(5, 0, 3))
    assert values_from(box.open(clean=False)) == [b"0", b"1", b"2", b"next"]


def test_zeros_behind_the_end_are_cut(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    filled(box, 2)
    box.tear(bytes(5000))
    assert values_from(box.open(clean=False)) == [b"0", b"1"]


def test_only_what_was_not_flushed_is_read(tmp_path: Path) -> None:
    box = LogBox(tmp_path, segment_bytes=2 * SIZE)
    filled(box)
    path = box.path(0, ".log")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    log = box.open(clean=False, recovery_point=3)
    assert [line for line in box.reports if "recovering segment" in line] == [
        f"{box.directory}: recovering segment 2, 0 of 2 done",
        f"{box.directory}: recovering segment 4, 1 of 2 done",
    ]
    assert (log.log_end_offset, log.recovery_point) == (6, 3)


def test_a_clean_log_with_a_torn_tail_is_recovered_after_all(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    filled(box, 2).close(NOW_MS)
    box.tear(batch_of(b"half")[:40])
    log = box.open(clean=True)
    assert values_from(log) == [b"0", b"1"]
    put(log, b"2", producer=(5, 0, 2))
    log.close(NOW_MS)
    assert values_from(box.open(clean=True)) == [b"0", b"1", b"2"]


def test_a_base_offset_that_went_back_ends_the_log(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    filled(box, 3)
    path = box.path(0, ".log")
    data = bytearray(path.read_bytes())
    data[2 * SIZE : 2 * SIZE + 8] = bytes(8)
    path.write_bytes(data)
    assert values_from(box.open(clean=False)) == [b"0", b"1"]


def test_a_batch_larger_than_a_chunk_is_checked_piece_by_piece(tmp_path: Path) -> None:
    box = LogBox(tmp_path, max_message_bytes=1 << 23)
    log = box.open()
    put(log, b"small")
    put(log, bytes(3 << 20))
    put(log, b"behind")
    assert len(values_from(box.open(clean=False))) == 3
    path = box.path(0, ".log")
    data = bytearray(path.read_bytes())
    data[2 << 20] ^= 1
    path.write_bytes(data)
    assert values_from(box.open(clean=False)) == [b"small"]


# --- files that are missing, left over or garbled


DERIVED = (".index", ".timeindex", ".snapshot", "leader-epoch-checkpoint")


def derived_files(box: LogBox) -> list[Path]:
    return [box.directory / name for name in box.names() if name.endswith(DERIVED)]


def remove(path: Path, _: bytes) -> None:
    path.unlink()


def empty(path: Path, _: bytes) -> None:
    path.write_bytes(b"")


def fill_with_zeros(path: Path, stored: bytes) -> None:
    path.write_bytes(bytes(len(stored)))


def cut_one_byte(path: Path, stored: bytes) -> None:
    path.write_bytes(stored[:-1])


def fill_with_noise(path: Path, stored: bytes) -> None:
    path.write_bytes(bytes((n * 151 + 89) % 256 for n in range(len(stored) + 3)))


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("damage", [remove, empty, fill_with_zeros, cut_one_byte, fill_with_noise])
def test_what_can_be_made_anew_may_be_lost_or_garbled(
    tmp_path: Path, clean: bool, damage: Callable[[Path, bytes], None]
) -> None:
    box = LogBox(tmp_path / "kept", segment_bytes=3 * SIZE, index_interval_bytes=0)
    filled(box, 8).close(NOW_MS)
    recovery_point = 8 if clean else 4
    wanted = answers(box.open(clean=clean, recovery_point=recovery_point))
    for path in derived_files(box):
        copy = LogBox(tmp_path / "copy", segment_bytes=3 * SIZE, index_interval_bytes=0)
        shutil.copytree(tmp_path / "kept", tmp_path / "copy")
        damage(copy.directory / path.name, path.read_bytes())
        log = copy.open(clean=clean, recovery_point=recovery_point)
        assert answers(log) == wanted, path.name
        put(log, b"next", producer=(5, 0, 8), timestamps=[NOW_MS + 8])
        assert values_from(log)[-1] == b"next"
        log.close(NOW_MS)
        shutil.rmtree(tmp_path / "copy")


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_any_byte_of_an_index_may_be_flipped(tmp_path: Path, data: st.DataObject) -> None:
    root = tmp_path / "kept"
    box = LogBox(root, segment_bytes=4 * SIZE, index_interval_bytes=0)
    if not root.exists():
        filled(box, 9).close(NOW_MS)
    wanted = answers(box.open())
    copy = LogBox(tmp_path / "copy", segment_bytes=4 * SIZE, index_interval_bytes=0)
    shutil.copytree(root, tmp_path / "copy", dirs_exist_ok=True)
    path = data.draw(
        st.sampled_from([each for each in derived_files(copy) if "index" in each.name])
    )
    stored = bytearray(path.read_bytes())
    if not stored:
        return
    position = data.draw(st.integers(0, len(stored) - 1))
    stored[position] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(stored)
    assert answers(copy.open()) == wanted


def test_index_files_without_a_log_are_removed(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    filled(box, 2).close(NOW_MS)
    for suffix in (".index", ".timeindex", ".txnindex"):
        box.path(7, suffix).write_bytes(bytes(24))
    box.open()
    assert [name for name in box.names() if name.startswith("00000000000000000007")] == []


def test_deleted_and_half_cleaned_files_are_removed(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    filled(box, 2).close(NOW_MS)
    for suffix in (".log.deleted", ".index.deleted", ".snapshot.deleted", ".log.cleaned"):
        box.path(0, suffix).write_bytes(b"x")
    snapshot = box.directory / "00000000000000000000-0000000000.checkpoint.deleted"
    snapshot.write_bytes(b"of the metadata log, and not ours to delete")
    log = box.open()
    assert values_from(log) == [b"0", b"1"]
    assert box.names(".cleaned") == []
    assert box.names(".deleted") == [snapshot.name]


def cleaned_copy(box: LogBox, base_offset: int, values: dict[int, bytes]) -> None:
    """A segment that a cleaner finished, with gaps, still under `.swap`."""
    data = b"".join(
        batch_of(value, base_offset=offset, partition_leader_epoch=2)
        for offset, value in values.items()
    )
    box.path(base_offset, ".log.swap").write_bytes(data)
    box.path(base_offset, ".index.swap").write_bytes(b"")
    box.path(base_offset, ".timeindex.swap").write_bytes(b"")


def test_an_interrupted_swap_is_finished(tmp_path: Path) -> None:
    box = LogBox(tmp_path, segment_bytes=2 * SIZE)
    filled(box).close(NOW_MS)
    cleaned_copy(box, 0, {1: b"of 0 to 1", 3: b"of 2 to 3"})
    log = box.open()
    assert values_from(log) == [b"of 0 to 1", b"of 2 to 3", b"4", b"5"]
    assert [segment.base_offset for segment in log.segments] == [0, 4]
    assert box.names(".swap") == []


def test_a_swap_of_an_unfinished_split_is_dropped(tmp_path: Path) -> None:
    box = LogBox(tmp_path, segment_bytes=2 * SIZE)
    filled(box).close(NOW_MS)
    cleaned_copy(box, 2, {3: b"half of a split"})
    box.path(2, ".log.cleaned").write_bytes(b"")
    log = box.open()
    assert values_from(log) == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert box.names(".swap") == box.names(".cleaned") == []


def test_a_log_that_ends_before_its_start_begins_anew(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    filled(box, 2).close(NOW_MS)
    log = box.open(log_start_offset=10)
    assert (log.log_start_offset, log.log_end_offset) == (10, 10)
    assert log.epochs.entries == []
    put(log, b"new")
    assert values_from(log) == [b"new"]


def test_leader_epochs_of_deleted_records_do_not_come_back(tmp_path: Path) -> None:
    box = LogBox(tmp_path, segment_bytes=2 * SIZE)
    log = filled(box, 4)
    log.become_leader(3)
    put(log, b"4")
    log.flush(NOW_MS)  # which writes both epochs
    log.delete_first_segments(2, NOW_MS)
    assert log.earliest_offset() == (-1, 4, 3)
    for clean in (False, True):
        assert box.open(clean=clean).earliest_offset() == (-1, 4, 3)


def test_an_old_snapshot_without_a_segment_goes_and_the_last_one_stays(tmp_path: Path) -> None:
    box = LogBox(tmp_path, segment_bytes=2 * SIZE)
    filled(box, 5).close(NOW_MS)
    shutil.copy(box.path(5, ".snapshot"), box.path(3, ".snapshot"))
    box.open()
    assert box.names(".snapshot") == [f"{offset:020d}.snapshot" for offset in (2, 4, 5)]


# --- flushing


def test_a_plan_flushes_up_to_a_roll_while_the_log_goes_on(tmp_path: Path) -> None:
    box = LogBox(tmp_path, segment_bytes=2 * SIZE)
    log = filled(box, 5)
    plan = log.flush_plan(log.segments.active.base_offset)
    assert plan is not None
    assert [file.path.name[19:] for file in plan.open_files] == [
        "0.log", "0.index", "0.timeindex", "2.log", "2.index", "2.timeindex",
    ]  # fmt: skip
    put(log, b"5", producer=(5, 0, 5))  # meanwhile
    plan.run()
    log.mark_flushed(plan, NOW_MS + 1)
    assert (log.recovery_point, log.last_flush_ms, log.unflushed_records) == (4, NOW_MS + 1, 2)
    assert log.flush_plan(4) is None


def test_a_plan_from_before_a_truncation_does_not_count(tmp_path: Path) -> None:
    log = filled(LogBox(tmp_path), 4)
    plan = log.flush_plan()
    assert plan is not None
    plan.run()
    log.truncate_to(2, NOW_MS)
    put(log, b"other", producer=(6, 0, 0))
    put(log, b"other", producer=(6, 0, 1))
    log.mark_flushed(plan, NOW_MS)
    assert log.recovery_point == 0


def test_a_flush_leaves_nothing_to_flush(tmp_path: Path) -> None:
    log = filled(LogBox(tmp_path, segment_bytes=2 * SIZE), 5)
    log.flush(NOW_MS)
    assert log.recovery_point == 5
    assert log.flush_plan() is None


def test_a_clean_close_leaves_the_files_as_kafka_does(tmp_path: Path) -> None:
    box = LogBox(tmp_path, index_interval_bytes=0)
    filled(box, 3).close(NOW_MS)
    sizes = {name: (box.directory / name).stat().st_size for name in box.names()}
    assert sizes == {
        "00000000000000000000.log": 3 * SIZE,
        "00000000000000000000.index": 16,
        "00000000000000000000.timeindex": 24,
        "00000000000000000003.snapshot": sizes["00000000000000000003.snapshot"],
        "leader-epoch-checkpoint": 8,
    }
