"""`odradek verify`: open, hanging and decided transactions, indexes, markers and snapshots."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from odradek.coordinator.transactions.codec import TransactionCodec
from odradek.coordinator.transactions.states import TransactionState
from odradek.coordinator.transactions.transaction import Transaction, record_of
from odradek.protocol.batch_header import (
    HEADER_BYTES,
    LOG_OVERHEAD,
    pack_header,
    read_header,
    stamp_crc,
)
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.control import ControlRecordType, control_key, end_txn_value
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.producer_entry import ProducerEntry
from odradek.storage.producer_snapshot import encode_snapshot
from odradek.storage.txn_index import AbortedTransaction, rewrite_aborted
from tests.support.log_box import NOW_MS, batch_of, put
from tests.support.transaction_directories import (
    STATE_TOPIC,
    change_entry,
    end,
    stopped_directory,
    transactional,
)
from tests.tools.test_verify import Verdict, verdict

ONGOING = TransactionState.ONGOING
WHERE = frozenset({("orders", 0)})


def transaction(
    state: TransactionState = ONGOING, *, epoch: int = 0, producer_id: int = 9, **fields: object
) -> Transaction:
    return Transaction(
        transactional_id="pay",
        producer_id=producer_id,
        producer_epoch=epoch,
        timeout_ms=60_000,
        state=state,
        partitions=fields.pop("partitions", WHERE),  # type: ignore[arg-type] # as it is given
        start_ms=NOW_MS,
        last_update_ms=NOW_MS,
        **fields,  # type: ignore[arg-type] # the same
    )


def found_in(data: Path, **options: bool) -> Verdict:
    """What is found, apart from the missing files beside the metadata log."""
    found = verdict(data, **options)
    for lines in (found.problems, found.notes):
        lines[:] = [each for each in lines if "missing" not in str(each["what"]).split(";")[0]]
    return found


def open_one(log: PartitionLog) -> None:
    put(log, b"before")
    transactional(log, (9, 0, 0))
    transactional(log, (9, 0, 1), NOW_MS + 5000)


# --- open transactions and their coordinator


def test_an_open_transaction_that_its_coordinator_has_is_no_problem(tmp_path: Path) -> None:
    data = stopped_directory(tmp_path, open_one, [transaction()])
    found = found_in(data, deep=True)
    assert found.problems == []
    [note] = found.notes
    assert note["path"] == str(data / "orders-0")
    assert str(note["what"]).startswith(
        "the transaction of producer id 9, epoch 0, is open from offset 1 on, "
        "since 2023-11-14 22:13:20.000 UTC (for "
    )
    assert str(note["what"]).endswith(
        "last written 2023-11-14 22:13:25.000 UTC; transactional id pay has it, Ongoing"
    )
    assert note["atStart"] == (
        "it stays open, until its producer ends it or its timeout of 60000 ms is over"
    )


COMMAND = (
    "kafka-transactions.sh --bootstrap-server HOST:PORT abort --topic orders --partition 0"
    " --start-offset 1"
)
HANGING: dict[str, tuple[list[Transaction | str], str]] = {
    "nobody has the producer": ([], "no transactional id has this producer id"),
    "it has ended for its coordinator": (
        [transaction(), transaction(TransactionState.COMPLETE_ABORT, partitions=frozenset())],
        "transactional id pay has this producer id with epoch 0, is CompleteAbort",
    ),
    "its coordinator has other partitions": (
        [transaction(partitions=frozenset({("orders", 1)}))],
        "transactional id pay has this producer id with epoch 0, is Ongoing",
    ),
    "the transactional id has expired": ([transaction(), "pay"], "no transactional id has"),
    "another producer id has been given out": ([transaction(producer_id=10)], "no transactional"),
}


@pytest.mark.parametrize("case", HANGING)
def test_a_transaction_that_nobody_will_end_is_hanging(tmp_path: Path, case: str) -> None:
    states, why = HANGING[case]
    found = found_in(stopped_directory(tmp_path, open_one, states))
    assert found.code == 1
    [problem] = [each for each in found.problems if "hanging" in str(each["what"])]
    assert f"it is hanging: {why}" in str(problem["what"])
    assert "do not get past offset 1" in str(problem["what"])
    assert problem["atStart"] == f"it stays open. End it with: {COMMAND}"


def test_a_transaction_hangs_if_its_coordinator_has_an_older_epoch(tmp_path: Path) -> None:
    def write(log: PartitionLog) -> None:
        transactional(log, (9, 3, 0))

    def found(epoch: int, state: TransactionState) -> Verdict:
        path = tmp_path / f"{epoch}-{state.name}"
        return found_in(stopped_directory(path, write, [transaction(state, epoch=epoch)]))

    assert found(2, ONGOING).says("orders-0", "it is hanging", "with epoch 2")
    # The coordinator raises the epoch when it decides, and its markers have the new one.
    assert found(4, TransactionState.PREPARE_ABORT).problems == []
    assert found(4, ONGOING).problems == []


def test_without_the_coordinators_log_nothing_is_called_hanging(tmp_path: Path) -> None:
    data = stopped_directory(tmp_path, open_one)
    for path in (data / f"{STATE_TOPIC}-0").iterdir():
        path.unlink()
    (data / f"{STATE_TOPIC}-0").rmdir()
    found = found_in(data)
    assert found.notes_that("orders-0", "whether a coordinator has it is not known")
    assert not [each for each in found.problems if "hanging" in str(each["what"])]


def test_a_topic_of_transactions_that_was_never_created_knows_none(tmp_path: Path) -> None:
    data = stopped_directory(tmp_path, open_one, topics=["orders"])
    assert found_in(data).says("orders-0", "it is hanging: no transactional id")


def test_an_undecodable_state_may_be_the_coordinators(tmp_path: Path) -> None:
    data = stopped_directory(tmp_path, open_one, [transaction()])
    path = data / f"{STATE_TOPIC}-0" / f"{0:020}.log"
    path.write_bytes(build_batch([Record(b"\0\0\0\3pay", b"\0\1", NOW_MS)]))
    found = found_in(data)
    assert found.says(path.name, "Error at offset 0")
    assert found.notes_that("orders-0", "whether a coordinator has it is not known")


def test_a_decision_without_its_marker_is_carried_out_by_the_next_start(tmp_path: Path) -> None:
    decided = transaction(TransactionState.PREPARE_COMMIT)
    found = found_in(stopped_directory(tmp_path, open_one, [transaction(), decided]))
    assert found.problems == []
    assert found.notes_that("orders-0", "pay has it, PrepareCommit", "its marker is written")
    assert found.notes_that(
        f"{STATE_TOPIC}-0", "pay is PrepareCommit", "missing in orders-0", "it is completed"
    )


def test_a_decision_with_all_its_markers_is_completed_by_the_next_start(tmp_path: Path) -> None:
    def write(log: PartitionLog) -> None:
        open_one(log)
        end(log, 9, 0, commit=True)

    decided = transaction(TransactionState.PREPARE_COMMIT)
    found = found_in(stopped_directory(tmp_path, write, [transaction(), decided]))
    assert found.problems == []
    [note] = found.notes
    assert "not completed; all have it" in str(note["what"])


def test_partitions_of_a_deleted_topic_are_named(tmp_path: Path) -> None:
    gone = transaction(partitions=WHERE | {("gone", 0), ("gone", 1)})
    found = found_in(stopped_directory(tmp_path, open_one, [gone]))
    assert found.problems == []
    assert found.notes_that(
        f"{STATE_TOPIC}-0",
        "pay is Ongoing, with partitions that do not exist: gone-0, gone-1",
        "forceTerminateTransaction --transactionalId pay",
    )


# --- the decisions of one transactional id


PREPARE_COMMIT, PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
COMPLETE_ABORT = TransactionState.COMPLETE_ABORT
CONTRADICTIONS: list[tuple[list[Transaction | str], str]] = [
    (
        [transaction(PREPARE_COMMIT), transaction(COMPLETE_ABORT)],
        "offset 1: transactional id pay: CompleteAbort follows PrepareCommit",
    ),
    ([transaction(PREPARE_COMMIT), transaction(PREPARE_ABORT)], "PrepareAbort follows Prepare"),
    ([transaction(PREPARE_COMMIT), transaction()], "Ongoing follows PrepareCommit"),
    ([transaction(epoch=3), transaction(epoch=2)], "producer epoch 2 follows 3"),
]


@pytest.mark.parametrize(("states", "words"), CONTRADICTIONS)
def test_decisions_that_contradict_each_other_are_told(
    tmp_path: Path, states: list[Transaction | str], words: str
) -> None:
    found = found_in(stopped_directory(tmp_path, lambda log: put(log, b"v"), states))
    assert found.says(f"{STATE_TOPIC}-0", words), found


def test_a_decision_that_was_written_twice_is_noted(tmp_path: Path) -> None:
    states = [transaction(), transaction(PREPARE_ABORT), transaction(PREPARE_ABORT)]
    found = found_in(stopped_directory(tmp_path, open_one, states))
    assert found.problems == []
    assert found.notes_that(f"{STATE_TOPIC}-0", "written twice", "PrepareAbort follows Prepare")


def test_a_tombstone_ends_the_history_of_a_transactional_id(tmp_path: Path) -> None:
    states = [transaction(COMPLETE_ABORT), "pay", transaction(PREPARE_COMMIT)]
    found = found_in(stopped_directory(tmp_path, lambda log: put(log, b"v"), states))
    assert found.problems == []


def test_transactional_ids_may_hash_to_another_partition_after_some_were_added(
    tmp_path: Path,
) -> None:
    """`ab` hashes to partition 1 of 2, and to partition 0 of 3."""
    before = replace(transaction(COMPLETE_ABORT), transactional_id="ab", producer_id=7)
    now = replace(transaction(), transactional_id="ab")
    data = stopped_directory(tmp_path, open_one, [now], state_partitions=3)
    record = Record(*TransactionCodec().encode(record_of(before, 2)), NOW_MS)
    (data / f"{STATE_TOPIC}-1" / f"{0:020}.log").write_bytes(build_batch([record]))
    found = found_in(data)
    assert found.problems == []
    assert found.notes_that(f"{STATE_TOPIC}-1", "id ab hashes to partition 0", "odradek ends")
    assert found.notes_that("orders-0", "transactional id ab has it, Ongoing")
    assert len(found.notes) == 2


# --- transaction indexes


def aborted_twice(log: PartitionLog) -> None:
    """Producer 9 aborts 1 to 3, while 8 is open from 2 on; 8 aborts 2 to 4."""
    put(log, b"before")
    transactional(log, (9, 0, 0))
    transactional(log, (8, 0, 0))
    end(log, 9, 0, commit=False)
    end(log, 8, 0, commit=False)


INDEX_DAMAGES: list[tuple[int, int, int, str]] = [
    (0, 1, 7, "producer 7 has no abort marker at 3"),
    (0, 2, 0, "the transaction of producer 9 up to 3 has the first offset 0, in the log 1"),
    (0, 2, 2, "has the first offset 2, in the log 1"),
    (0, 4, 4, "producer 9 up to 3 has the last stable offset 4, in the log 2"),
    (0, 4, 1, "has the last stable offset 1, in the log 2"),
    (1, 3, 9, "offset 9 is outside the segment"),
    (0, 0, 1, "entries of unknown version 1"),
]


@pytest.mark.parametrize(("slot", "field", "value", "words"), INDEX_DAMAGES)
def test_entries_of_a_transaction_index_must_match_the_markers(
    tmp_path: Path, slot: int, field: int, value: int, words: str
) -> None:
    data = stopped_directory(tmp_path, aborted_twice)
    assert found_in(data).problems == []
    path = data / "orders-0" / f"{0:020}.txnindex"
    change_entry(path, slot, field, value)
    assert found_in(data).says(path.name, words), found_in(data)


def test_an_entry_of_a_transaction_that_was_committed_is_told(tmp_path: Path) -> None:
    def write(log: PartitionLog) -> None:
        transactional(log, (9, 0, 0))
        end(log, 9, 0, commit=True)

    data = stopped_directory(tmp_path, write)
    path = data / "orders-0" / f"{0:020}.txnindex"
    rewrite_aborted(Files(), path, [AbortedTransaction(9, 0, 1, 2)])
    assert found_in(data).says(path.name, "producer 9 has no abort marker at 1")


def test_what_began_before_the_log_does_is_known_from_the_snapshot(tmp_path: Path) -> None:
    def write(log: PartitionLog) -> None:
        for sequence in range(2):
            transactional(log, (9, 0, sequence))
        transactional(log, (8, 0, 0))
        end(log, 9, 0, commit=False)

    size = len(marker_with())  # a batch each
    states = [transaction(producer_id=8)]
    data = stopped_directory(tmp_path, write, states, segment_bytes=size, policy="delete")
    assert found_in(data).problems == []
    for path in (data / "orders-0").glob(f"{0:020}.*"):
        path.unlink()  # as retention does
    found = found_in(data)
    assert found.problems == [], found
    assert found.notes_that("orders-0", "producer id 8", "from offset 2 on")
    for path in (data / "orders-0").glob(f"{1:020}.*"):
        path.unlink()
    assert found_in(data).problems == []
    for path in (data / "orders-0").glob(f"{2:020}.*"):
        path.unlink()
    found = found_in(data)
    assert found.problems == [], found
    assert found.notes_that("orders-0", "producer id 8", "from offset 2 on, last written")


# --- batches and markers


def marker_with(
    kind: ControlRecordType = ControlRecordType.ABORT,
    *,
    count: int = 1,
    epoch: int = 0,
    value: bytes = end_txn_value(0),
    transactional: bool = True,
    producer_id: int = 9,
    sequence: int = -1,
    offset: int = 3,
) -> bytes:
    return bytes(
        build_batch(
            [Record(control_key(kind), value, NOW_MS)] * count,
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=transactional,
            is_control=True,
        )
    )


def test_a_log_may_begin_with_a_marker_that_the_cleaner_has_emptied(tmp_path: Path) -> None:
    data = stopped_directory(tmp_path, lambda log: end(log, 9, 0, commit=True), policy="compact")
    path = data / "orders-0" / f"{0:020}.log"
    path.write_bytes(emptied(path.read_bytes()))
    assert found_in(data).problems == []


def emptied(batch: bytes) -> bytes:
    """The header alone, as the cleaner leaves it."""
    length = HEADER_BYTES - LOG_OVERHEAD
    header = read_header(batch)._replace(batch_length=length, record_count=0)
    data = bytearray(pack_header(header))
    stamp_crc(data)
    return bytes(data)


def after_it(value: bytes, *, epoch: int = 1, transactional: bool = True) -> bytes:
    producer = (9, epoch, 2)
    return batch_of(value, producer=producer, is_transactional=transactional, base_offset=3)


MALFORMED: dict[str, tuple[bytes, str]] = {
    "two records": (marker_with(count=2), "a marker with more than one record"),
    "no flag": (marker_with(transactional=False), "a marker with no transactional bit"),
    "no producer": (marker_with(producer_id=-1, epoch=-1), "a marker with no producer"),
    "a sequence": (marker_with(sequence=4), "a marker with sequence 4"),
    "another kind": (
        marker_with(ControlRecordType.LEADER_CHANGE),
        "a LEADER_CHANGE record in a topic's log",
    ),
    "no value": (marker_with(value=b""), "the marker at offset 3 cannot be read"),
    "a version below 0": (marker_with(value=b"\xff\xff" + bytes(4)), "at offset 3 cannot be read"),
    "a cut value": (marker_with(value=b"\0\0\0"), "the marker at offset 3 cannot be read"),
    "an older epoch": (marker_with(), "with epoch 0 ends a transaction of epoch 1"),
    "a late batch": (after_it(b"t", epoch=0), "writes with epoch 0 after 1"),
    "a plain batch": (
        after_it(b"t", transactional=False),
        "producer 9 writes outside its transaction, which is open since 1",
    ),
    "a batch of nobody": (
        batch_of(b"t", is_transactional=True, base_offset=3),
        "a transactional batch without a producer",
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_what_breaks_the_rules_of_transactions_is_told(tmp_path: Path, case: str) -> None:
    def write(log: PartitionLog) -> None:
        put(log, b"before")
        for sequence in range(2):
            transactional(log, (9, 1, sequence))

    data = stopped_directory(tmp_path, write, [transaction(epoch=1)])
    batch, words = MALFORMED[case]
    path = data / "orders-0" / f"{0:020}.log"
    path.write_bytes(path.read_bytes() + batch)
    assert found_in(data).says("orders-0", words), found_in(data)


def test_an_older_coordinator_epoch_is_noted(tmp_path: Path) -> None:
    data = stopped_directory(tmp_path, lambda log: end(log, 9, 0, commit=True, coordinator_epoch=5))
    path = data / "orders-0" / f"{0:020}.log"
    path.write_bytes(path.read_bytes() + marker_with(value=end_txn_value(4), offset=1))
    found = found_in(data)
    assert found.notes_that("orders-0", "offset 1", "coordinator epoch 4 came after 5")


# --- producer snapshots


def snapshot_with(first_offset: int) -> bytes:
    return encode_snapshot([ProducerEntry(9, 0, NOW_MS, txn_first_offset=first_offset)])


SNAPSHOTS: list[tuple[Callable[[], bytes], str]] = [
    (lambda: snapshot_with(-1), "the snapshot has no open transaction, the log a transaction open"),
    (lambda: snapshot_with(2), "has a transaction open from 2 on, the log a transaction open from"),
    (lambda: encode_snapshot([]), "producer 9: the snapshot has no open transaction"),
]


@pytest.mark.parametrize(("make", "words"), SNAPSHOTS)
def test_a_snapshot_must_have_the_open_transactions_of_the_log(
    tmp_path: Path, make: Callable[[], bytes], words: str
) -> None:
    data = stopped_directory(tmp_path, open_one, [transaction()])
    path = data / "orders-0" / f"{3:020}.snapshot"
    path.write_bytes(make())
    found = found_in(data)
    assert found.says(path.name, words), found
    assert len(found.problems) == 1


def test_a_log_that_was_cleaned_may_lack_what_its_snapshots_have(tmp_path: Path) -> None:
    def write(log: PartitionLog) -> None:
        for sequence in range(2):
            transactional(log, (9, 0, sequence))
        end(log, 9, 0, commit=False)
        put(log, b"after")
        transactional(log, (8, 0, 0))

    size = len(marker_with())  # a batch each
    states = [transaction(producer_id=8)]
    data = stopped_directory(tmp_path, write, states, segment_bytes=size, policy="compact")
    # The cleaner leaves nothing of an aborted transaction.
    for base in (0, 1, 2):
        for path in (data / "orders-0").glob(f"{base:020}.*"):
            if path.suffix in (".log", ".txnindex"):
                path.write_bytes(b"") if base == 0 and path.suffix == ".log" else path.unlink()
    found = found_in(data)
    wrong = [each for each in found.problems if "index" not in str(each["path"])]
    assert wrong == [], found
    assert found.notes_that("orders-0", "producer id 8", "from offset 4 on")
