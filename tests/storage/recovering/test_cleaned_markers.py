"""A start from a snapshot after which the cleaner has removed the markers of transactions."""

from pathlib import Path

import pytest

from odradek.storage.log import PartitionLog
from odradek.storage.log_reader import LogReader
from tests.support.dirty_logs import clean, compacted, end_transaction
from tests.support.log_box import NOW_MS, LogBox, batch_of, put

PRODUCER = 7
OTHER_PRODUCER = 8
LONG = b"x" * 600  # two of them do not fit one segment, so cleaned segments stay apart


def write(
    log: PartitionLog, value: bytes, *, epoch: int, sequence: int = 0, producer: int = PRODUCER
) -> int:
    """A batch of a transaction; its offset."""
    batch = batch_of(value, producer=(producer, epoch, sequence), is_transactional=True)
    return log.append(batch, now_ms=NOW_MS, transaction_verified=True).base_offset


def box_without_the_marker(root: Path, *, commit: bool) -> tuple[LogBox, PartitionLog, int]:
    """A log whose snapshot has an open transaction, of which the cleaner has left nothing.

    Also returns the offset of that snapshot.
    """
    box = LogBox(root, segment_bytes=1000, delete_retention_ms=0, file_delete_delay_ms=0)
    log = box.open()
    put(log, LONG, key=b"first")
    write(log, b"replaced", epoch=0)
    write(log, b"replaced", epoch=0, producer=OTHER_PRODUCER)
    log.roll(NOW_MS)
    snapshot = log.log_end_offset
    for producer in (PRODUCER, OTHER_PRODUCER):
        end_transaction(log, producer, 1, commit=commit)
    put(log, LONG, key=b"second")
    log.roll(NOW_MS)
    put(log, b"newer")  # of the same key as the record of the transaction
    put(log, LONG, key=b"third")
    log.roll(NOW_MS)
    put(log, b"last", key=b"last")
    log.update_config(compacted(log.config))
    for number in range(4):
        clean(log, NOW_MS + number * 1000, checkpoint=0)
    headers = [batch.header for batch in LogReader(box.directory).batches()]
    assert [each.record_count for each in headers if each.producer_id >= 0] == [0, 0]
    assert log.producers.snapshot_offsets[0] == snapshot
    return box, log, snapshot


@pytest.mark.parametrize("commit", [True, False])
def test_after_a_crash_a_transaction_whose_marker_was_cleaned_away_is_not_open(
    tmp_path: Path, commit: bool
) -> None:
    box, log, snapshot = box_without_the_marker(tmp_path, commit=commit)
    assert log.last_stable_offset == log.log_end_offset
    again = box.open(clean=False, recovery_point=snapshot)
    assert again.last_stable_offset == again.log_end_offset
    again.close(NOW_MS)
    assert box.open().last_stable_offset == again.log_end_offset


def test_after_a_crash_the_transaction_that_came_after_it_is_open_since_its_own_first_batch(
    tmp_path: Path,
) -> None:
    box, log, snapshot = box_without_the_marker(tmp_path, commit=False)
    began = write(log, b"open", epoch=1)
    write(log, b"open, too", epoch=1, sequence=1)
    again = box.open(clean=False, recovery_point=snapshot)
    assert again.last_stable_offset == began
    end_transaction(again, PRODUCER, 2, commit=False)
    [aborted] = again.read_committed(began, 1 << 20, at_least_one_batch=True).aborted
    assert aborted.first_offset == began


def test_after_a_crash_only_the_transaction_that_is_open_is_open(tmp_path: Path) -> None:
    box, log, snapshot = box_without_the_marker(tmp_path, commit=False)
    began = write(log, b"open", epoch=1, producer=OTHER_PRODUCER)
    again = box.open(clean=False, recovery_point=snapshot)
    assert again.last_stable_offset == began
    assert again.producers.open_transactions == [(began, OTHER_PRODUCER)]
