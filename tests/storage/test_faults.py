"""After any failed disk operation the log is unchanged, and continues when the disk works again.

Each step is run once to count its disk operations. Then it is run again for every operation, which
fails once or from then on, after half of a write or none of it.
"""

import errno
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.log import PartitionLog
from odradek.storage.retention import delete_old_segments
from tests.support.dirty_logs import end_transaction
from tests.support.faulty_files import FaultyFiles, anything
from tests.support.log_box import NOW_MS, LogBox, batch_of, put, records_from, values_from

BATCH_BYTES = len(batch_of(b"0", producer=(7, 0, 0)))
PRODUCER, OPEN_PRODUCER = 7, 8
LARGE = b"new" + bytes(2 * BATCH_BYTES)


class Step(NamedTuple):
    """An operation on a log, and the values that it appends."""

    run: Callable[[PartitionLog], Any]
    added: tuple[bytes, ...] = ()


def append(log: PartitionLog, value: bytes = b"new") -> None:
    log.append(batch_of(value, producer=(PRODUCER, 0, 7)), now_ms=NOW_MS)


def append_in_a_new_epoch(log: PartitionLog) -> None:
    log.become_leader(5)
    append(log)


STEPS = {
    "append": Step(append, (b"new",)),
    "append in a new epoch": Step(append_in_a_new_epoch, (b"new",)),
    "append and roll": Step(lambda log: append(log, LARGE), (LARGE,)),
    "abort": Step(lambda log: end_transaction(log, OPEN_PRODUCER, 0, commit=False)),
    "roll": Step(lambda log: log.roll(NOW_MS)),
    "flush": Step(lambda log: log.flush(NOW_MS)),
    "delete": Step(lambda log: delete_old_segments(log, NOW_MS)),
    "truncate": Step(lambda log: log.truncate_to(5, NOW_MS)),
    "close": Step(lambda log: log.close(NOW_MS)),
}
# Half done, they may have done what they were to do; that they leave nothing else is all they owe.
TAKES_AWAY = {"delete", "truncate"}


def prepared(root: Path) -> tuple[LogBox, FaultyFiles, PartitionLog]:
    """Three segments, an idempotent producer, and a transaction that is still open."""
    files = FaultyFiles()
    box = LogBox(
        root,
        files=files,
        segment_bytes=3 * BATCH_BYTES + 10,
        index_interval_bytes=0,
        segment_index_bytes=120,
        retention_bytes=4 * BATCH_BYTES,
    )
    log = box.open()
    for number in range(7):
        log.append(batch_of(b"%d" % number, producer=(PRODUCER, 0, number)), now_ms=NOW_MS)
    batch = batch_of(b"t", producer=(OPEN_PRODUCER, 0, 0), is_transactional=True)
    log.append(batch, now_ms=NOW_MS, transaction_verified=True)
    return box, files, log


def state_of(log: PartitionLog) -> object:
    """The state that a failed step must not change. A new segment is allowed."""
    producers = {
        number: (entry.epoch, list(entry.batches), entry.txn_first_offset)
        for number, entry in log.producers.producers.items()
    }
    return (
        log.log_start_offset,
        log.log_end_offset,
        log.last_stable_offset,
        log.recovery_point,
        producers,
        [each for segment in log.segments for each in segment.aborted()],
        records_from(log),
    )


def operations_of(root: Path, step: Step) -> int:
    _, files, log = prepared(root)
    with files.counting() as seen:
        step.run(log)
    return len(seen)


@pytest.mark.slow
@pytest.mark.parametrize("name", STEPS)
def test_a_step_that_fails_anywhere_leaves_the_log_as_it_was(scratch: Path, name: str) -> None:
    step = STEPS[name]
    operations = operations_of(scratch / "count", step)
    assert operations > 0
    for at, lasting, half in product(range(operations), (False, True), (False, True)):
        box, files, log = prepared(scratch / f"{at}-{lasting}-{half}")
        before = state_of(log)
        files.half = half
        files.fail(anything, at=at, error=errno.ENOSPC, lasting=lasting)
        failed = fails(step, log)
        files.heal()
        where = (at, lasting, half, files.seen[-3:])
        if failed and name not in TAKES_AWAY and log.is_online:
            assert state_of(log) == before, where
        finish(step, log, failed=failed)
        assert set(step.added) <= set(values_from(box.open(clean=not log.is_online))), where
        check_survivor(box, name, step, where)


def fails(step: Step, log: PartitionLog) -> bool:
    with suppress(ApiError):  # it can only be a storage error: nothing else is wrong
        step.run(log)
        return False
    return True


def finish(step: Step, log: PartitionLog, *, failed: bool) -> None:
    """Repeat the failed step on a working disk, unless a sync failed."""
    if failed and log.is_online:
        step.run(log)
    if log.is_online:
        log.flush(NOW_MS)
        log.close(NOW_MS)


def check_survivor(box: LogBox, name: str, step: Step, where: object) -> None:
    """Open the log as after a kill: it has every record that it had, and accepts more."""
    log = box.open(clean=False)
    wanted = [*(b"%d" % number for number in range(7)), b"t", *step.added]
    values = [record.value for record in records_from(log) if record.value is not None]
    values = [value for value in values if value in wanted]
    if name in TAKES_AWAY:
        assert "".join(map(str, values)) in "".join(map(str, wanted)), where
    else:
        assert values == wanted, where
    assert log.log_end_offset >= len(values), where
    log.append(batch_of(b"more"), now_ms=NOW_MS)
    assert values_from(log)[-1] == b"more", where


# --- what was found by the model, one by one


def test_a_segment_that_could_not_be_made_is_not_found_at_the_next_start(scratch: Path) -> None:
    """An empty file that is left would be taken for the log's end."""
    files = FaultyFiles()
    box = LogBox(scratch, files=files, segment_bytes=3 * BATCH_BYTES, preallocate=True)
    log = box.open()
    put(log, b"0")
    for kind in ("create", "preallocate", "rename"):
        # And then it cannot be removed either.
        wanted = {kind, "remove"}
        files.fail(lambda seen, path, wanted=wanted: seen in wanted and "1.log" in path.name)
        with pytest.raises(ApiError):
            log.roll(NOW_MS)
        files.heal()
    put(log, b"1")
    log.close(NOW_MS)
    assert box.names(".log") == [f"{0:020d}.log"]
    assert values_from(box.open()) == [b"0", b"1"]


def test_after_a_roll_that_failed_half_way_the_log_is_appended_to(scratch: Path) -> None:
    """The old segment's indexes had been cut to their entries, and had no room for another."""
    files = FaultyFiles()
    log = LogBox(scratch, files=files, segment_index_bytes=120, index_interval_bytes=0).open()
    for number in range(3):
        put(log, b"%d" % number)
        files.fail(lambda kind, path: kind == "preallocate" and path.suffix == ".timeindex")
        with pytest.raises(ApiError):
            log.roll(NOW_MS)
        files.heal()
    assert values_from(log) == [b"0", b"1", b"2"]


def test_an_index_that_was_extended_for_a_failed_append_is_not_read_after_a_clean_stop(
    scratch: Path,
) -> None:
    files = FaultyFiles()
    box = LogBox(scratch, files=files, index_interval_bytes=0)
    log = box.open()
    for number in range(5):
        put(log, b"%d" % number)
    log.close(NOW_MS)
    log = box.open()
    files.fail(lambda kind, path: kind == "preallocate" and path.suffix == ".timeindex")
    with pytest.raises(ApiError):
        put(log, b"5")
    files.heal()
    log.close(NOW_MS)
    log = box.open()
    assert values_from(log) == [b"%d" % number for number in range(5)]
    assert log.segments.active.offset_index.last_offset == 4


def test_no_read_fails_after_the_marker_of_an_abort_was_written(scratch: Path) -> None:
    """It would be written twice, and the aborted records be read as committed."""
    files = FaultyFiles()
    box = LogBox(scratch, files=files, segment_bytes=BATCH_BYTES + 10)
    log = box.open()
    batch = batch_of(b"t", producer=(OPEN_PRODUCER, 0, 0), is_transactional=True)
    log.append(batch, now_ms=NOW_MS, transaction_verified=True)
    files.fail(lambda kind, path: kind == "read" and path.suffix == ".txnindex")
    end_transaction(log, OPEN_PRODUCER, 0, commit=False)
    files.heal()
    assert (log.log_end_offset, log.last_stable_offset) == (2, 2)
    assert [each.first_offset for segment in log.segments for each in segment.aborted()] == [0]
    log.close(NOW_MS)
    assert [len(segment.aborted()) for segment in box.open().segments] == [0, 1]


def test_a_deletion_that_fails_half_way_leaves_a_segment_that_can_be_read(scratch: Path) -> None:
    files = FaultyFiles()
    box = LogBox(scratch, files=files, segment_bytes=BATCH_BYTES, index_interval_bytes=0)
    log = box.open()
    for number in range(3):
        put(log, b"%d" % number)
    log.increment_log_start_offset(2)
    files.fail(lambda kind, path: kind == "rename" and path.suffix == ".log")
    with pytest.raises(ApiError):
        delete_old_segments(log, NOW_MS)
    files.heal()
    found = log.offset_of_max_timestamp()
    assert found is not None
    assert found.offset == 0  # in the segment that was to go
    assert delete_old_segments(log, NOW_MS) == 2


def test_indexes_that_cannot_be_rebuilt_cost_no_records(scratch: Path) -> None:
    files = FaultyFiles()
    box = LogBox(scratch, files=files, index_interval_bytes=0)
    log = box.open()
    for number in range(3):
        put(log, b"%d" % number)
    log.close(NOW_MS)
    log = box.open()
    box.path(0, ".timeindex").write_bytes(bytes(7))
    files.fail(lambda kind, path: kind == "truncate" and path.suffix == ".timeindex")
    with pytest.raises(ApiError):
        put(log, b"3")
    with pytest.raises(ApiError):
        log.offset_for_timestamp(NOW_MS)
    files.heal()
    put(log, b"3")
    assert values_from(log) == [b"0", b"1", b"2", b"3"]


def test_a_disk_error_while_retention_looks_is_a_storage_error(scratch: Path) -> None:
    files = FaultyFiles()
    box = LogBox(scratch, files=files, index_interval_bytes=0, retention_ms=1)
    log = box.open()
    put(log, b"0")
    log.close(NOW_MS)
    log = box.open()
    files.fail(lambda kind, path: kind == "read" and path.suffix in (".log", ".timeindex"))
    with pytest.raises(ApiError):
        delete_old_segments(log, NOW_MS + 10)


def test_an_error_while_a_coordinator_reads_its_log_is_reported(scratch: Path) -> None:
    """Its directory goes offline, as after any other read that fails."""
    files = FaultyFiles()
    log = LogBox(scratch, files=files).open()
    put(log, b"0")
    reported: list[OSError] = []
    log.on_disk_error = lambda _, error: reported.append(error)
    files.fail(lambda kind, path: kind == "read" and path.suffix == ".log")
    with pytest.raises(OSError, match="Input/output") as caught:
        list(log.batches(0))
    assert reported == [caught.value]


def test_records_after_a_batch_that_is_cut_are_not_skipped(scratch: Path) -> None:
    """A damaged length: the reader gets an error and does not continue in the next segment."""
    box = LogBox(scratch, segment_bytes=2 * BATCH_BYTES + 10)
    log = box.open()
    for number in range(3):
        put(log, b"%d" % number)
    log.close(NOW_MS)
    segment = bytearray(box.path(0, ".log").read_bytes())
    segment[len(segment) // 2 + 8] ^= 1  # the length of the second batch
    box.path(0, ".log").write_bytes(segment)
    log = box.open()
    with pytest.raises(ApiError) as caught:
        log.read(1, 1000, at_least_one_batch=True)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_records_after_a_damaged_batch_are_found(scratch: Path) -> None:
    """By the indexes, which are not rebuilt: they would end before it."""
    box = LogBox(scratch, index_interval_bytes=0)
    log = box.open()
    for number in range(9):
        put(log, b"%d" % number, timestamps=[NOW_MS + number])
    log.close(NOW_MS)
    segment = bytearray(box.path(0, ".log").read_bytes())
    size = len(segment) // 9
    segment[4 * size + 8 : 4 * size + 12] = bytes(4)  # the length of the fifth batch
    box.path(0, ".log").write_bytes(segment)
    log = box.open()
    for _ in range(2):
        with pytest.raises(ApiError) as caught:
            log.read(4, size, at_least_one_batch=True)
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    with pytest.raises(ApiError):
        log.offset_for_timestamp(NOW_MS + 4)
    found = log.offset_for_timestamp(NOW_MS + 6)
    assert found is not None
    assert found.offset == 6
    assert values_from(log, 6) == [b"6", b"7", b"8"]
    put(log, b"9")
    assert values_from(log, 9) == [b"9"]
