"""Offsets that a transaction has written: pending until its marker, then counted or gone."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.any_group.offsets import GroupTopicPartition, Offsets
from odradek.coordinator.runtime.outcome import JournalRecord, ReplayContext
from odradek.coordinator.runtime.record_codec import CoordinatorRecordCodec
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.consumer_offsets import (
    RECORD_TYPES,
    OffsetCommitKey,
    OffsetCommitValue,
)
from odradek.protocol.records.control import ControlRecordType, control_key, end_txn_value
from odradek.storage.log import AppendOrigin
from tests.support.groups import GROUP, TOPIC, WALL_AHEAD_MS, Groups
from tests.support.memory_log import MemoryLog

DAY = 24 * 60 * 60_000
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT
CODEC = CoordinatorRecordCodec(RECORD_TYPES)
PRODUCER = 9


def commit_record(offset: int, partition: int = 0, topic: str = TOPIC[0]) -> JournalRecord:
    key = OffsetCommitKey(group=GROUP, topic=topic, partition=partition)
    value = OffsetCommitValue(
        offset=offset, metadata="m", commit_timestamp=WALL_AHEAD_MS, topic_id=TOPIC[1]
    )
    return JournalRecord(value, 4, key)


def write(log: MemoryLog, *records: JournalRecord, producer_id: int = PRODUCER) -> None:
    """What a transaction's TxnOffsetCommit leaves in the log."""
    batch = build_batch(
        [Record(*CODEC.encode(record), WALL_AHEAD_MS) for record in records],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=-1,
        is_transactional=producer_id >= 0,
    )
    log.append(batch, now_ms=WALL_AHEAD_MS, origin=AppendOrigin.COORDINATOR)


def end(log: MemoryLog, kind: ControlRecordType, producer_id: int = PRODUCER) -> None:
    marker = Record(control_key(kind), end_txn_value(0), WALL_AHEAD_MS)
    batch = build_batch(
        [marker], producer_id=producer_id, producer_epoch=0, is_transactional=True, is_control=True
    )
    log.append(batch, now_ms=WALL_AHEAD_MS, origin=AppendOrigin.COORDINATOR)


def log_of() -> MemoryLog:
    return MemoryLog("__consumer_offsets", 0)


def fetched(groups: Groups, *partitions: int, stable: bool) -> list[tuple[int, int]]:
    wanted = OffsetFetchRequestTopic(name=TOPIC[0], partition_indexes=list(partitions))
    group = OffsetFetchRequestGroup(group_id=GROUP, topics=[wanted])
    (found,) = groups.coordinator.offsets.fetch(group, [wanted], stable=stable)
    return [(one.committed_offset, one.error_code) for one in found.partitions]


def test_an_open_transaction_makes_its_partitions_unstable_for_those_who_ask() -> None:
    log = log_of()
    write(log, commit_record(5), commit_record(6, 1), producer_id=-1)
    write(log, commit_record(50), commit_record(52, 2))
    groups = Groups(logs=[log])
    assert fetched(groups, 0, 1, 2, stable=False) == [(5, 0), (6, 0), (-1, 0)]
    assert fetched(groups, 0, 1, 2, stable=True) == [(-1, UNSTABLE), (6, 0), (-1, UNSTABLE)]
    everything = OffsetFetchRequestGroup(group_id=GROUP, topics=None)
    (topic,) = groups.coordinator.offsets.fetch(everything, None, stable=True)
    assert [(one.partition_index, one.error_code) for one in topic.partitions] == [
        (0, UNSTABLE),
        (1, 0),
    ]


@pytest.mark.parametrize(
    ("kind", "offset"), [(ControlRecordType.COMMIT, 50), (ControlRecordType.ABORT, 5)]
)
def test_the_marker_makes_them_count_or_forgets_them(kind: ControlRecordType, offset: int) -> None:
    log = log_of()
    write(log, commit_record(5), producer_id=-1)
    write(log, commit_record(50))
    end(log, kind, producer_id=PRODUCER + 1)
    assert fetched(Groups(logs=[log]), 0, stable=True) == [(-1, UNSTABLE)]
    end(log, kind)
    assert fetched(Groups(logs=[log]), 0, stable=True) == [(offset, 0)]


def test_a_transaction_that_ends_late_does_not_undo_a_later_plain_commit() -> None:
    log = log_of()
    write(log, commit_record(50), commit_record(51, 1))
    write(log, commit_record(5), producer_id=-1)
    end(log, ControlRecordType.COMMIT)
    assert fetched(Groups(logs=[log]), 0, 1, stable=True) == [(5, 0), (51, 0)]


def test_a_partition_stays_unstable_until_the_last_of_its_transactions_ends() -> None:
    log = log_of()
    write(log, commit_record(50), producer_id=1)
    write(log, commit_record(60), producer_id=2)
    end(log, ControlRecordType.COMMIT, 2)
    assert fetched(Groups(logs=[log]), 0, stable=True) == [(-1, UNSTABLE)]
    end(log, ControlRecordType.COMMIT, 1)
    # What lies later in the log is the newer, whichever ended last.
    assert fetched(Groups(logs=[log]), 0, stable=True) == [(60, 0)]


def test_deleting_the_group_takes_pending_offsets_with_it() -> None:
    log = log_of()
    write(log, commit_record(50))
    groups = Groups(logs=[log])
    (result,) = groups.coordinator.admin.delete([GROUP])
    assert result.error_code == ErrorCode.NONE
    end(log, ControlRecordType.COMMIT)
    after = Groups(logs=[log])
    assert fetched(after, 0, stable=True) == [(-1, 0)]
    assert GROUP not in after.coordinator.shards.of(GROUP).state.groups


def test_deleting_a_topic_takes_pending_offsets_with_it() -> None:
    log = log_of()
    write(log, commit_record(5), commit_record(7, topic="other"), producer_id=-1)
    write(log, commit_record(50), commit_record(51, 1))
    Groups(logs=[log]).coordinator.retention.on_topics_deleted([TOPIC])
    end(log, ControlRecordType.COMMIT)
    groups = Groups(logs=[log])
    assert fetched(groups, 0, 1, stable=True) == [(-1, 0), (-1, 0)]
    assert groups.committed("other") == 7


def test_an_open_transaction_keeps_the_group_and_the_offset_it_would_replace() -> None:
    log = log_of()
    write(log, commit_record(5), commit_record(6, 1), producer_id=-1)
    write(log, commit_record(50))
    groups = Groups(logs=[log])
    groups.advance(8 * DAY)
    assert (groups.committed(), groups.committed(partition=1)) == (5, None)
    end(log, ControlRecordType.ABORT)
    groups = Groups(logs=[log])
    groups.advance(8 * DAY)
    assert groups.committed() is None
    assert GROUP not in groups.coordinator.shards.of(GROUP).state.groups


def test_a_group_with_nothing_but_an_open_transaction_stays() -> None:
    log = log_of()
    write(log, commit_record(50))
    groups = Groups(logs=[log])
    groups.advance(8 * DAY)
    assert groups.group().is_empty
    end(log, ControlRecordType.ABORT)
    groups = Groups(logs=[log])
    groups.advance(DAY)
    assert GROUP not in groups.coordinator.shards.of(GROUP).state.groups


# -- any history -----------------------------------------------------------------------------------

# (producer or -1, partition): a commit; (partition,): a tombstone; (producer, committed): an end.
PRODUCERS = st.integers(0, 2)
PARTITIONS = st.integers(0, 1)
EVENTS = st.one_of(
    st.tuples(st.just("commit"), st.integers(-1, 2), PARTITIONS),
    st.tuples(st.just("tombstone"), PARTITIONS, st.none()),
    st.tuples(st.just("end"), PRODUCERS, st.booleans()),
)
History = list[tuple[str, int, int | bool | None]]


def commits_since_tombstone(history: History, partition: int) -> Iterator[tuple[int, int]]:
    """(log offset, producer) of the commits that no tombstone has taken away."""
    for at, (kind, who, where) in enumerate(history):
        if (kind, where) == ("commit", partition) and (
            ("tombstone", partition, None) not in history[at:]
        ):
            yield at, who


def end_of(history: History, at: int, producer: int) -> bool | None:
    """How the transaction ended that a commit was part of; None: it is open."""
    ends = (how for kind, who, how in history[at:] if (kind, who) == ("end", producer))
    return next(ends, None)  # type: ignore[arg-type] # an end says how


@given(st.lists(EVENTS, max_size=25))
def test_any_history_leaves_what_its_commits_and_ends_say(history: History) -> None:
    offsets = Offsets()
    for at, (kind, who, where) in enumerate(history):
        if kind == "end":
            offsets.end_transaction(who, committed=bool(where))
            continue
        partition = where if kind == "commit" else who
        key = OffsetCommitKey(group=GROUP, topic="t", partition=int(partition or 0))
        value = OffsetCommitValue(offset=at, metadata="", commit_timestamp=0)
        context = ReplayContext(at, 0, who if kind == "commit" else -1)
        offsets.replay(key, value if kind == "commit" else None, context)
    known = offsets.of_group(GROUP).get("t", {})
    for partition in (0, 1):
        commits = list(commits_since_tombstone(history, partition))
        ends = {at: who < 0 or end_of(history, at, who) for at, who in commits}
        counted = [at for at, how in ends.items() if how is True]
        found = known[partition].offset if partition in known else None
        assert found == max(counted, default=None)
        assert offsets.is_pending(GroupTopicPartition(GROUP, "t", partition)) == (
            None in ends.values()
        )
