"""What one ShareFetch reads and acquires: cold pages, damage, limits."""

from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.shares.sessions import SessionKey
from odradek.broker.shares.share_read import MAX_HEADERS, Answers, ShareFetchCall, ShareRead
from odradek.broker.shares.shares import MAX_AT_ONCE, MAX_IN_FLIGHT_AT_ONCE, WARN_EVERY_MS
from odradek.coordinator.runtime.steps import no_step
from odradek.coordinator.share_state.batches import DeliveryBatch
from odradek.protocol.batch_header import read_header
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.control import ControlRecordType, control_key, end_txn_value
from odradek.storage.batch_scan import HEADER_CHUNK_BYTES
from odradek.storage.files import OpenFile
from odradek.storage.log import RecordsSlice
from tests.broker.shares.test_share_sessions import connection
from tests.support.call_counts import counted_calls
from tests.support.log_box import NOW_MS, batch_of, put, split
from tests.support.share_rig import GROUP, ColdFiles, ShareRig
from tests.support.share_states import TOPIC_ID

LOCK_DURATION = "share.record.lock.duration.ms"
BATCH_LENGTH = 8  # the position of a batch's length


def test_an_attempt_that_lacks_a_header_acquires_nothing(tmp_path: Path) -> None:
    """It is made again: what the first one acquired would stay locked, and not be sent."""
    files = ColdFiles()
    rig = ShareRig(tmp_path, files=files)
    for log in rig.logs:
        put(log, b"tea")
    size = rig.logs[1].read(0, 1 << 20, at_least_one_batch=True).size_bytes
    files.cold = {("t-1", min(size, HEADER_CHUNK_BYTES))}
    assert rig.acquire("m", 0, 1) == [(0, 0, 1), (0, 0, 1)]


def test_a_damaged_header_is_the_error_of_its_partition(tmp_path: Path) -> None:
    """The records before it are delivered first."""
    rig = ShareRig(tmp_path)
    for log in rig.logs:
        put(log, b"tea")
        put(log, b"coffee")
    piece = rig.logs[1].read(0, 1 << 20, at_least_one_batch=True)
    rig.files.pwrite(piece.file, bytes(4), piece.size_bytes // 2 + BATCH_LENGTH)
    answers = rig.fetch("m", 0, 1)
    for partition, last_offset in ((0, 1), (1, 0)):
        answer = answers[TOPIC_ID, partition]
        [acquired] = answer.acquired_records
        assert (acquired.first_offset, acquired.last_offset) == (0, last_offset)
        assert answer.error_code == ErrorCode.NONE
    put(rig.logs[0], b"water")
    answers = rig.fetch("m", 0, 1)
    damaged = answers[TOPIC_ID, 1]
    assert damaged.error_code == ErrorCode.CORRUPT_MESSAGE
    assert not damaged.acquired_records
    assert answers[TOPIC_ID, 0].acquired_records


def test_a_header_that_the_disk_does_not_give_is_the_error_of_its_partition(
    tmp_path: Path,
) -> None:
    class BrokenFiles(ColdFiles):
        def pread_cached(self, file: OpenFile, size: int, position: int) -> bytes | None:
            if (file.path.parent.name, size) in self.cold:
                raise OSError(5, "Input/output error")
            return super().pread_cached(file, size, position)

    files = BrokenFiles()
    rig = ShareRig(tmp_path, files=files)
    for log in rig.logs:
        put(log, b"tea")
    size = rig.logs[1].read(0, 1 << 20, at_least_one_batch=True).size_bytes
    files.cold = {("t-1", size)}
    answers = rig.fetch("m", 0, 1)
    assert answers[TOPIC_ID, 1].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert answers[TOPIC_ID, 0].acquired_records


@pytest.mark.parametrize(
    ("max_records", "base_offsets"), [(10, [0]), (11, [0, 10]), (12, [0, 10, 11])]
)
def test_acquired_records_that_compaction_has_removed_are_sent_with_the_batch_before_them(
    tmp_path: Path, max_records: int, base_offsets: list[int]
) -> None:
    """A share session omits a partition without bytes, and nobody would acknowledge them."""
    transaction: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
    abort = Record(control_key(ControlRecordType.ABORT), end_txn_value(0), NOW_MS)
    path = tmp_path / "t-0" / f"{0:020d}.log"
    path.parent.mkdir()
    path.write_bytes(
        build_batch([Record(b"k", b"tea", NOW_MS)] * 5, base_sequence=0, **transaction)
        + build_batch([abort], base_offset=10, is_control=True, **transaction)
        + batch_of(b"coffee", base_offset=11)
    )
    rig = ShareRig(tmp_path, partitions=1)
    rig.overrides["share.isolation.level"] = "read_committed"
    answer = rig.fetch("m", max_records=max_records, has_record_limit=True)[TOPIC_ID, 0]
    acquired = [(one.first_offset, one.last_offset) for one in answer.acquired_records]
    assert acquired == [(5, max_records - 1)]
    assert isinstance(answer.records, RecordsSlice)
    data = rig.files.pread_exact(
        answer.records.file, answer.records.size_bytes, answer.records.position
    )
    assert [read_header(batch).base_offset for batch in split(data)] == base_offsets


def test_as_many_headers_are_read_as_can_be_acquired(tmp_path: Path) -> None:
    """A member may ask for 2^31-1 records."""
    rig = ShareRig(tmp_path)
    count = MAX_HEADERS + 100
    batch = batch_of(b"tea")
    for log in rig.logs:
        for _ in range(count):
            log.append(batch, now_ms=NOW_MS)
    most = {"max_records": (1 << 31) - 1, "max_bytes": 1 << 30}
    assert rig.acquire("m", 0, 1, batch_size=count, **most) == [(0, MAX_HEADERS - 1, 1)]
    assert rig.acquire("m", 1, 0, batch_size=count, **most) == [(0, MAX_HEADERS - 1, 1)]
    # Then 2,000 records may be in flight, and no more of them are read.
    assert rig.acquire("m", 0, batch_size=count, **most) == [(MAX_HEADERS, count - 1, 1)]


def test_a_stored_delivery_state_that_is_not_known_is_the_error_of_its_partition(
    tmp_path: Path,
) -> None:
    rig = ShareRig(tmp_path)
    for log in rig.logs:
        put(log, b"tea")
    unknown = DeliveryBatch(0, 0, 1, 5)
    rig.states.write(unknown, key=rig.key(1), start=0)
    answers = rig.fetch("m", 0, 1)
    assert answers[TOPIC_ID, 1].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert answers[TOPIC_ID, 0].acquired_records


def test_a_share_partition_without_a_state_has_an_error(tmp_path: Path) -> None:
    rig = ShareRig(tmp_path)
    rig.states.delete(rig.key(1))
    assert rig.fetch("m", 0, 1)[TOPIC_ID, 1].error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_share_partition_whose_state_is_lost_is_opened_with_a_new_one(tmp_path: Path) -> None:
    rig = ShareRig(tmp_path, partitions=1)
    put(rig.logs[0], b"tea")
    rig.states.delete(rig.key())
    rig.has_lost_state = True
    assert acquired(rig.first_fetch("m")) == {0}


@pytest.mark.parametrize("is_lost", [False, True])
@pytest.mark.parametrize(
    "code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
)
def test_a_share_partition_whose_state_cannot_be_read_now_is_tried_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    code: ErrorCode,
    is_lost: bool,
) -> None:
    """Consumers fail with an error of a coordinator: they do not know it in a ShareFetch."""

    def refuse(*_arguments: Any) -> Any:
        raise ApiError(code, "its shard is not served")

    rig = ShareRig(tmp_path, partitions=1)
    put(rig.logs[0], b"tea")
    if is_lost:
        rig.states.delete(rig.key())
    call = ShareFetchCall(GROUP, "m", [(TOPIC_ID, 0)], 1, 1 << 20, 500, 500, False)
    read = ShareRead(rig.shares, rig.files, call)
    with monkeypatch.context() as patch:
        if is_lost:
            patch.setattr(rig.shares, "_create_lost_state", refuse)
        else:
            patch.setattr(rig.states.coordinator, "read", refuse)
        assert read.attempt(rig.states.loop.clock(), is_last=False) is None
        assert read.attempt(rig.states.loop.clock(), is_last=True) == {}
        words = f"the stored state of {rig.key().text} cannot be read now: "
        assert caplog.text.count(words) == 1
        rig.states.loop.advance(WARN_EVERY_MS)
        assert read.attempt(rig.states.loop.clock(), is_last=False) is None
        assert caplog.text.count(words) == 2
    rig.has_lost_state = is_lost
    answers = read.attempt(rig.states.loop.clock(), is_last=False)
    assert answers is not None
    assert acquired(answers) == {0}


def test_a_state_whose_shard_closes_in_a_step_is_not_available(tmp_path: Path) -> None:
    rig = ShareRig(tmp_path, partitions=1)
    rig.states.write(DeliveryBatch(0, 0, 1, 0), start=0)
    with pytest.raises(ApiError, match="COORDINATOR_NOT_AVAILABLE"):
        rig.shares.open(rig.key(), rig.states.coordinator.close)


def test_a_fault_in_opening_a_share_partition_is_the_error_of_that_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rig = ShareRig(tmp_path)
    for log in rig.logs:
        put(log, b"tea")
    rig.acquire("m", 0)
    rig.overrides["share.auto.offset.reset"] = "by_duration:a while"
    answers = rig.first_fetch("m", 0, 1)
    assert answers[TOPIC_ID, 1].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert f"{rig.key(1).text} is not opened" in caplog.text
    put(rig.logs[0], b"coffee")
    assert rig.first_fetch("m", 0, 1)[TOPIC_ID, 0].acquired_records


def test_share_partitions_that_a_fetch_opens_are_read_one_by_one(tmp_path: Path) -> None:
    """As by Kafka, which answers while the states of others are read. Clients count on it."""
    rig = ShareRig(tmp_path, partitions=3)
    for log in rig.logs[1:]:
        put(log, b"tea")
    assert acquired(rig.first_fetch("m", 0, 1, 2)) == {1}
    assert acquired(rig.first_fetch("m", 0, 1, 2)) == {2}


def test_share_partitions_that_are_open_are_read_before_new_ones(tmp_path: Path) -> None:
    rig = ShareRig(tmp_path, partitions=3)
    for log in rig.logs:
        put(log, b"tea")
    assert acquired(rig.first_fetch("m", 2)) == {2}
    put(rig.logs[2], b"coffee")
    assert acquired(rig.first_fetch("m", 0, 1, 2)) == {2}
    assert acquired(rig.first_fetch("m", 0, 1, 2)) == {0, 1}


def test_new_share_partitions_are_read_together_where_one_is_not_enough(tmp_path: Path) -> None:
    rig = ShareRig(tmp_path)
    for log in rig.logs:
        put(log, b"tea")
    assert acquired(rig.first_fetch("m", 0, 1, min_bytes=1 << 10)) == {0, 1}


@pytest.mark.parametrize(("offset_bytes", "is_enough"), [(-1, True), (0, True), (1, False)])
def test_a_batch_that_does_not_fit_counts_in_part(
    tmp_path: Path, offset_bytes: int, *, is_enough: bool
) -> None:
    rig = ShareRig(tmp_path, partitions=1)
    for _ in range(3):
        put(rig.logs[0], b"tea")
    limit = len(batch_of(b"tea")) * 2 - 1
    rig.shares.open(rig.key())
    call = ShareFetchCall(
        GROUP,
        "m",
        places=[(TOPIC_ID, 0)],
        min_bytes=limit + offset_bytes,
        max_bytes=limit,
        max_records=500,
        batch_size=500,
        has_record_limit=False,
    )
    read = ShareRead(rig.shares, rig.files, call)
    answers = read.attempt(rig.states.loop.clock(), is_last=False)
    assert (answers is not None) is is_enough


def acquired(answers: Answers) -> set[int]:
    """The partitions of which something was acquired."""
    return {partition for (_, partition), one in answers.items() if one.acquired_records}


def test_what_others_acquire_between_two_slices_is_not_acquired_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = ShareRig(tmp_path)
    for index, log in enumerate(rig.logs):
        put(log, b"tea")
        rig.shares.open(rig.key(index))
    call = ShareFetchCall(
        GROUP,
        "slow",
        places=[(TOPIC_ID, 0), (TOPIC_ID, 1)],
        min_bytes=1,
        max_bytes=1 << 20,
        max_records=500,
        batch_size=500,
        has_record_limit=False,
    )

    def acquire_all(*arguments: Any) -> Any:
        is_acquiring.append(True)
        return acquire(*arguments)

    def step() -> None:
        """When all headers are read, another member acquires a record."""
        if is_acquiring:
            is_acquiring.clear()
            assert rig.acquire("quick", 1) == [(0, 0, 1)]

    is_acquiring: list[bool] = []
    read = ShareRead(rig.shares, rig.files, call, step)
    acquire = read._acquire_all
    monkeypatch.setattr(read, "_acquire_all", acquire_all)
    answers = read.attempt(rig.states.loop.clock(), is_last=False)
    assert answers is not None
    acquired = {place[1]: answer.acquired_records for place, answer in answers.items()}
    assert len(acquired[0]) == 1
    assert acquired[1] == []


def test_an_attempt_may_find_records_or_an_error(tmp_path: Path) -> None:
    rig = ShareRig(tmp_path, partitions=1)
    [log] = rig.logs
    call = ShareFetchCall(GROUP, "m", [(TOPIC_ID, 0)], 1, 1 << 20, 500, 500, False)
    read = ShareRead(rig.shares, rig.files, call)
    led = rig.shares.open(rig.key())
    assert not read.may_find(led)
    put(log, b"tea")
    assert read.may_find(led)
    rig.acquire("m")
    assert not read.may_find(led)
    rig.overrides["share.isolation.level"] = "read_committed"
    batch = batch_of(b"coffee", producer=(7, 0, 0), is_transactional=True)
    log.append(batch, now_ms=NOW_MS, transaction_verified=True)
    assert not read.may_find(led), "the transaction is open"
    rig.overrides["share.isolation.level"] = "read_uncommitted"
    assert read.may_find(led)
    log.increment_log_start_offset(log.high_watermark)
    assert read.may_find(led), "the offset is out of range"
    rig.acquire("m")
    assert not read.may_find(led)
    log.take_offline("a test")
    assert read.may_find(led), "the log cannot be read"
    rig.shares.topics_deleted([TOPIC_ID])
    assert read.may_find(led), "it is closed"


def test_an_attempt_finds_nothing_while_no_more_records_may_be_in_flight(tmp_path: Path) -> None:
    rig = ShareRig(tmp_path, partitions=1)
    call = ShareFetchCall(GROUP, "m", [(TOPIC_ID, 0)], 1, 1 << 20, 500, 500, False)
    led = rig.shares.open(rig.key())
    put(rig.logs[0], *[b"tea"] * led.limits().max_in_flight)
    rig.acquire("m")
    put(rig.logs[0], b"coffee")
    assert not ShareRead(rig.shares, rig.files, call).may_find(led)


class Later:
    """Runs what is to run in slices when `finish` is called."""

    def __init__(self) -> None:
        self.begun: list[Any] = []

    def run(self, make: Callable[[Any], Any]) -> "Later":
        self.begun.append(make(self))
        return self

    def add_done_callback(self, _callback: object) -> None: ...

    def step(self) -> None: ...

    def finish(self) -> None:
        while self.begun:
            with suppress(StopIteration):
                self.begun.pop().send(None)


def test_locks_of_many_records_end_in_slices(tmp_path: Path) -> None:
    later = Later()
    rig = ShareRig(tmp_path, slices=later)
    for log, count in zip(
        rig.logs, (MAX_IN_FLIGHT_AT_ONCE, MAX_IN_FLIGHT_AT_ONCE + 1), strict=True
    ):
        put(log, *[b"tea"] * count)
    rig.fetch("m", 0, 1)
    few, many = (rig.shares.open(rig.key(index)).partition for index in range(2))
    rig.states.loop.advance(60_000)
    assert few.next_fetch_offset() == 0
    assert many.next_fetch_offset() > 0
    later.finish()
    assert many.next_fetch_offset() == 0


def test_the_next_lock_is_looked_for_in_slices(tmp_path: Path) -> None:
    later = Later()
    rig = ShareRig(tmp_path, partitions=1, slices=later)
    count = 5 * MAX_IN_FLIGHT_AT_ONCE
    for _ in range(count):
        put(rig.logs[0], b"tea")
    rig.overrides[LOCK_DURATION] = "15000"
    rig.acquire("m", max_records=1)
    rig.overrides[LOCK_DURATION] = "60000"
    rig.acquire("m", max_records=count, batch_size=1)
    rig.states.loop.advance(15_000)
    steps = [0]
    with counted_calls() as counted:
        later.step = lambda: steps.append(counted.steps)  # type: ignore[method-assign]
        later.finish()
    assert max(end - begin for begin, end in pairwise([*steps, counted.steps])) < count
    rig.states.loop.advance(45_000)
    later.finish()
    assert len(rig.acquire("n", max_records=count)) == count


def test_a_share_partition_may_close_while_its_locks_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    steps = 0

    def end_locks(root: Path, close_at: int) -> ShareRig:
        nonlocal steps
        later, steps = Later(), 0
        rig = ShareRig(root, partitions=1, slices=later)
        for _ in range(2):
            put(rig.logs[0], *[b"tea"] * MAX_IN_FLIGHT_AT_ONCE)
        rig.overrides[LOCK_DURATION] = "15000"
        rig.acquire("m", max_records=1)
        rig.overrides[LOCK_DURATION] = "60000"
        rig.acquire("m")

        def step() -> None:
            nonlocal steps
            steps += 1
            if steps == close_at:
                rig.shares.topics_deleted([TOPIC_ID])

        later.step = step  # type: ignore[method-assign]
        rig.states.loop.advance(15_000)
        later.finish()
        return rig

    end_locks(tmp_path / "open", close_at=0)
    closed = end_locks(tmp_path / "closed", close_at=steps)
    closed.states.loop.advance(60_000)
    assert not closed.shares.in_flight_count(closed.key())
    assert not caplog.text  # no deadline fails


def test_a_large_session_ends_before_its_member_opens_another(tmp_path: Path) -> None:
    count = MAX_AT_ONCE + 2
    later = Later()
    rig = ShareRig(tmp_path, partitions=count, slices=later)
    for log in rig.logs:
        put(log, b"tea")
    key = SessionKey(GROUP, "m")
    only = connection()
    rig.open_session("m", *range(count), connection=only)
    rig.fetch("m", *range(count))
    rig.shares.release_session(key)
    rig.shares.finish_release(key, no_step)  # as ShareFetch does
    again = rig.fetch("m", *range(count))
    assert all(answer.acquired_records for answer in again.values())
    later.finish()
    partitions = [rig.shares.open(rig.key(index)).partition for index in range(count)]
    assert {one.next_fetch_offset() for one in partitions} == {1}, "it keeps what it has"


def test_a_state_with_many_batches_is_read_in_steps(tmp_path: Path) -> None:
    """It may have a new life after a step, or the share-partition may be open then."""
    stored = [DeliveryBatch(first, first, 1, first % 2 * 2) for first in range(100)]
    steps = 0

    def store_at_a_step() -> None:
        nonlocal steps
        steps += 1
        if steps == len(stored) // 2:
            change(rig)

    def begin_new_life(rig: ShareRig) -> None:
        rig.states.initialize(state_epoch=2, start=7)

    def open_it(rig: ShareRig) -> None:
        opened.append(rig.shares.open(rig.key()))

    opened: list[object] = []
    for change in (begin_new_life, open_it):
        rig, steps = ShareRig(tmp_path / change.__name__, partitions=1), 0
        rig.states.write(*stored, start=0)
        assert rig.shares.batches_to_open(rig.key()) == len(stored)
        led = rig.shares.open(rig.key(), store_at_a_step)
        assert rig.shares.is_open(led)
        assert rig.shares.batches_to_open(rig.key()) == 0
        assert steps >= len(stored) // 2
        assert opened in ([], [led])
        assert led.partition.start_offset == (0 if opened else 7)


def acquires_again(root: Path, at_step: int) -> bool:
    """A member acquires again at a step of its session's end. Returns whether there was that step.

    It keeps what it acquires then.
    """
    later, passed = Later(), 0
    rig = ShareRig(root, partitions=1, slices=later)
    put(rig.logs[0], *[b"tea"] * (MAX_IN_FLIGHT_AT_ONCE + 1))
    put(rig.logs[0], b"coffee")
    key = SessionKey(GROUP, "m")
    rig.open_session("m", 0, connection=connection())
    rig.acquire("m")
    partition = rig.shares.open(rig.key()).partition

    def step() -> None:
        nonlocal passed
        passed += 1
        if passed == at_step:
            rig.shares.finish_release(key, no_step)  # as ShareFetch does
            assert not rig.shares.is_releasing(*key)
            assert partition.next_fetch_offset() == 0
            rig.acquire("m")

    later.step = step  # type: ignore[method-assign]
    rig.shares.release_session(key)
    assert rig.shares.is_releasing(*key)
    later.finish()
    assert not rig.shares.is_releasing(*key)
    is_kept = partition.next_fetch_offset() == MAX_IN_FLIGHT_AT_ONCE + 2
    assert is_kept is (passed >= at_step)
    return is_kept


def test_a_session_with_many_records_ends_in_slices(tmp_path: Path) -> None:
    at_step = 1
    while acquires_again(tmp_path / str(at_step), at_step):
        at_step += 1
    assert at_step > 4


def test_a_share_partition_whose_state_is_gone_is_closed_when_records_are_released(
    tmp_path: Path,
) -> None:
    rig = ShareRig(tmp_path, partitions=1)
    put(rig.logs[0], b"tea")
    rig.open_session("m", 0, connection=connection())
    led = rig.shares.open(rig.key())
    assert rig.acquire("m") == [(0, 0, 1)]
    rig.states.initialize(state_epoch=2)
    rig.shares.release_session(SessionKey(GROUP, "m"))
    assert not rig.shares.is_open(led)
    rig.states.loop.advance(60_000)
    assert rig.acquire("n") == [(0, 0, 1)]
