"""What the cleaner leaves of a coordinator's log replays to the same state."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.coordinator.groups.group_state import GroupState
from odradek.coordinator.runtime.journal import Journal
from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.coordinator.runtime.producer import NO_PRODUCER, ProducerIdAndEpoch
from odradek.coordinator.runtime.record_codec import CoordinatorRecordCodec, RecordCodec
from odradek.coordinator.transactions.codec import TransactionCodec
from odradek.coordinator.transactions.states import TransactionState
from odradek.coordinator.transactions.table import TransactionTable
from odradek.coordinator.transactions.transaction import Transaction, record_of, tombstone_of
from odradek.protocol.records import consumer_offsets
from odradek.protocol.records.consumer_offsets import OffsetCommitKey, OffsetCommitValue
from odradek.storage.append import EndMarker
from odradek.storage.log import PartitionLog
from tests.support.crashing_files import QuickFiles
from tests.support.dirty_logs import clean, compacted
from tests.support.lengths import by_length
from tests.support.log_box import NOW_MS, LogBox

RETENTION_MS = 1000
PRODUCERS, KEYS = st.integers(-1, 2), st.integers(0, 2)
OFFSET_STEPS = st.one_of(
    st.tuples(st.just("commit"), PRODUCERS, KEYS),
    st.tuples(st.just("commit"), PRODUCERS, KEYS),
    st.tuples(st.just("tombstone"), st.none(), KEYS),
    st.tuples(st.sampled_from(["end", "abort"]), st.integers(0, 2), st.none()),
    st.tuples(st.just("clean"), st.sampled_from([0, RETENTION_MS + 1]), st.none()),
)
TABLE_STEPS = st.one_of(
    st.tuples(st.sampled_from(TransactionState), KEYS),
    st.tuples(st.just("tombstone"), KEYS),
    st.tuples(st.just("clean"), st.sampled_from([0, RETENTION_MS + 1])),
)
GROUP_CODEC = CoordinatorRecordCodec(consumer_offsets.RECORD_TYPES)
QUICK = settings(max_examples=by_length(10, 100), deadline=None)


class Compacted:
    """A journal on a compacted log of small segments."""

    def __init__(self, root: Path, new_state: Callable[[], Any], codec: RecordCodec) -> None:
        files = QuickFiles()
        box = LogBox(root, files=files, segment_bytes=300, delete_retention_ms=RETENTION_MS)
        box.config = compacted(box.config)
        self.log: PartitionLog = box.open()
        self._files = files
        self._new_state = new_state
        self._codec = codec
        self.state = new_state()
        self._journal = Journal(self.log, self.state, self._codec)
        self._now_ms = NOW_MS
        self._checkpoint = 0

    def write(self, record: JournalRecord, producer: ProducerIdAndEpoch = NO_PRODUCER) -> None:
        self._journal.commit(Outcome(reply=None, records=(record,)), self._now_ms, producer)

    def end(self, producer_id: int, *, commit: bool) -> None:
        self._journal.end_transaction(EndMarker(producer_id, 0, commit, 0, 0), self._now_ms)

    def clean(self, wait_ms: int) -> None:
        self._now_ms += wait_ms
        self.log.roll(self._now_ms)
        again = None if wait_ms else self._checkpoint
        result = clean(self.log, self._now_ms, checkpoint=again, files=self._files)
        self._checkpoint = result.end_offset

    def replayed(self) -> Any:
        state = self._new_state()
        Journal(self.log, state, self._codec)
        return state


def all_offsets(state: GroupState) -> tuple[object, ...]:
    offsets = state.offsets
    pending = {
        (group_id, place): found.pending_of(place)
        for group_id, found in offsets._by_group.items()
        for place in found.pending
    }
    return {group_id: offsets.of_group(group_id) for group_id in offsets.group_ids}, pending


@QUICK
@given(st.lists(OFFSET_STEPS, max_size=60))
def test_offsets_of_groups_with_transactions(steps: list[tuple[str, Any, Any]]) -> None:
    with TemporaryDirectory() as root:
        box = Compacted(Path(root), GroupState, GROUP_CODEC)
        for number, (step, who, where) in enumerate(steps):
            key = OffsetCommitKey(group="g", topic="t", partition=where or 0)
            if step == "commit":
                value = OffsetCommitValue(offset=number, metadata="", commit_timestamp=0)
                producer = NO_PRODUCER if who < 0 else ProducerIdAndEpoch(who, 0)
                box.write(JournalRecord(value, 4, key), producer)
            elif step == "tombstone":
                box.write(JournalRecord(None, 0, key))
            elif step == "clean":
                box.clean(who)
                assert all_offsets(box.replayed()) == all_offsets(box.state)
            else:
                box.end(who, commit=step == "end")
        box.clean(RETENTION_MS + 1)
        assert all_offsets(box.replayed()) == all_offsets(box.state)


@QUICK
@given(st.lists(TABLE_STEPS, max_size=60))
def test_transactions(steps: list[tuple[Any, int]]) -> None:
    with TemporaryDirectory() as root:
        box = Compacted(Path(root), TransactionTable, TransactionCodec())
        for number, (step, which) in enumerate(steps):
            name = f"shop-{which}"
            if step == "clean":
                box.clean(which)
                assert box.replayed().by_id == box.state.by_id
            elif step == "tombstone":
                box.write(tombstone_of(name))
            else:
                transaction = Transaction(
                    transactional_id=name,
                    producer_id=which,
                    producer_epoch=number,
                    timeout_ms=1,
                    state=step,
                    last_update_ms=number,
                )
                box.write(record_of(transaction, 2))
        for _ in range(2):  # the first round sets the horizons of tombstones
            box.clean(RETENTION_MS + 1)
        assert box.replayed().by_id == box.state.by_id
        assert sum(header.record_count for header in headers(box.log)) <= len(box.state.by_id)


def headers(log: PartitionLog) -> list[Any]:
    return [header for segment in log.segments for _, header in segment.headers_from(0)]
