"""The ends of transactions in a log: markers, fencing by epochs, verification."""

from pathlib import Path

import pytest

from odradek.protocol.batch_header import read_header
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.storage.append import AppendOrigin, EndMarker
from odradek.storage.log import PartitionLog
from tests.support.log_box import NOW_MS, LogBox, batch_of

PID = 7
MAX_EPOCH = 32767


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    return LogBox(tmp_path).open()


def batch(sequence: int, *, epoch: int = 0, count: int = 1) -> bytes:
    return bytes(
        build_batch(
            [Record(None, b"value", NOW_MS)] * count,
            producer_id=PID,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
    )


def begin(log: PartitionLog, sequence: int, *, epoch: int = 0, is_v2: bool = True) -> bool:
    """Whether the batch must be verified."""
    return log.begin_verification((PID, epoch), sequence, NOW_MS, is_v2=is_v2)


def write(log: PartitionLog, sequence: int, *, epoch: int = 0) -> int:
    """Append a batch whose transaction is verified."""
    data = batch(sequence, epoch=epoch)
    return log.append(data, now_ms=NOW_MS, transaction_verified=True).base_offset


def end(
    log: PartitionLog,
    epoch: int,
    *,
    is_commit: bool = True,
    coordinator_epoch: int = 0,
    version: int = 2,
) -> int:
    marker = EndMarker(PID, epoch, is_commit, coordinator_epoch, version)
    return log.append_marker(marker, NOW_MS).base_offset


def refusal(call: object, *args: object, **kwargs: object) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        call(*args, **kwargs)  # type: ignore[operator] # any of the functions above
    return refused.value.code


def test_a_marker_ends_the_transaction(log: PartitionLog) -> None:
    write(log, 0)
    assert log.last_stable_offset == 0
    assert end(log, 1) == 1
    assert log.last_stable_offset == log.log_end_offset == 2


def test_a_transaction_is_unstable_until_its_marker_is_synced(tmp_path: Path) -> None:
    log = LogBox(tmp_path, flush_messages=2).open()
    log.on_flush_due = lambda _: None  # a disk thread syncs it later
    write(log, 0)
    end(log, 1, is_commit=False)
    assert (log.last_stable_offset, log.high_watermark, log.log_end_offset) == (0, 1, 2)
    write(log, 0, epoch=1)
    log.flush(NOW_MS)
    assert (log.last_stable_offset, log.high_watermark) == (2, 3)


def test_synced_markers_are_forgotten_in_a_log_that_nobody_reads(tmp_path: Path) -> None:
    log = LogBox(tmp_path, flush_messages=2).open()
    log.on_flush_due = lambda _: None
    for epoch in range(3):
        write(log, 0, epoch=epoch)
        end(log, epoch + 1)
    assert len(log._hidden_ends._ends) == 3
    log.flush(NOW_MS)
    assert not log._hidden_ends._ends


def test_a_marker_that_was_truncated_hides_nothing(tmp_path: Path) -> None:
    log = LogBox(tmp_path, flush_messages=2).open()
    log.on_flush_due = lambda _: None
    write(log, 0)
    end(log, 1)
    log.truncate_to(0, NOW_MS)
    log.append(batch_of(b"plain"), now_ms=NOW_MS)
    assert log.last_stable_offset == log.high_watermark == 1


def test_an_aborted_transaction_is_in_the_index(log: PartitionLog) -> None:
    write(log, 0)
    end(log, 1, is_commit=False)
    (aborted,) = log.segments.active.aborted()
    assert (aborted.producer_id, aborted.first_offset, aborted.last_offset) == (PID, 0, 1)


def test_a_marker_of_version_2_needs_a_newer_epoch_than_the_batches(log: PartitionLog) -> None:
    write(log, 0, epoch=3)
    assert refusal(end, log, 3) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.log_end_offset == 1
    assert log.last_stable_offset == 0
    end(log, 4)


def test_a_marker_of_version_1_has_the_epoch_of_the_batches(log: PartitionLog) -> None:
    write(log, 0, epoch=3)
    assert refusal(end, log, 2, version=1) is ErrorCode.INVALID_PRODUCER_EPOCH
    end(log, 3, version=1)


def test_a_marker_of_version_2_may_be_repeated(log: PartitionLog) -> None:
    write(log, 0)
    end(log, 1)
    end(log, 1)
    assert log.last_stable_offset == log.log_end_offset == 3


def test_a_transaction_of_the_last_epoch_can_be_ended(log: PartitionLog) -> None:
    write(log, 0, epoch=MAX_EPOCH)
    end(log, MAX_EPOCH)
    assert log.last_stable_offset == log.log_end_offset


def test_an_older_coordinator_is_fenced(log: PartitionLog) -> None:
    write(log, 0)
    end(log, 1, coordinator_epoch=5)
    write(log, 0, epoch=1)
    assert refusal(end, log, 2, coordinator_epoch=4) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert log.log_end_offset == 3
    end(log, 2, coordinator_epoch=5)


def test_a_marker_of_unchecked_bytes_is_refused(log: PartitionLog) -> None:
    write(log, 0)
    marker = build_batch([Record(b"?", b"", NOW_MS)], producer_id=PID, is_control=True)
    refused = refusal(log.append, marker, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)
    assert refused is ErrorCode.INVALID_RECORD
    assert log.log_end_offset == 1


def test_a_producer_without_batches_here_may_get_a_marker(log: PartitionLog) -> None:
    end(log, 9)
    assert log.last_stable_offset == log.log_end_offset == 1


def test_a_topic_with_broker_times_stamps_its_markers(tmp_path: Path) -> None:
    log = LogBox(tmp_path, message_timestamp_type="LogAppendTime").open()
    write(log, 0)
    end(log, 1)
    *_, marker = log.batches(0)
    assert read_header(marker).is_log_append_time


def test_a_transaction_that_is_not_verified_is_refused(log: PartitionLog) -> None:
    refused = refusal(log.append, batch(0), now_ms=NOW_MS)
    assert refused is ErrorCode.INVALID_TXN_STATE
    write(log, 0)
    log.append(batch(1), now_ms=NOW_MS)


def test_only_the_first_batch_of_a_transaction_is_verified(log: PartitionLog) -> None:
    assert begin(log, 0, is_v2=True)
    write(log, 0)
    assert not begin(log, 1, is_v2=True)
    end(log, 1)
    assert begin(log, 0, epoch=1, is_v2=True)


def test_a_late_batch_of_an_ended_transaction_is_refused(log: PartitionLog) -> None:
    write(log, 0)
    end(log, 1)
    assert refusal(begin, log, 1) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(write, log, 1) is ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("is_v2", [True, False])
def test_a_batch_does_not_overtake_one_whose_verification_failed(
    log: PartitionLog, is_v2: bool
) -> None:
    begin(log, 0, is_v2=is_v2)  # the coordinator is loading
    begin(log, 1, is_v2=is_v2)
    assert refusal(write, log, 1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    write(log, 0)
    write(log, 1)


def test_a_batch_of_a_new_epoch_replaces_the_sequence_that_waits(log: PartitionLog) -> None:
    begin(log, 0, is_v2=False)
    begin(log, 5, epoch=1, is_v2=False)
    write(log, 5, epoch=1)


def test_version_2_does_not_begin_in_the_middle(log: PartitionLog) -> None:
    begin(log, 3, is_v2=True)
    assert refusal(write, log, 3) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_verification_expires_with_the_producers(log: PartitionLog) -> None:
    begin(log, 0, is_v2=False)
    list(log.producers.remove_expired_verifications(NOW_MS + log.producers.expiration_ms))
    write(log, 1)


def test_a_marker_of_the_next_epoch_keeps_its_verification(log: PartitionLog) -> None:
    write(log, 0)
    begin(log, 0, epoch=1, is_v2=True)  # before the marker came
    end(log, 1)
    assert refusal(write, log, 1, epoch=1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    write(log, 0, epoch=1)
