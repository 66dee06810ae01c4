"""A state machine test of a group with members of both protocols.

Members join, change their protocol, leave and crash. Invariants: the broker knows one owner of each
partition; a valid member reads only partitions it owns; no member commits a partition of another
one; a replay of the log gives the same group. When the changes stop, every partition is assigned,
and the type of the group follows from its members' protocols.
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from odradek.coordinator.any_group.group import Group
from odradek.coordinator.classic_groups.group import ClassicGroup, ClassicState
from odradek.coordinator.consumer_groups.group import ConsumerGroup
from odradek.protocol.errors import ApiError, ErrorCode
from tests.support.both_lives import assert_log_agrees
from tests.support.classic_consumers import ClassicConsumer, Consumer, Place
from tests.support.groups import GROUP, SESSION_MS
from tests.support.heartbeats import Heartbeats
from tests.support.lengths import by_length

STATIC = ("i", "j")
MAX_MEMBERS = 4
ROUNDS_OF_PEACE = 60
Client = ClassicConsumer | Consumer
kinds = st.sampled_from(["classic", "consumer"])


class MigrationMachine(RuleBasedStateMachine):
    clients: list[Client]

    @initialize(cooperative=st.booleans(), interval_ms=st.sampled_from([0, 0, 5_000]))
    def start(self, cooperative: bool, interval_ms: int) -> None:
        self.cooperative = cooperative
        self.beats = Heartbeats(assignment_interval_ms=interval_ms)
        self.beats.topic("t", 3)
        self.clients = [self._new("classic", None), self._new("classic", "i")]
        self.everybody_goes_on(rounds=6)
        self.clients.append(self._new("consumer", None))
        self.everybody_goes_on(rounds=6)
        # Who was put out may join again by its old id, and learns by its sync what it has lost.
        self.unaware: set[Client] = set()
        # A rebalance is not in the log. A static member that comes back to the members of before
        # gets its part of then, as in Kafka, and nobody gets the rest until somebody joins.
        self.forgot_rebalance = False

    def _new(self, kind: str, instance: str | None) -> Client:
        if kind == "classic":
            return ClassicConsumer(self.beats, "t", instance=instance, cooperative=self.cooperative)
        return Consumer(self.beats, self.beats.groups.uuids(), "t", instance=instance)

    @property
    def group(self) -> Group | None:
        return self.beats.groups.coordinator.shards.of(GROUP).state.groups.get(GROUP)

    # -- what clients do ---------------------------------------------------------------------------

    @rule(rounds=st.integers(1, 4))
    def everybody_goes_on(self, rounds: int) -> None:
        for _ in range(rounds):
            for client in self.clients:
                client.poll()

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def somebody_goes_on(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self.clients)).poll()

    @rule(kind=kinds, instance=st.sampled_from([None, None, *STATIC]))
    def somebody_comes(self, kind: str, instance: str | None) -> None:
        taken = instance is not None and instance in [one.instance for one in self.clients]
        if len(self.clients) < MAX_MEMBERS and not taken:
            self.clients.append(self._new(kind, instance))

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def somebody_leaves(self, data: st.DataObject) -> None:
        client = self._take(data)
        client.leave()

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def somebody_crashes(self, data: st.DataObject) -> None:
        self._take(data)

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), kind=kinds, says_goodbye=st.booleans())
    def somebody_starts_again(self, data: st.DataObject, kind: str, says_goodbye: bool) -> None:
        """In a new version of its program, perhaps; a static one keeps its name."""
        client = self._take(data)
        if says_goodbye:
            if isinstance(client, Consumer) and client.instance is not None:
                self.beats.beat(client.member_id, -2, instance=client.instance)
            else:
                client.leave()
        self.clients.append(self._new(kind, client.instance))

    def _take(self, data: st.DataObject) -> Client:
        client = data.draw(st.sampled_from(self.clients))
        self.clients.remove(client)
        if isinstance(client, ClassicConsumer):
            client.lose_connection()
        return client

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def somebody_wants_to_join_again(self, data: st.DataObject) -> None:
        client = data.draw(st.sampled_from(self.clients))
        if isinstance(client, ClassicConsumer):
            client.lose_connection()
            client.rejoin()

    def everybody_joins_again(self) -> None:
        for client in self.clients:
            if isinstance(client, ClassicConsumer):
                client.lose_connection()
                client.rejoin()

    @rule()
    def everybody_commits(self) -> None:
        for client in self.clients:
            if not client.reads or not client.knows_its_assignment:
                continue
            place = min(client.reads)
            try:
                code = client.commit()
            except ApiError as error:
                code = error.code
            if code is ErrorCode.NONE:
                assert self._is_owned_by(place) in (None, client.member_id)

    def _is_owned_by(self, place: Place) -> str | None:
        group = self.group
        if not isinstance(group, ConsumerGroup):
            return None
        owners = [one for one in group.members if place in self._owned(group, one)]
        return owners[0] if owners else None

    # -- what happens to them ----------------------------------------------------------------------

    @rule(by_ms=st.sampled_from([100, 1_000, SESSION_MS, 61_000]))
    def time_passes(self, by_ms: int) -> None:
        self.beats.advance(by_ms)

    @rule(luck=st.integers(0, 2))
    def the_topic_grows(self, luck: int) -> None:
        count = len(self.beats.metadata.state.topics["t"].partitions)
        if not luck and count < 6:
            self.beats.grow("t", count + 1)

    @rule(luck=st.integers(0, 2))
    def the_next_write_fails(self, luck: int) -> None:
        if not luck:
            self.beats.fail_next_append()

    @rule(luck=st.integers(0, 2))
    def the_broker_starts_again(self, luck: int) -> None:
        if luck:
            return
        group = self.group
        if isinstance(group, ClassicGroup) and group.state is not ClassicState.STABLE:
            self.forgot_rebalance = True
        self.beats.groups.logs[0].fail_next = None
        self.beats.groups = self.beats.restarted().groups
        for client in self.clients:
            if isinstance(client, ClassicConsumer):
                client.lose_connection()

    # -- what must hold ----------------------------------------------------------------------------

    @invariant()
    def the_log_agrees(self) -> None:
        if not hasattr(self, "beats"):
            return
        assert_log_agrees(self.beats.groups)

    @invariant()
    def a_partition_has_one_owner(self) -> None:
        group = self.group if hasattr(self, "beats") else None
        if isinstance(group, ConsumerGroup):
            owned = [place for one in group.members for place in self._owned(group, one)]
            assert len(owned) == len(set(owned))

    @invariant()
    def members_in_good_standing_read_what_is_theirs(self) -> None:
        group = self.group if hasattr(self, "beats") else None
        members = group.members if isinstance(group, ClassicGroup | ConsumerGroup) else {}
        for client in self.clients if hasattr(self, "clients") else ():
            if client.member_id not in members:
                self.unaware.add(client)
            elif client.knows_its_assignment:
                self.unaware.discard(client)
            if isinstance(group, ConsumerGroup) and client not in self.unaware:
                self._reads_its_own(group, client)

    def _reads_its_own(self, group: ConsumerGroup, client: Client) -> None:
        member = group.members[client.member_id]
        epoch = client.epoch if isinstance(client, Consumer) else client.generation
        # As in Kafka: a classic group that restarted its rebalance has lost the owners,
        # and may have been converted since.
        is_fresh = member.previous_member_epoch == epoch and not member.assigned
        if member.member_epoch == epoch and not is_fresh:
            assert client.reads <= self._owned(group, client.member_id)

    def _owned(self, group: ConsumerGroup, member_id: str) -> set[Place]:
        member, topics = group.members[member_id], self.beats.metadata.state.topics.by_id
        return {
            (topics[topic_id].name, partition)
            for owned in (member.assigned, member.pending_revocation)
            for topic_id, partitions in owned.items()
            for partition in partitions
        }

    def teardown(self) -> None:
        """Let the present members continue until the group is stable; no others join."""
        if not getattr(self, "clients", None):
            return
        self.beats.groups.logs[0].fail_next = None
        for round_number in range(ROUNDS_OF_PEACE):
            if self.forgot_rebalance and round_number == ROUNDS_OF_PEACE // 2:
                self.everybody_joins_again()
            for client in self.clients:
                client.poll()
            self.beats.advance(3_000)
            self.the_log_agrees()
            self.a_partition_has_one_owner()
            self.members_in_good_standing_read_what_is_theirs()
        shared = sorted(place for client in self.clients for place in client.reads)
        assert shared == [("t", one) for one in self.beats.metadata.state.topics["t"].partitions]
        group = self.group
        assert group is not None
        assert group.state_name == "Stable"
        all_classic = all(isinstance(client, ClassicConsumer) for client in self.clients)
        assert isinstance(group, ClassicGroup) is all_classic


TestMigrations = pytest.mark.slow(MigrationMachine.TestCase)
TestMigrations.settings = settings(
    max_examples=by_length(20, 1_000), stateful_step_count=by_length(30, 50), deadline=None
)
