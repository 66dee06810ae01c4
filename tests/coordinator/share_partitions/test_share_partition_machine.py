"""A share-partition beside a model that knows one record at a time.

The model says for each record: what state it is in, how often it was delivered, who has it. Changes
are stored by a real share coordinator, and a restart reads them back.
"""

from copy import deepcopy
from dataclasses import dataclass, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from odradek.coordinator.share_partitions.acquisition import AcquireCall, FetchedBatch, acquire
from odradek.coordinator.share_partitions.changes import (
    AcknowledgeCall,
    Acknowledgement,
    AcknowledgeType,
    Changes,
    acknowledge,
    archive,
    expire,
    next_lock_end_ms,
    release,
)
from odradek.coordinator.share_partitions.dead_letters import DeadLetters, unfinished
from odradek.coordinator.share_partitions.in_flight import (
    NO_MEMBER,
    DeliveryRules,
    InFlight,
    RecordState,
)
from odradek.coordinator.share_partitions.share_partition import Limits, SharePartition
from odradek.coordinator.share_state.state import StateWrite
from odradek.protocol.errors import ApiError
from tests.support.lengths import by_length
from tests.support.share_states import KEY, ShareStates

LOCK_MS = 100
LIMITS = Limits(max_delivery_count=3, max_in_flight=12)
MEMBERS = st.sampled_from(["one", "two", "three"])
TYPES = st.sampled_from(
    [AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT, AcknowledgeType.GAP]
)


@dataclass(frozen=True)
class Known:
    """What the model knows of a record."""

    state: RecordState = RecordState.AVAILABLE
    count: int = 0
    member: str = NO_MEMBER
    until_ms: int | None = None


class ShareMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.states = ShareStates(updates_per_snapshot=3)
        self.states.initialize(start=0)
        self.partition = SharePartition(self.states.read(), 0)
        self.log: list[FetchedBatch] = []
        self.log_start = 0
        self.log_end = 0
        self.now_ms = 0
        self.has_queue = False
        self.records: dict[int, Known] = {}
        self.stored: dict[int, Known] = {}
        self.letters: list[DeadLetters] = []  # that are not in the queue yet

    @property
    def delivery_rules(self) -> DeliveryRules:
        return DeliveryRules(LIMITS.max_delivery_count, self.has_queue)

    @rule()
    def configure(self) -> None:
        """The group gets a dead-letter queue, or loses it."""
        self.has_queue = not self.has_queue

    # -- the log -----------------------------------------------------------------------------------

    @rule(count=st.integers(1, 6))
    def append(self, count: int) -> None:
        self.log.append(FetchedBatch(self.log_end, self.log_end + count - 1))
        self.records |= {self.log_end + each: Known() for each in range(count)}
        self.log_end += count

    @rule(count=st.integers(1, 4))
    def lose_first_records(self, count: int) -> None:
        self.log_start = min(self.log_start + count, self.log_end)
        self.partition.log_start_moved(self.log_start)
        for offset in [each for each in self.records if each < self.log_start]:
            del self.records[offset]

    # -- members -----------------------------------------------------------------------------------

    @rule(
        member=MEMBERS,
        most=st.integers(1, 9),
        size=st.integers(1, 9),
        batches=st.integers(1, 3),
        is_strict=st.booleans(),
    )
    def fetch(self, member: str, most: int, size: int, batches: int, *, is_strict: bool) -> None:
        offset = self.partition.offset_to_fetch(LIMITS)
        if offset is None:
            return
        fetched = [batch for batch in self.log if batch.last_offset >= offset][:batches]
        call = AcquireCall(member, most, size, is_strict, self.now_ms + LOCK_MS)
        acquired = acquire(self.partition, call, LIMITS, offset, fetched)
        assert not is_strict or sum(one.record_count for one in acquired) <= most
        for one in acquired:
            # Records that the log has lost may come once more, if their batch has others.
            for each in range(max(one.first_offset, self.log_start), one.last_offset + 1):
                known = self.records[each]
                assert known.state is RecordState.AVAILABLE
                assert known.count + 1 == one.delivery_count <= LIMITS.max_delivery_count
                self.records[each] = Known(
                    RecordState.ACQUIRED, one.delivery_count, member, call.locked_until_ms
                )

    @precondition(lambda self: self.acquired())
    @rule(data=st.data(), are_equal=st.booleans(), is_stored=st.booleans())
    def settle(self, data: st.DataObject, *, are_equal: bool, is_stored: bool) -> None:
        """A member acknowledges records that it has."""
        first = data.draw(st.sampled_from(self.acquired()))
        member = self.records[first].member
        last = first
        while data.draw(st.booleans()) and self.is_acquired(last + 1, member):
            last += 1
        count = 1 if are_equal else last - first + 1
        types = data.draw(st.lists(TYPES, min_size=count, max_size=count))
        wanted = Acknowledgement(first, last, types)
        call = AcknowledgeCall(member, self.delivery_rules, None)
        changes = acknowledge(self.partition, call, [wanted])
        if not is_stored:
            return  # the write failed: nothing is applied
        self.write_and_apply(changes)
        for each in range(first, last + 1):
            self.settled(each, AcknowledgeType(types[0 if are_equal else each - first]))

    def settled(self, offset: int, kind: AcknowledgeType) -> None:
        known = self.records[offset]
        state = self.delivery_rules.rejected_state
        if kind is AcknowledgeType.GAP:
            state = RecordState.ARCHIVED
        elif kind is AcknowledgeType.ACCEPT:
            state = RecordState.ACKNOWLEDGED
        elif kind is AcknowledgeType.RELEASE and known.count < LIMITS.max_delivery_count:
            state = RecordState.AVAILABLE
        self.stored[offset] = self.records[offset] = Known(state, known.count)

    @precondition(lambda self: self.acquired())
    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        offset = data.draw(st.sampled_from(self.acquired()))
        known = self.records[offset]
        until_ms = self.now_ms + LOCK_MS
        call = AcknowledgeCall(known.member, self.delivery_rules, until_ms)
        wanted = Acknowledgement(offset, offset, [AcknowledgeType.RENEW])
        changes = acknowledge(self.partition, call, [wanted])
        assert not changes.batches
        changes.apply()
        self.records[offset] = replace(known, until_ms=until_ms)

    @rule(data=st.data(), member=MEMBERS)
    def settle_what_another_has(self, data: st.DataObject, member: str) -> None:
        """Nothing of the request counts if one record is not the member's."""
        in_flight = range(self.partition.start_offset, self.partition.end_offset + 1)
        others = [each for each in in_flight if not self.is_acquired(each, member)]
        if not others or not len(self.partition.batches) or not self.is_all_in_flight():
            return
        first = last = data.draw(st.sampled_from(others))
        while data.draw(st.booleans()) and first - 1 in in_flight:
            first -= 1
        call = AcknowledgeCall(member, self.delivery_rules, None)
        try:
            acknowledge(self.partition, call, [Acknowledgement(first, last, [1])])
        except ApiError:
            return
        raise AssertionError(f"{member} has acknowledged {first} to {last}")

    @rule(member=MEMBERS)
    def leave(self, member: str) -> None:
        acquired = self.acquired()
        self.write_and_apply(release(self.partition, member, self.delivery_rules))
        for offset in acquired:
            if self.is_acquired(offset, member):
                self.settled(offset, AcknowledgeType.RELEASE)

    @rule(passed_ms=st.integers(1, LOCK_MS))
    def time_passes(self, passed_ms: int) -> None:
        self.now_ms += passed_ms
        changes = expire(self.partition, self.now_ms, self.delivery_rules)
        acquired = self.acquired()
        self.write_and_apply(changes)
        for offset in acquired:
            if (self.records[offset].until_ms or 0) <= self.now_ms:
                self.settled(offset, AcknowledgeType.RELEASE)
        next_ms = next_lock_end_ms(self.partition)
        assert next_ms is None or next_ms > self.now_ms

    @precondition(lambda self: self.letters)
    @rule(data=st.data())
    def write_to_the_queue(self, data: st.DataObject) -> None:
        """What is written, in any order, is archived."""
        written = data.draw(st.lists(st.sampled_from(self.letters), min_size=1, unique=True))
        self.letters = [each for each in self.letters if each not in written]
        self.write_and_apply(archive(self.partition, written))
        for each in written:
            for offset in range(each.first_offset, each.last_offset + 1):
                if offset in self.records:
                    count = self.records[offset].count
                    known = Known(RecordState.ARCHIVED, count)
                    self.stored[offset] = self.records[offset] = known

    @rule()
    def restart(self) -> None:
        """What is stored is read again; locks, and deliveries that were not settled, are lost."""
        self.states = self.states.restarted()
        state = self.states.read()
        assert state.start_offset <= self.partition.start_offset
        self.partition = SharePartition(state, state.start_offset)
        self.partition.log_start_moved(self.log_start)
        self.records = {
            each: self.stored.get(each, Known())
            if each >= self.partition.start_offset
            else Known(RecordState.ARCHIVED)
            for each in range(self.log_start, self.log_end)
        }
        self.letters = unfinished(self.partition, LIMITS.max_delivery_count)

    # -- what is always true -----------------------------------------------------------------------

    @invariant()
    def each_record_in_flight_is_as_the_model_says(self) -> None:
        for first, last, state in self.in_flight():
            for offset in range(max(first, self.partition.start_offset), last + 1):
                found = Known(
                    state.state, state.delivery_count, state.member_id, state.locked_until_ms
                )
                known = self.records[offset]
                if known.state in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED):
                    assert found.state.is_terminal
                else:
                    assert found == known

    @invariant()
    def each_record_that_is_given_up_is_for_the_queue_once(self) -> None:
        offsets = [
            offset
            for each in self.letters
            for offset in range(each.first_offset, each.last_offset + 1)
            if offset in self.records
        ]
        given_up = [
            offset for offset, known in self.records.items() if known.state is RecordState.ARCHIVING
        ]
        assert sorted(offsets) == given_up

    @invariant()
    def the_start_offset_passes_no_record_that_is_not_done(self) -> None:
        before = [each for each in self.records if each < self.partition.start_offset]
        assert all(self.records[each].state.is_terminal for each in before)

    @invariant()
    def done_records_are_counted_from_the_start_offset_on(self) -> None:
        done = [
            each
            for each, known in self.records.items()
            if each >= self.partition.start_offset and known.state.is_terminal
        ]
        assert self.partition.complete_count == len(done)

    @invariant()
    def the_first_available_record_is_fetched_next(self) -> None:
        available = [
            offset
            for offset, known in self.records.items()
            if offset >= self.partition.start_offset and known.state is RecordState.AVAILABLE
        ]
        # A copy is asked, because the question changes where the next search begins.
        next_offset = deepcopy(self.partition).next_fetch_offset()
        assert next_offset == min(available, default=self.log_end)

    # -- helpers -----------------------------------------------------------------------------------

    def write_and_apply(self, changes: Changes) -> None:
        """Store changes as the partition's leader does, and apply them."""
        if changes.batches:
            write = StateWrite(
                state_epoch=1,
                leader_epoch=0,
                start_offset=self.partition.start_offset,
                delivery_complete_count=changes.complete_count,
                batches=tuple(changes.batches),
            )
            self.states.coordinator.write(KEY, write, self.states.now_ms)
        before = self.partition.start_offset
        changes.apply()
        self.letters += changes.dead_letters
        assert self.partition.start_offset >= before

    def acquired(self) -> list[int]:
        return [
            each
            for each, known in self.records.items()
            if known.state is RecordState.ACQUIRED and each >= self.partition.start_offset
        ]

    def is_acquired(self, offset: int, member: str) -> bool:
        known = self.records.get(offset, Known())
        return known.state is RecordState.ACQUIRED and known.member == member

    def in_flight(self) -> list[tuple[int, int, InFlight]]:
        return [each for batch in self.partition.batches for each in batch.states()]

    def is_all_in_flight(self) -> bool:
        """Whether there is no gap between the start and the end offset."""
        count = sum(
            last - max(first, self.partition.start_offset) + 1
            for first, last, _ in self.in_flight()
            if last >= self.partition.start_offset
        )
        return count == self.partition.in_flight_count


TestSharePartition = ShareMachine.TestCase
TestSharePartition.settings = settings(
    max_examples=by_length(25, 20_000), stateful_step_count=40, deadline=None
)
