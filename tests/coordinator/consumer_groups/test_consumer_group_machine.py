"""A state machine test of targets, reconciliation and records of a consumer group.

Members join, change their subscription, give partitions up late, and leave. Every decision is
replayed from the bytes of its records. Invariants: a partition is owned by one member at a time, on
the broker and on the clients, and a replay of the log gives the same group. When all members keep
sending heartbeats, the group becomes stable and each partition is owned by its target's member.
"""

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from odradek.coordinator.assignors import ASSIGNORS
from odradek.coordinator.assignors.assignment import Assignment
from odradek.coordinator.consumer_groups.draft import ConsumerDraft
from odradek.coordinator.consumer_groups.group import ConsumerGroup, ConsumerState
from odradek.coordinator.consumer_groups.member import ConsumerMember
from odradek.coordinator.consumer_groups.reconciliation import ReconcileInputs, reconcile
from odradek.coordinator.consumer_groups.records import (
    current_assignment_record,
    epoch_record,
    member_tombstones,
    regex_record,
    regex_tombstone,
    subscription_record,
    target_epoch_record,
    target_record,
)
from odradek.coordinator.consumer_groups.subscriptions import ResolvedRegex
from odradek.coordinator.groups.group_state import GroupState
from odradek.coordinator.modern_groups.target_assignment import changed_targets, compute_targets
from odradek.coordinator.runtime.outcome import JournalRecord, ReplayContext
from odradek.coordinator.runtime.record_codec import CoordinatorRecordCodec
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.records.consumer_offsets import RECORD_TYPES
from tests.support.consumer_members import REGEX, TOPICS, all_subscribe_alike
from tests.support.group_snapshot import consumer_group_snapshot
from tests.support.lengths import by_length

GROUP = "g"
CODEC = CoordinatorRecordCodec(RECORD_TYPES)
MATCHED = ResolvedRegex(topics=frozenset("ab"), version=1, timestamp_ms=1)
subscriptions = st.frozensets(st.sampled_from([*TOPICS]), max_size=3)


@dataclass
class Client:
    """A consumer's state: the assignment it received, and the partitions it still reads."""

    told: dict[bytes, frozenset[int]] = field(default_factory=dict)
    reads: set[tuple[bytes, int]] = field(default_factory=set)

    def obey(self) -> None:
        """Stop reading revoked partitions, and start to read new ones."""
        self.reads = {(topic_id, one) for topic_id, ones in self.told.items() for one in ones}

    def give_up(self) -> None:
        """Only stop."""
        self.reads = {
            (topic_id, one) for topic_id, one in self.reads if one in self.told.get(topic_id, ())
        }

    def owned(self) -> Assignment:
        found: dict[bytes, frozenset[int]] = {}
        for topic_id, one in self.reads:
            found[topic_id] = found.get(topic_id, frozenset()) | {one}
        return found


class ConsumerGroupMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.state = GroupState()
        self.log: list[tuple[bytes, bytes | None]] = []
        self.clients: dict[str, Client] = {}
        self.counts = dict.fromkeys(TOPICS.values(), 2)
        self.numbers = 0

    # -- the topics, as an assignor sees them -----------------------------------------------------

    def partition_count(self, topic_id: bytes) -> int:
        return self.counts[topic_id]

    def ids_of(self, names: frozenset[str]) -> frozenset[bytes]:
        return frozenset(TOPICS[name] for name in names)

    # -- the coordinator, in small -----------------------------------------------------------------

    @property
    def group(self) -> ConsumerGroup:
        return self.state.find_consumer(GROUP) or ConsumerGroup(GROUP)

    def write(self, *records: JournalRecord) -> None:
        for record in records:
            stored = CODEC.encode(record)
            self.log.append(stored)
            read = CODEC.decode(*stored)
            assert read is not None
            self.state.replay(read, ReplayContext(len(self.log), 0))

    def bump(self) -> None:
        self.write(epoch_record(GROUP, self.group.epoch + 1, 0))

    def step(self, member: ConsumerMember, owned: Assignment | None, *, changed: bool) -> None:
        """The end of a heartbeat: reconcile the member."""
        group = self.group
        inputs = ReconcileInputs(
            target=group.target(member.member_id),
            epoch=group.assignment_epoch,
            owner_epoch=group.ownership.epoch,
            subscribed_ids=lambda one: self.ids_of(group.subscriptions.topics_of(one)),
            subscription_changed=changed,
            owned=owned,
        )
        after = reconcile(member, inputs)
        if after != member:
            self.write(current_assignment_record(GROUP, after))
        told = {topic_id: frozenset(ones) for topic_id, ones in after.assigned.items()}
        self.clients[member.member_id].told = told

    def subscribe(self, member: ConsumerMember, names: frozenset[str], regex: str) -> None:
        """Write what a member asks for; an expression is resolved with its first subscriber."""
        group = self.group
        old = group.members.get(member.member_id)
        new = replace(member, subscribed_topics=names, subscribed_regex=regex)
        left = old.subscribed_regex if old is not None else ""
        self.write(subscription_record(GROUP, new))
        if regex and regex not in group.subscriptions.resolved_regexes:
            self.write(regex_record(GROUP, regex, MATCHED))
        if left and not self.group.subscriptions.regex_subscribers[left]:
            self.write(regex_tombstone(GROUP, left))
        self.bump()

    # -- what happens ------------------------------------------------------------------------------

    @rule(names=subscriptions, regex=st.sampled_from(["", REGEX]), static=st.booleans())
    def somebody_joins(self, names: frozenset[str], regex: str, *, static: bool) -> None:
        self.numbers += 1
        member_id = f"m{self.numbers}"
        instance_id = f"i{self.numbers}" if static else None
        new = replace(self.group.member_or_new(member_id), instance_id=instance_id)
        self.clients[member_id] = Client()
        self.subscribe(new, names, regex)
        self.make_targets()
        self.step(self.group.member(member_id), {}, changed=True)
        self.clients[member_id].obey()

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), names=subscriptions, regex=st.sampled_from(["", REGEX]))
    def somebody_subscribes_to_something_else(
        self, data: st.DataObject, names: frozenset[str], regex: str
    ) -> None:
        member_id = self.anybody(data)
        self.subscribe(self.group.member(member_id), names, regex)
        owned = self.clients[member_id].owned() if data.draw(st.booleans()) else None
        self.step(self.group.member(member_id), owned, changed=True)

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), says=st.booleans(), obeys=st.booleans())
    def somebody_speaks(self, data: st.DataObject, *, says: bool, obeys: bool) -> None:
        member_id = self.anybody(data)
        client = self.clients[member_id]
        self.step(self.group.member(member_id), client.owned() if says else None, changed=False)
        if obeys:
            client.obey()

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), wholly=st.booleans())
    def a_client_does_what_it_was_told(self, data: st.DataObject, *, wholly: bool) -> None:
        client = self.clients[self.anybody(data)]
        if wholly:
            client.obey()
        else:
            client.give_up()

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def somebody_goes(self, data: st.DataObject) -> None:
        member_id = self.anybody(data)
        del self.clients[member_id]
        left = self.group.member(member_id).subscribed_regex
        self.write(*member_tombstones(GROUP, member_id))
        if left and not self.group.subscriptions.regex_subscribers[left]:
            self.write(regex_tombstone(GROUP, left))
        self.bump()

    @rule(name=st.sampled_from([*TOPICS]))
    def a_topic_gets_another_partition(self, name: str) -> None:
        self.counts[TOPICS[name]] += 1
        if GROUP in self.state.groups:
            self.bump()

    @rule()
    def make_targets(self) -> None:
        group = self.group
        if group.assignment_epoch >= group.epoch or not group.members:
            return
        anybody = next(iter(group.members.values()))
        targets = compute_targets(
            ConsumerDraft(group, Now(0, 0)),
            anybody,
            ASSIGNORS[group.preferred_assignor or "uniform"],
            self,
            previous_id=group.previous_id(anybody),
            topics_of=group.subscriptions.topics_of,
            is_homogeneous=all_subscribe_alike(group),
        )
        self.write(
            *(target_record(GROUP, *each) for each in changed_targets(group.targets, targets)),
            target_epoch_record(GROUP, group.epoch, 1),
        )

    @precondition(lambda self: self.clients)
    @rule()
    def everybody_goes_on_until_all_is_well(self) -> None:
        self.make_targets()
        for _ in range(4):
            for member_id, client in self.clients.items():
                client.give_up()
                self.step(self.group.member(member_id), client.owned(), changed=False)
                client.obey()
        group = self.group
        assert group.state is ConsumerState.STABLE
        for member in group.members.values():
            has = {topic_id: frozenset(ones) for topic_id, ones in member.assigned.items()}
            assert has == group.target(member.member_id)
            assert not group.waits_for_release(member)

    def anybody(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from([*self.clients]))

    # -- what always holds -------------------------------------------------------------------------

    @invariant()
    def no_partition_is_with_two_members(self) -> None:
        with_somebody = [
            (topic_id, partition)
            for member in self.group.members.values()
            for owned in (member.assigned, member.pending_revocation)
            for topic_id, partitions in owned.items()
            for partition in partitions
        ]
        assert len(with_somebody) == len(set(with_somebody))
        for topic_id, count in self.counts.items():
            for partition in range(count):
                epoch = self.group.ownership.epoch(topic_id, partition)
                assert (epoch != -1) == ((topic_id, partition) in with_somebody)

    @invariant()
    def no_partition_is_read_by_two_clients(self) -> None:
        read = [place for client in self.clients.values() for place in client.reads]
        assert len(read) == len(set(read))

    @invariant()
    def the_log_gives_the_same_group(self) -> None:
        again = GroupState()
        for offset, stored in enumerate(self.log):
            record = CODEC.decode(*stored)
            assert record is not None
            again.replay(record, ReplayContext(offset, 0))
        theirs = again.find_consumer(GROUP)
        ours = self.state.find_consumer(GROUP)
        assert (theirs is None) == (ours is None)
        if theirs is not None and ours is not None:
            assert consumer_group_snapshot(theirs) == consumer_group_snapshot(ours)

    @invariant()
    def the_compacted_log_gives_the_same_group(self) -> None:
        newest = {key: offset for offset, (key, _) in enumerate(self.log)}
        again = GroupState()
        for offset, stored in enumerate(self.log):
            if newest[stored[0]] == offset:
                record = CODEC.decode(*stored)
                assert record is not None
                again.replay(record, ReplayContext(offset, 0))
        ours = self.state.find_consumer(GROUP)
        if ours is not None:
            theirs = again.consumer_group(GROUP)
            assert consumer_group_snapshot(theirs) == consumer_group_snapshot(ours)


TestConsumerGroupMachine = ConsumerGroupMachine.TestCase
TestConsumerGroupMachine.settings = settings(
    max_examples=by_length(8, 500), stateful_step_count=40, deadline=None
)
