"""Idempotent producers: duplicates, order, epochs, transactions; snapshots, and reloading them."""

import gc
import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from crc32c import crc32c
from hypothesis import example, given, settings
from hypothesis import strategies as st

from odradek.protocol.batch_header import (
    MAX_SEQUENCE,
    BatchHeader,
    increment_sequence,
    read_header,
)
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.control import ControlRecordType, control_key, end_txn_value
from odradek.storage import parts, producer_state
from odradek.storage.append import EndMarker
from odradek.storage.files import Files
from odradek.storage.producer_entry import BatchSpan, ProducerEntry
from odradek.storage.producer_snapshot import (
    CorruptSnapshotError,
    decode_snapshot,
    encode_snapshot,
)
from odradek.storage.producer_state import CompletedTransaction, ProducerStates
from tests.support.faulty_files import FaultyFiles, anything
from tests.support.golden import BASE_TIME, GOLDEN, run_golden_program
from tests.support.turns import TURN_MS, slowness

PID = 42
EXPIRATION_MS = 86_400_000
MANY = 100_000
NOW = BASE_TIME + 1000
GOLDEN_SNAPSHOT = GOLDEN / "00000000000000000131.snapshot"


@pytest.fixture
def states(tmp_path: Path) -> ProducerStates:
    return ProducerStates(Files(), tmp_path, expiration_ms=EXPIRATION_MS)


def batch(
    sequence: int, count: int = 1, *, pid: int = PID, epoch: int = 0, txn: bool = False
) -> BatchHeader:
    """The header of a client's batch."""
    records = [Record(None, b"", BASE_TIME)] * count
    return read_header(
        build_batch(
            records,
            producer_id=pid,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=txn,
        )
    )


def append(states: ProducerStates, header: BatchHeader) -> int:
    """Append as a log does; return the base offset, of the first copy for a duplicate."""
    duplicate = states.find_duplicate(header)
    if duplicate is not None:
        return duplicate.first_offset
    base_offset = states.map_end_offset
    states.check(header, base_offset)
    states.update(header, base_offset)
    states.map_end_offset = base_offset + header.record_count
    return base_offset


def end_transaction(
    states: ProducerStates,
    kind: ControlRecordType,
    *,
    pid: int = PID,
    epoch: int = 0,
    coordinator_epoch: int = 7,
) -> CompletedTransaction | None:
    marker = Record(control_key(kind), end_txn_value(coordinator_epoch), BASE_TIME + 5)
    data = build_batch(
        [marker],
        base_offset=states.map_end_offset,
        producer_id=pid,
        producer_epoch=epoch,
        is_transactional=True,
        is_control=True,
    )
    header = read_header(data)
    completed = states.replay_marker(header, data)
    states.map_end_offset = header.next_offset
    return completed


def refusal(states: ProducerStates, header: BatchHeader) -> ErrorCode:
    before = encode_snapshot(states.producers.values())
    with pytest.raises(ApiError) as caught:
        append(states, header)
    assert encode_snapshot(states.producers.values()) == before, "a refusal changes nothing"
    return caught.value.code


def reloaded(states: ProducerStates, log_end_offset: int, now_ms: int = NOW) -> ProducerStates:
    again = ProducerStates(Files(), states.directory, expiration_ms=EXPIRATION_MS)
    again.truncate_and_reload(0, log_end_offset, now_ms)
    return again


def snapshot_names(states: ProducerStates) -> list[str]:
    return sorted(path.name for path in states.directory.iterdir())


# --- sequences


def test_batches_in_order_are_appended(states: ProducerStates) -> None:
    assert append(states, batch(0, 3)) == 0
    assert append(states, batch(3, 2)) == 3
    assert append(states, batch(5)) == 5


def test_a_repeated_batch_gets_its_first_answer(states: ProducerStates) -> None:
    append(states, batch(0, 3))
    append(states, batch(3, 2))
    assert append(states, batch(0, 3)) == 0
    assert append(states, batch(3, 2)) == 3
    assert states.map_end_offset == 5
    found = states.find_duplicate(batch(3, 2))
    assert found == BatchSpan(
        last_sequence=4, last_offset=4, offset_delta=1, timestamp_ms=BASE_TIME
    )
    assert found.first_offset == 3


def test_only_the_last_five_batches_are_remembered(states: ProducerStates) -> None:
    for sequence in range(6):
        append(states, batch(sequence))
    assert [append(states, batch(sequence)) for sequence in range(1, 6)] == [1, 2, 3, 4, 5]
    assert refusal(states, batch(0)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_the_same_start_with_another_length_is_no_duplicate(states: ProducerStates) -> None:
    append(states, batch(0, 3))
    assert refusal(states, batch(0, 2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(states, batch(1, 2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_is_refused_and_says_what_was_expected(states: ProducerStates) -> None:
    append(states, batch(0, 3))
    with pytest.raises(ApiError, match="sequence 4 of epoch 0 came, 3 was expected") as caught:
        append(states, batch(4))
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_unknown_producer_may_start_anywhere(states: ProducerStates) -> None:
    assert append(states, batch(1000, 2)) == 0
    assert append(states, batch(1002)) == 2


def test_sequences_wrap_to_zero(states: ProducerStates) -> None:
    append(states, batch(MAX_SEQUENCE - 1, 2))
    assert append(states, batch(0)) == 2
    append(states, batch(1, 1))


def test_a_batch_may_wrap_in_its_middle(states: ProducerStates) -> None:
    append(states, batch(MAX_SEQUENCE - 1, 4))
    assert append(states, batch(MAX_SEQUENCE - 1, 4)) == 0
    assert append(states, batch(2)) == 4
    found = states.find_duplicate(batch(MAX_SEQUENCE - 1, 4))
    assert found is not None
    assert (found.last_sequence, found.offset_delta) == (1, 3)


def test_producers_do_not_know_each_other(states: ProducerStates) -> None:
    append(states, batch(0, 2, pid=1))
    append(states, batch(0, 2, pid=2))
    assert append(states, batch(2, pid=1)) == 4
    assert append(states, batch(0, 2, pid=2)) == 2


def test_appends_of_the_coordinator_have_no_sequences(states: ProducerStates) -> None:
    for offset in (0, 1):
        header = batch(-1, txn=True)
        states.check(header, offset, check_sequence=False)
        states.update(header, offset)
    old = batch(-1, epoch=-1, txn=True)
    with pytest.raises(ApiError, match="INVALID_PRODUCER_EPOCH"):
        states.check(old, 2, check_sequence=False)


# --- epochs


def test_an_older_epoch_is_fenced(states: ProducerStates) -> None:
    append(states, batch(0, epoch=3))
    assert refusal(states, batch(1, epoch=2)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_new_epoch_starts_at_zero(states: ProducerStates) -> None:
    append(states, batch(0, 5, epoch=3))
    assert refusal(states, batch(5, epoch=4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(states, batch(0, epoch=4)) == 5
    assert append(states, batch(1, epoch=4)) == 6


def test_after_epoch_minus_one_any_sequence_is_accepted(states: ProducerStates) -> None:
    append(states, batch(3, epoch=-1))
    append(states, batch(7, epoch=-1))
    assert append(states, batch(5, epoch=0)) == 2


def test_batches_of_an_older_epoch_are_no_duplicates(states: ProducerStates) -> None:
    append(states, batch(0, 2, epoch=0))
    assert append(states, batch(0, 2, epoch=1)) == 2
    assert refusal(states, batch(0, 2, epoch=0)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert len(states.producers[PID].batches) == 1


# --- transactions


def test_the_first_unstable_offset_is_where_the_oldest_transaction_began(
    states: ProducerStates,
) -> None:
    assert states.first_unstable_offset is None
    append(states, batch(0, pid=9))
    append(states, batch(0, pid=1, txn=True))
    append(states, batch(0, pid=2, txn=True))
    append(states, batch(1, pid=1, txn=True))
    assert states.first_unstable_offset == 1
    completed = end_transaction(states, ControlRecordType.COMMIT, pid=1)
    assert completed == CompletedTransaction(1, 1, 4, is_aborted=False)
    assert states.first_unstable_offset == 2
    completed = end_transaction(states, ControlRecordType.ABORT, pid=2)
    assert completed == CompletedTransaction(2, 2, 5, is_aborted=True)
    assert states.first_unstable_offset is None


def test_a_plain_batch_inside_an_open_transaction_is_refused(states: ProducerStates) -> None:
    append(states, batch(0, txn=True))
    assert refusal(states, batch(1)) is ErrorCode.INVALID_TXN_STATE


def test_after_a_marker_of_a_new_epoch_sequences_start_at_zero(states: ProducerStates) -> None:
    append(states, batch(0, 5, txn=True))
    end_transaction(states, ControlRecordType.COMMIT, epoch=1)
    entry = states.producers[PID]
    assert (entry.epoch, entry.coordinator_epoch) == (1, 7)
    assert entry.last_timestamp_ms == BASE_TIME + 5
    assert refusal(states, batch(5, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    append(states, batch(0, epoch=1, txn=True))


def test_a_marker_for_nothing_completes_nothing(states: ProducerStates) -> None:
    assert end_transaction(states, ControlRecordType.ABORT, epoch=4) is None
    assert states.producers[PID].epoch == 4
    assert refusal(states, batch(0, epoch=3)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_control_batch_that_the_cleaner_emptied_changes_nothing(states: ProducerStates) -> None:
    data = (GOLDEN / "batch-commit.bin").read_bytes()
    header = read_header(data)._replace(record_count=0, batch_length=49)
    assert states.replay_marker(header, data[:61]) is None
    assert not states.producers


@pytest.mark.parametrize(("name", "is_aborted"), [("commit", False), ("abort", True)])
def test_markers_that_kafka_wrote_end_transactions(
    states: ProducerStates, name: str, is_aborted: bool
) -> None:
    states.update(batch(0, pid=4242, epoch=3, txn=True), 100)
    data = (GOLDEN / f"batch-{name}.bin").read_bytes()
    header = read_header(data)
    completed = states.replay_marker(header, data)
    assert completed == CompletedTransaction(4242, 100, header.base_offset, is_aborted)
    assert states.producers[4242].coordinator_epoch == 11


# --- expiration


def test_a_silent_producer_expires_unless_its_transaction_is_open(states: ProducerStates) -> None:
    append(states, batch(0, pid=1))
    append(states, batch(0, pid=2, txn=True))
    states.remove_expired(BASE_TIME + EXPIRATION_MS - 1)
    assert set(states.producers) == {1, 2}
    states.remove_expired(BASE_TIME + EXPIRATION_MS)
    assert set(states.producers) == {2}


def test_many_producers_expire_in_parts_between_which_they_may_write(
    states: ProducerStates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "ITEMS_OF_A_PART", 10)
    for pid in range(100):
        append(states, batch(0, pid=pid))
    removing = states.remove_expired_in_parts(BASE_TIME + EXPIRATION_MS)
    for expired in (10, 20, 30):
        next(removing)
        assert len(states.producers) == 100 - expired
    states.producers[50].last_timestamp_ms += 1
    assert len(list(removing)) == 7
    assert set(states.producers) == {50}


# --- the file


def test_a_snapshot_that_kafka_wrote_is_read_and_written_alike() -> None:
    data = GOLDEN_SNAPSHOT.read_bytes()
    entries = decode_snapshot(data)
    assert [entry.producer_id for entry in entries] == [1, 2, 3]
    first, second, third = entries
    assert (first.epoch, first.last_sequence, first.last_offset) == (0, 41, 120)
    assert first.batches[-1].first_offset == 116
    assert (second.coordinator_epoch, second.txn_first_offset) == (9, 100)
    assert (third.last_offset, third.has_open_transaction) == (-1, False)
    assert third.last_timestamp_ms == BASE_TIME + 2
    assert encode_snapshot(entries) == data


def test_a_snapshot_of_nobody_is_written() -> None:
    data = encode_snapshot([])
    assert len(data) == 10
    assert decode_snapshot(data) == []


def test_a_snapshot_is_of_the_moment_at_which_it_began(
    states: ProducerStates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two of its parts producers write, end transactions, expire, and come back."""
    monkeypatch.setattr(parts, "ITEMS_OF_A_PART", 10)
    monkeypatch.setattr(producer_state, "ITEMS_OF_A_PART", 10)
    for pid in range(60):
        append(states, batch(0, pid=pid, txn=pid % 2 == 1))
    expected = encode_snapshot(states.producers.values())
    path = states.begin_snapshot()
    assert path is not None
    assert not path.exists()
    encoding = states.encode_in_parts()
    for pid in (9, 15, 35, 35, 59, 60):
        next(encoding)
        end = EndMarker(pid, 0, is_commit=True, coordinator_epoch=7)
        states.end_transaction(end, states.map_end_offset, NOW)
        append(states, batch(1 if pid < 60 else 0, pid=pid, txn=True))
    states.remove_expired(BASE_TIME + EXPIRATION_MS)
    append(states, batch(0, pid=40))
    states.finish_snapshot()
    assert path.read_bytes() == expected
    assert states.snapshot_offsets == [60]
    taken = states.take_snapshot()
    assert taken is not None
    assert taken.read_bytes() == encode_snapshot(states.producers.values()) != expected


def test_a_snapshot_that_cannot_be_written_is_begun_again(tmp_path: Path) -> None:
    files = FaultyFiles()
    states = ProducerStates(files, tmp_path, expiration_ms=EXPIRATION_MS)
    append(states, batch(0))
    files.fail(anything)
    with pytest.raises(OSError, match="snapshot"):
        states.begin_snapshot()
    files.heal()
    path = states.begin_snapshot()
    assert path is not None
    assert path.read_bytes() == encode_snapshot(states.producers.values())


def on_many_producers(states: ProducerStates) -> Iterator[None]:
    """All that is done for all producers of a log, in its parts."""
    states.begin_snapshot()
    yield
    yield from states.encode_in_parts()
    states.finish_snapshot()
    yield
    yield from states.remove_expired_in_parts(BASE_TIME + EXPIRATION_MS)
    yield from states.remove_expired_verifications(EXPIRATION_MS)


@pytest.mark.slow
def test_no_part_of_the_work_on_many_producers_is_long(states: ProducerStates) -> None:
    header = batch(0)
    longest_ms = float("inf")
    for attempt in range(1, 4):
        for pid in range(MANY):
            states.update(header._replace(producer_id=pid), pid)
            states.begin_verification(pid, 0, 0, 0, is_v2=True)
        states.map_end_offset = attempt * MANY
        gc.disable()  # a full collection depends on all that lives
        try:
            longest_ms = min(longest_ms, longest_stretch_ms(on_many_producers(states)))
        finally:
            gc.enable()
        assert not states.producers
    assert longest_ms <= TURN_MS


def longest_stretch_ms(work: Iterator[None]) -> float:
    longest_s, began_s = 0.0, time.thread_time()
    for _ in work:
        longest_s = max(longest_s, time.thread_time() - began_s)
        began_s = time.thread_time()
    return longest_s * 1000 / slowness()


def test_flipping_any_byte_of_a_snapshot_is_noticed() -> None:
    sound = GOLDEN_SNAPSHOT.read_bytes()
    for position in range(len(sound)):
        data = bytearray(sound)
        data[position] ^= 1
        with pytest.raises(CorruptSnapshotError):
            decode_snapshot(bytes(data))


def test_a_snapshot_cut_at_any_byte_is_noticed() -> None:
    sound = GOLDEN_SNAPSHOT.read_bytes()
    for size in range(len(sound)):
        with pytest.raises(CorruptSnapshotError):
            decode_snapshot(sound[:size])


def test_a_snapshot_with_a_sound_checksum_and_a_wrong_count_is_noticed() -> None:
    checked = (5).to_bytes(4, "big")
    data = b"\x00\x01" + crc32c(checked).to_bytes(4, "big") + checked
    with pytest.raises(CorruptSnapshotError, match="5 producers announced in 0 bytes"):
        decode_snapshot(data)


@pytest.mark.java
def test_kafka_reads_our_snapshot(states: ProducerStates) -> None:
    append(states, batch(MAX_SEQUENCE, 3))
    append(states, batch(0, pid=7, epoch=2, txn=True))
    path = states.take_snapshot()
    assert run_golden_program("read-snapshot", str(path)).splitlines() == [
        f"42 0 2 0 {BASE_TIME} -1 -1",
        f"7 2 3 3 {BASE_TIME} -1 3",
    ]


# --- snapshots of a log


def test_a_snapshot_is_named_by_the_end_of_what_it_holds(states: ProducerStates) -> None:
    assert states.take_snapshot() is None, "nothing was appended"
    append(states, batch(0, 3))
    assert states.take_snapshot() == states.directory / "00000000000000000003.snapshot"
    assert states.take_snapshot() is None, "nothing was appended since"
    states.map_end_offset = 9
    states.take_snapshot()
    assert states.snapshot_offsets == [3, 9]


def test_a_restart_knows_the_last_batch_of_each_producer(states: ProducerStates) -> None:
    for sequence in range(3):
        append(states, batch(sequence, txn=True))
    append(states, batch(0, 4, pid=7, epoch=5))
    states.take_snapshot()
    again = reloaded(states, 7)
    assert again.map_end_offset == 7
    assert again.first_unstable_offset == 0
    assert append(again, batch(2, txn=True)) == 2
    assert append(again, batch(0, 4, pid=7, epoch=5)) == 3
    assert refusal(again, batch(1, txn=True)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(again, batch(3, txn=True)) == 7


def test_open_transactions_of_a_snapshot_are_in_order_of_their_offsets(
    states: ProducerStates,
) -> None:
    states.update(batch(0, pid=1, txn=True), 50)
    states.update(batch(0, pid=2, txn=True), 20)
    states.map_end_offset = 60
    states.take_snapshot()
    assert reloaded(states, 60).first_unstable_offset == 20


def test_reloading_takes_the_newest_snapshot_not_after_the_logs_end(
    states: ProducerStates,
) -> None:
    for sequence in range(4):
        append(states, batch(sequence))
        states.take_snapshot()
    again = reloaded(states, 3)
    assert again.map_end_offset == 3
    assert append(again, batch(3)) == 3
    assert snapshot_names(states) == [f"{offset:020d}.snapshot" for offset in (1, 2, 3)]


def test_truncating_in_memory_reloads_too(states: ProducerStates) -> None:
    append(states, batch(0, 2))
    states.take_snapshot()
    append(states, batch(2, 2))
    states.truncate_and_reload(0, 3, NOW)
    assert states.map_end_offset == 2, "the caller replays from here"
    assert states.producers[PID].last_sequence == 1


def test_state_that_is_already_that_of_the_logs_end_stays(states: ProducerStates) -> None:
    append(states, batch(0, 2))
    states.truncate_and_reload(0, 2, NOW)
    assert states.producers[PID].last_sequence == 1


def test_expired_producers_are_not_loaded(states: ProducerStates) -> None:
    append(states, batch(0))
    states.take_snapshot()
    assert not reloaded(states, 1, BASE_TIME + EXPIRATION_MS).producers


def test_a_snapshot_that_cannot_be_read_gives_way_to_an_older_one(
    states: ProducerStates, caplog: pytest.LogCaptureFixture
) -> None:
    append(states, batch(0))
    states.take_snapshot()
    append(states, batch(1))
    newest = states.take_snapshot()
    assert newest is not None
    newest.write_bytes(b"garbled")
    with caplog.at_level(logging.WARNING):
        again = reloaded(states, 2)
    assert again.map_end_offset == 1
    assert not newest.exists()
    assert newest.name in caplog.text


def test_without_any_snapshot_replay_begins_at_the_logs_start(states: ProducerStates) -> None:
    append(states, batch(0))
    states.truncate_and_reload(10, 20, NOW)
    assert states.map_end_offset == 10
    assert not states.producers


def test_snapshots_at_or_before_the_logs_start_are_dropped(states: ProducerStates) -> None:
    for sequence in range(3):
        append(states, batch(sequence))
        states.take_snapshot()
    again = ProducerStates(Files(), states.directory, expiration_ms=EXPIRATION_MS)
    again.truncate_and_reload(2, 3, NOW)
    assert snapshot_names(states) == ["00000000000000000003.snapshot"]
    assert again.map_end_offset == 3


def test_a_moved_log_start_keeps_the_producers(states: ProducerStates) -> None:
    append(states, batch(0, 2))
    states.on_log_start_offset_incremented(1)
    assert states.map_end_offset == 2
    assert append(states, batch(0, 2)) == 0
    states.on_log_start_offset_incremented(50)
    assert states.map_end_offset == 50


def test_starting_over_clears_everything(states: ProducerStates) -> None:
    append(states, batch(0, txn=True))
    states.take_snapshot()
    states.truncate_fully_and_start_at(100)
    assert not states.producers
    assert states.first_unstable_offset is None
    assert states.map_end_offset == 100
    assert snapshot_names(states) == []
    states.take_snapshot()
    assert snapshot_names(states) == ["00000000000000000100.snapshot"]


@pytest.mark.parametrize(
    ("snapshots", "segments", "kept"),
    [
        ([1, 2, 3, 5], [0, 2, 4], [2, 5]),  # 5 was written by a clean shutdown
        ([1, 2, 3], [0, 2, 4], [2]),
        ([2, 5, 6], [0, 2], [2, 6]),
        ([2], [2], [2]),
        ([1, 7], [], [7]),
    ],
)
def test_snapshots_without_a_segment_are_removed_but_for_the_last(
    tmp_path: Path, snapshots: list[int], segments: list[int], kept: list[int]
) -> None:
    for offset in snapshots:
        (tmp_path / f"{offset:020d}.snapshot").write_bytes(b"")
    states = ProducerStates(Files(), tmp_path, expiration_ms=EXPIRATION_MS)
    states.remove_stray_snapshots(segments)
    assert snapshot_names(states) == [f"{offset:020d}.snapshot" for offset in kept]
    assert states.latest_snapshot_offset == kept[-1]


def test_snapshots_go_with_their_segments(states: ProducerStates) -> None:
    for offset in (1, 2, 3, 4):
        states.map_end_offset = offset
        states.take_snapshot()
    states.delete_snapshot(1)
    states.delete_snapshot(3)
    states.delete_snapshot(3)
    [rename] = states.release_snapshots([4, 5])
    assert states.release_snapshots([4]) == []
    target = rename.run()
    assert target == states.directory / "00000000000000000004.snapshot.deleted"
    assert snapshot_names(states) == ["00000000000000000002.snapshot", target.name]
    assert states.latest_snapshot_offset == 2


def test_a_snapshot_that_somebody_else_deleted_need_not_be_renamed(states: ProducerStates) -> None:
    append(states, batch(0))
    path = states.take_snapshot()
    assert path is not None
    path.unlink()
    [rename] = states.release_snapshots([1])
    rename.run()
    assert snapshot_names(states) == []


def test_other_files_of_the_log_are_no_snapshots(tmp_path: Path) -> None:
    for name in ("00000000000000000001.log", "00000000000000000002.snapshot.deleted", "x.snapshot"):
        (tmp_path / name).write_bytes(b"")
    assert ProducerStates(Files(), tmp_path, expiration_ms=1).latest_snapshot_offset is None


# --- any history


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 6), st.booleans()), max_size=40))
def test_every_record_of_a_retrying_producer_is_stored_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int, bool]]
) -> None:
    """A producer sends batches, repeats any of its last five, and the broker restarts at will."""
    states = ProducerStates(Files(), tmp_path_factory.mktemp("log"), expiration_ms=EXPIRATION_MS)
    sent: list[tuple[BatchHeader, int]] = []
    sequence = MAX_SEQUENCE - 10
    for count, back, restart in steps:
        if restart:
            states.take_snapshot()
            states = reloaded(states, states.map_end_offset)
            sent = sent[-1:]  # a snapshot holds one batch per producer
        if 1 <= back <= len(sent) and back <= 5:
            header, base_offset = sent[-back]
            assert append(states, header) == base_offset
        else:
            header = batch(sequence, count)
            expected = states.map_end_offset
            assert append(states, header) == expected
            sent.append((header, expected))
            sequence = (sequence + count) & MAX_SEQUENCE


counts = st.sampled_from([1, 2, 5, 2**30, MAX_SEQUENCE])  # compressed batches may claim any count


@settings(deadline=None)
@given(
    appended=st.lists(counts, max_size=7),
    count=counts,
    skipped=st.sampled_from([0, 0, 0, 1, -1]),
    epochs=st.tuples(st.integers(-1, 1), st.integers(-1, 1)),
    transactions=st.tuples(st.booleans(), st.booleans()),
)
@example([5, 6, MAX_SEQUENCE - 5], 6, 0, (0, 0), (False, False))
@example([MAX_SEQUENCE, 1], MAX_SEQUENCE, 0, (0, 0), (False, False))
def test_a_batch_that_continues_its_producer_passes_every_check_and_is_no_duplicate(
    appended: list[int],
    count: int,
    skipped: int,
    epochs: tuple[int, int],
    transactions: tuple[bool, bool],
) -> None:
    entry = ProducerEntry(PID, epochs[0], BASE_TIME)
    sequence, offset = 0, 0
    for size in appended:
        entry.add(claiming(batch(0), sequence, size), offset)
        sequence, offset = increment_sequence(sequence, size), offset + size
    if transactions[0]:
        entry.txn_first_offset = 0
    following = claiming(batch(0, epoch=epochs[1], txn=transactions[1]), sequence + skipped, count)
    if entry.continues_with(following):
        assert entry.find_duplicate(following) is None
        entry.check(following, offset, check_sequence=True)
        assert entry.has_open_transaction == following.is_transactional
    else:
        is_ordinary = epochs == (0, 0) and not any(transactions) and not skipped
        assert not is_ordinary or sum(appended) > MAX_SEQUENCE or not appended


def claiming(header: BatchHeader, sequence: int, count: int) -> BatchHeader:
    """The header with another sequence and number of records."""
    return header._replace(
        base_sequence=sequence & MAX_SEQUENCE, record_count=count, last_offset_delta=count - 1
    )


def test_the_batch_after_the_first_continues_its_producer(states: ProducerStates) -> None:
    assert not states.continues_with(batch(0))
    append(states, batch(0))
    assert states.continues_with(batch(1))
    assert not states.continues_with(batch(0))
    assert not states.continues_with(batch(1, txn=True))
    assert not states.continues_with(batch(1, epoch=1))
    assert not states.continues_with(batch(1, pid=PID + 1))


@pytest.mark.parametrize(("pid", "continues"), [(PID, False), (PID + 1, True)])
def test_a_batch_whose_transaction_was_refused_holds_up_only_its_own_producer(
    states: ProducerStates, pid: int, continues: bool
) -> None:
    append(states, batch(0))
    states.begin_verification(pid, 0, 0, NOW, is_v2=False)
    assert states.continues_with(batch(1)) is continues
