"""Decide, append, replay: what is in the log is what the state is made of."""

from dataclasses import dataclass, field
from typing import Annotated

import pytest

from odradek.coordinator.runtime import journal as journal_module
from odradek.coordinator.runtime.journal import Journal
from odradek.coordinator.runtime.outcome import JournalRecord, Outcome, ReplayContext
from odradek.coordinator.runtime.record_codec import CoordinatorRecordCodec, CorruptJournalError
from odradek.protocol.batch_header import read_header
from odradek.protocol.compression import CompressionType
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.legacy import build_message_set, read_entries
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.control import ControlRecordType, control_key, end_txn_value
from odradek.protocol.schema import IGNORABLE, Int32, Message, String, Struct, since
from odradek.storage.cleaning.cleaned_batch import empty_batch_of
from odradek.storage.log import AppendOrigin
from tests.support.memory_log import MemoryLog


class Name(Message, versions="0"):
    name: String


class Number(Message, versions="0"):
    number: Int32


CODEC = CoordinatorRecordCodec({0: (Name, Number)})


@dataclass
class Numbers:
    """A state machine: the last number of each name."""

    of: dict[str, int] = field(default_factory=dict)
    contexts: list[ReplayContext] = field(default_factory=list)
    ends: list[tuple[int, bool]] = field(default_factory=list)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        self.ends.append((producer_id, committed))

    def replay(self, record: JournalRecord, context: ReplayContext) -> None:
        assert isinstance(record.key, Name)
        self.contexts.append(context)
        if record.value is None:
            del self.of[record.key.name]
        else:
            assert isinstance(record.value, Number)
            self.of[record.key.name] = record.value.number


def put(name: str, number: int) -> JournalRecord:
    return JournalRecord(Number(number=number), 0, Name(name=name))


def gone(name: str) -> JournalRecord:
    return JournalRecord(None, key=Name(name=name))


def opened(log: MemoryLog) -> tuple[Journal, Numbers]:
    numbers = Numbers()
    return Journal(log, numbers, CODEC), numbers


def stored(log: MemoryLog, *records: JournalRecord, **header: object) -> None:
    """Put records into the log as somebody else's batch."""
    batch = build_batch([Record(*CODEC.encode(record), 5) for record in records], **header)
    log.append(batch, now_ms=5, origin=AppendOrigin.COORDINATOR)


def ended(log: MemoryLog, producer_id: int, kind: ControlRecordType) -> None:
    marker = Record(control_key(kind), end_txn_value(0), 5)
    batch = build_batch(
        [marker], producer_id=producer_id, producer_epoch=0, is_transactional=True, is_control=True
    )
    log.append(batch, now_ms=5, origin=AppendOrigin.COORDINATOR)


def test_a_commit_appends_one_batch_replays_it_and_returns_the_reply() -> None:
    log = MemoryLog()
    journal, numbers = opened(log)
    reply = journal.commit(Outcome(reply="done", records=(put("a", 1), put("b", 2))), 77)
    assert reply == "done"
    assert numbers.of == {"a": 1, "b": 2}
    assert numbers.contexts == [ReplayContext(0, 77), ReplayContext(1, 77)]
    assert [read_header(batch).record_count for batch in log.stored] == [2]


def test_an_outcome_without_records_appends_nothing() -> None:
    log = MemoryLog()
    journal, _ = opened(log)
    assert journal.commit(Outcome(reply=3), 0) == 3
    assert log.stored == []


def test_a_restart_replays_what_life_replayed() -> None:
    log = MemoryLog()
    journal, before = opened(log)
    journal.commit(Outcome(reply=None, records=(put("a", 1),)), 10)
    journal.commit(Outcome(reply=None, records=(put("a", 2), put("b", 3), gone("a"))), 20)
    _, after = opened(log)
    assert after == before


def test_a_failed_append_leaves_the_state_untouched() -> None:
    log = MemoryLog()
    journal, numbers = opened(log)
    log.fail_next = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full")
    with pytest.raises(ApiError, match="the disk is full"):
        journal.commit(Outcome(reply=None, records=(put("a", 1),)), 0)
    assert numbers.of == {}
    assert log.stored == []


def test_what_follows_a_commit_is_done_when_its_records_are_replayed() -> None:
    log = MemoryLog()
    journal, numbers = opened(log)
    seen: list[object] = []
    outcome = Outcome(
        reply=None,
        records=(put("a", 1),),
        then=(lambda: seen.append(dict(numbers.of)),),
        otherwise=seen.append,
    )
    journal.commit(outcome, 0)
    assert seen == [{"a": 1}]


def test_what_a_failed_append_means_to_the_clients_of_a_log_is_told_to_all() -> None:
    log = MemoryLog()
    told = {ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR}
    journal = Journal(log, Numbers(), CODEC, append_errors=told)
    seen: list[object] = []
    outcome = Outcome(
        reply=None,
        records=(put("a", 1),),
        then=(lambda: seen.append("then"),),
        otherwise=seen.append,
    )
    log.fail_next = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full")
    with pytest.raises(ApiError, match="NOT_COORDINATOR: the disk is full"):
        journal.commit(outcome, 0)
    log.fail_next = RuntimeError("a fault of the program")
    with pytest.raises(RuntimeError):
        journal.commit(outcome, 0)
    assert seen == [ErrorCode.NOT_COORDINATOR, ErrorCode.UNKNOWN_SERVER_ERROR]


def test_a_record_that_cannot_be_encoded_is_refused_and_changes_nothing() -> None:
    log = MemoryLog()
    journal, numbers = opened(log)
    for record in (put("a", 1 << 40), put("n" * 40_000, 1)):
        with pytest.raises(ApiError, match="UNKNOWN_SERVER_ERROR"):
            journal.commit(Outcome(reply=None, records=(put("b", 1), record)), 0)
    assert numbers.of == {}
    assert log.stored == []


class Inner(Struct):
    first: Int32
    second: Annotated[Int32, since(1), IGNORABLE] = 0


class Whole(Message, versions="0-1"):
    number: Int32
    added: Annotated[Int32, since(1), IGNORABLE] = 0
    inner: list[Inner]


def test_what_the_version_of_a_value_cannot_carry_is_not_replayed_either() -> None:
    class Seen(Numbers):
        def replay(self, record: JournalRecord, context: ReplayContext) -> None:
            seen.append(record)

    seen: list[JournalRecord] = []
    log, codec = MemoryLog(), CoordinatorRecordCodec({0: (Name, Whole)})
    journal = Journal(log, Seen(), codec)
    for value in (
        Whole(number=1, inner=[]),
        Whole(number=2, added=7, inner=[]),
        Whole(number=3, inner=[Inner(first=1, second=7)]),
    ):
        records = [JournalRecord(value, version, Name(name="a")) for version in (0, 1)]
        journal.commit(Outcome(reply=None, records=tuple(records)), 0)
    in_life = seen.copy()
    seen.clear()
    Journal(log, Seen(), codec)
    assert seen == in_life
    assert [record.value for record in seen if record.value_version == 0] == [
        Whole(number=1, inner=[]),
        Whole(number=2, inner=[]),
        Whole(number=3, inner=[Inner(first=1)]),
    ]


def test_an_atomic_outcome_that_is_too_large_is_refused_whole() -> None:
    log = MemoryLog(max_message_bytes=300)
    journal, numbers = opened(log)
    records = tuple(put(f"name-{i}", i) for i in range(100))
    with pytest.raises(ApiError) as refusal:
        journal.commit(Outcome(reply=None, records=records), 0)
    assert refusal.value.code is ErrorCode.MESSAGE_TOO_LARGE
    assert numbers.of == {}


def test_a_batch_that_is_much_too_large_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    opened_journal, _ = opened(MemoryLog(max_message_bytes=300))
    monkeypatch.setattr(journal_module, "build_batch", None)
    with pytest.raises(ApiError, match="MESSAGE_TOO_LARGE"):
        opened_journal.commit(Outcome(reply=None, records=(put("n" * 400, 1),)), 0)


def test_an_outcome_that_need_not_be_atomic_is_split_into_batches_that_fit() -> None:
    log = MemoryLog(max_message_bytes=300)
    journal, numbers = opened(log)
    records = tuple(put(f"name-{i}", i) for i in range(100))
    journal.commit(Outcome(reply=None, records=records, atomic=False), 0)
    assert numbers.of == {f"name-{i}": i for i in range(100)}
    assert len(log.stored) > 1
    assert opened(log)[1].of == numbers.of


def test_one_record_that_is_too_large_for_a_batch_is_refused_even_when_not_atomic() -> None:
    journal, _ = opened(MemoryLog(max_message_bytes=300))
    with pytest.raises(ApiError, match="MESSAGE_TOO_LARGE"):
        journal.commit(Outcome(reply=None, records=(put("n" * 400, 1),), atomic=False), 0)


def test_records_of_unknown_type_stay_in_the_log_and_are_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = MemoryLog()
    strange = build_batch([Record(b"\x00\x63?", b"\x00\x00?", 0), Record(b"\x00\x63!", None, 0)])
    log.append(strange, now_ms=0, origin=AppendOrigin.COORDINATOR)
    stored(log, put("a", 1))
    _, numbers = opened(log)
    assert numbers.of == {"a": 1}
    assert [record.message for record in caplog.records] == [
        "__cluster_metadata-0: kept 2 records of unknown type or version"
    ]
    assert len(log.stored) == 2


def test_control_batches_outside_transactions_are_passed_over() -> None:
    log = MemoryLog()
    key = control_key(ControlRecordType.LEADER_CHANGE)
    batch = build_batch([Record(key, b"anything", 0)], is_control=True)
    log.append(batch, now_ms=0, origin=AppendOrigin.COORDINATOR)
    stored(log, put("a", 1))
    _, numbers = opened(log)
    assert [context.offset for context in numbers.contexts] == [1]


def test_records_of_a_transaction_come_under_their_producer_and_then_its_end() -> None:
    log = MemoryLog()
    stored(
        log, put("a", 1), producer_id=9, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    stored(log, put("b", 2))
    ended(log, 8, ControlRecordType.ABORT)
    ended(log, 9, ControlRecordType.COMMIT)
    _, numbers = opened(log)
    assert numbers.of == {"a": 1, "b": 2}
    assert numbers.contexts == [ReplayContext(0, 5, 9, 0), ReplayContext(1, 5)]
    assert numbers.ends == [(8, False), (9, True)]


def test_a_marker_that_ends_nothing_is_passed_over() -> None:
    log = MemoryLog()
    ended(log, 9, ControlRecordType.SNAPSHOT_HEADER)
    assert opened(log)[1].ends == []


def test_what_the_cleaner_has_left_of_a_log_is_replayed() -> None:
    log = MemoryLog()
    stored(log, put("a", 1))
    ended(log, 7, ControlRecordType.COMMIT)
    marker = read_header(log.stored[-1])._replace(last_offset_delta=48)
    log.stored[-1] = bytes(empty_batch_of(marker)[1])  # of offsets 1 to 49 no record is left
    stored(log, gone("a"), put("b", 3))
    _, numbers = opened(log)
    assert numbers.of == {"b": 3}
    assert [context.offset for context in numbers.contexts] == [0, 50, 51]


def test_a_journal_can_begin_in_the_middle_of_a_batch() -> None:
    log = MemoryLog()
    stored(log, put("a", 1), put("b", 2), put("c", 3))
    numbers = Numbers()
    Journal(log, numbers, CODEC, start_offset=1)
    assert numbers.of == {"b": 2, "c": 3}


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
@pytest.mark.parametrize("magic", [0, 1])
def test_records_of_old_message_formats_are_replayed(magic: int, codec: CompressionType) -> None:
    changes = [put("a", 1), put("b", 2), put("a", 3), gone("b")]
    encoded = [CODEC.encode(change) for change in changes]
    records = [Record(key, value, 7, (), n) for n, (key, value) in enumerate(encoded)]
    log = MemoryLog()
    messages = bytes(build_message_set(records, magic=magic, compression=codec))
    log.stored = [messages[e.position : e.position + e.size_bytes] for e in read_entries(messages)]
    numbers = Numbers()
    Journal(log, numbers, CODEC, start_offset=0)
    assert numbers.of == {"a": 3}
    assert [context.offset for context in numbers.contexts] == [0, 1, 2, 3]
    assert {context.timestamp_ms for context in numbers.contexts} == {7 if magic else -1}


def test_a_record_that_cannot_be_read_is_named_with_log_and_offset() -> None:
    log = MemoryLog()
    stored(log, put("a", 1))
    broken = build_batch([Record(b"\x00\x00\x00\x01a", b"\x00", 0)])
    log.append(broken, now_ms=0, origin=AppendOrigin.COORDINATOR)
    with pytest.raises(CorruptJournalError, match=r"__cluster_metadata-0, offset 1: "):
        opened(log)


def test_a_record_that_contradicts_those_before_it_is_named_with_log_and_offset() -> None:
    log = MemoryLog()
    stored(log, put("a", 1), gone("b"))
    with pytest.raises(CorruptJournalError, match=r"__cluster_metadata-0, offset 1: "):
        opened(log)


def test_a_decided_record_that_contradicts_the_state_is_named_with_log_and_offset() -> None:
    log = MemoryLog()
    journal, _ = opened(log)
    outcome = Outcome(reply=None, records=(put("a", 1), gone("b")))
    with pytest.raises(CorruptJournalError, match=r"__cluster_metadata-0, offset 1: "):
        journal.commit(outcome, 0)


def test_a_control_batch_that_cannot_be_read_is_named_with_its_log() -> None:
    log = MemoryLog()
    batch = build_batch(
        [Record(b"\x00", b"", 0)], producer_id=1, is_transactional=True, is_control=True
    )
    log.append(batch, now_ms=0, origin=AppendOrigin.COORDINATOR)
    with pytest.raises(CorruptJournalError, match="__cluster_metadata-0: the key of a control"):
        opened(log)
