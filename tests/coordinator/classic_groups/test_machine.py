"""Random members in one group: they join, sync, leave, crash, come back late, and commit.

What must hold whatever they do: one generation at a time, with at most one leader; every partition
has exactly one owner in a stable generation, and it is the one whom that generation's leader gave
it; nobody outside the generation commits; everybody who waits is answered in the end; and replaying
the log gives the same group.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from odradek.coordinator.any_group.group_offsets import PartitionOffsets
from odradek.coordinator.classic_groups.group import ClassicGroup, ClassicState
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupMemberIdentity
from odradek.protocol.messages.sync_group import SyncGroupResponse
from tests.support.both_lives import assert_log_agrees
from tests.support.groups import GROUP, SESSION_MS, Groups, Waiting, subscription
from tests.support.lengths import by_length

STATIC = ("s1", "s2")
PROTOCOLS: tuple[Mapping[str, bytes], ...] = (
    {"range": subscription("a")},
    {"range": subscription("a", "b"), "sticky": b""},
    {"sticky": b"", "range": subscription("a")},
)
# v3 does not ask a new member back; to v8 a leader that came back is told that its old id leads.
VERSIONS = (3, 8, 9)
PARTITIONS = range(6)
# Of a third of a session each: longer than a join of a newcomer that gave up may stay parked.
ROUNDS_OF_PEACE = 200
storage_error = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "disk")


# Member id, generation, instance id.
Identity = tuple[str, int, str | None]


@dataclass
class Client:
    """A consumer, as far as it knows: its last answered join, and what it waits for."""

    instance: str | None
    protocols: Mapping[str, bytes]
    version: int = 9
    life: int = 0
    member_id: str = ""
    generation_id: int = -1
    leads: bool = False
    members: list[str] = field(default_factory=list)
    waiting: Waiting | None = None
    waits_for: str = ""
    must_join: bool = True
    assigned: bool = False
    assignment: bytes = b""
    alive: bool = True


class ClassicGroupMachine(RuleBasedStateMachine):
    clients: list[Client]

    @initialize(delay_ms=st.sampled_from([0, 3_000]), max_size=st.sampled_from([3, 100]))
    def start(self, delay_ms: int, max_size: int) -> None:
        numbers = count(1)
        self.uuids = lambda: f"uuid{next(numbers)}"
        self.settings = {"initial_rebalance_delay_ms": delay_ms, "max_size": max_size}
        self.groups = Groups(uuids=self.uuids, **self.settings)
        self.clients = []
        # How often the broker has started. A generation that was not written down comes again.
        self.life = 1
        self.last_generation = 0
        # By life and generation: who was told to lead, and whether it knew all of its members.
        self.leaders: dict[tuple[int, int], str] = {}
        self.knew_all: dict[int, bool] = {}
        # What each generation's leader gave to each member.
        self.given: dict[int, dict[str, bytes]] = {}
        self.committed: int | None = None
        self.offsets = count(1)
        self.identities: list[Identity] = []
        self.clients += [Client(instance, PROTOCOLS[1]) for instance in (None, None, "s1")]

    # -- what clients do --------------------------------------------------------------------------

    @rule(steps=st.integers(1, 6))
    def everybody_does_what_consumers_do(self, steps: int) -> None:
        """Join, sync, then heartbeat; the oldest acts first."""
        for _ in range(steps):
            for client in [client for client in self.clients if client.alive]:
                self.act(client)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def somebody_does_what_consumers_do(self, data: st.DataObject) -> None:
        self.act(self.pick(data))

    def act(self, client: Client) -> None:
        self.take_answer(client)
        if client.waiting is not None:
            return
        if client.must_join or not client.member_id:
            self.send_join(client)
        elif not client.assigned:
            self.send_sync(client, client.members)
        else:
            self.send_heartbeat(client)

    @rule(
        instance=st.sampled_from([None, None, *STATIC]),
        protocols=st.sampled_from(PROTOCOLS),
        version=st.sampled_from(VERSIONS),
    )
    def arrive(self, instance: str | None, protocols: Mapping[str, bytes], version: int) -> None:
        if sum(client.alive for client in self.clients) < 5:
            if instance is not None:
                version = max(version, 8)
            self.clients.append(Client(instance, protocols, version))

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def join(self, data: st.DataObject) -> None:
        client = self.pick(data)
        if client.waiting is None:
            self.send_join(client)

    def send_join(self, client: Client) -> None:
        answer = self.groups.send_join(
            client.member_id,
            instance=client.instance,
            protocols=client.protocols,
            version=client.version,
        )
        self.expect(client, "join", answer)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def sync_and_forget_somebody(self, data: st.DataObject) -> None:
        client = self.pick(data)
        if client.waiting is None and client.generation_id >= 0:
            self.send_sync(client, client.members[1:] or client.members)

    def send_sync(self, client: Client, members: list[str]) -> None:
        assignments = {}
        if client.leads:
            assignments = shared_out(members, client.generation_id)
        before = self.state()
        answer = self.groups.send_sync(
            client.member_id, client.generation_id, assignments, instance=client.instance
        )
        if before is ClassicState.COMPLETING_REBALANCE and self.state() is ClassicState.STABLE:
            assert client.leads, "only a leader ends a rebalance"
            self.given[client.generation_id] = assignments
            # It may have been told of another life's members, under the same number.
            self.knew_all[client.generation_id] = client.life == self.life
        self.expect(client, "sync", answer)

    def send_heartbeat(self, client: Client) -> None:
        code = self.groups.heartbeat(
            client.member_id, client.generation_id, instance=client.instance
        )
        if code is ErrorCode.NONE:
            assert client.member_id in self.group().members
            assert client.generation_id == self.group().generation_id
        self.refuse(client, code)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        """Crashed and fenced clients try as well."""
        client = data.draw(st.sampled_from(self.clients))
        self.send_commit((client.member_id, client.generation_id, client.instance))

    @precondition(lambda self: self.identities)
    @rule(data=st.data())
    def a_request_arrives_late(self, data: st.DataObject) -> None:
        """Somebody speaks as who it once was."""
        identity = data.draw(st.sampled_from(self.identities))
        self.send_commit(identity)
        member_id, generation_id, instance = identity
        code = self.groups.heartbeat(member_id, generation_id, instance=instance)
        assert code is not ErrorCode.NONE or self.is_current(identity)
        if not self.is_current(identity):
            refused = self.groups.sync(member_id, generation_id, instance=instance)
            assert refused.error_code != ErrorCode.NONE

    def send_commit(self, identity: Identity) -> None:
        offset = next(self.offsets)
        state = self.state()
        if identity[1] < 0:
            allowed = state in (None, ClassicState.EMPTY)
        else:
            allowed = self.is_current(identity) and state is not ClassicState.COMPLETING_REBALANCE
        try:
            self.groups.commit(
                offset, member_id=identity[0], generation_id=identity[1], instance=identity[2]
            )
        except ApiError:
            return
        assert allowed, "somebody outside the generation committed"
        self.committed = offset

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), protocols=st.sampled_from(PROTOCOLS))
    def change_mind(self, data: st.DataObject, protocols: Mapping[str, bytes]) -> None:
        client = self.pick(data)
        if client.waiting is None:
            client.protocols = protocols
            self.send_join(client)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def lose_the_connection(self, data: st.DataObject) -> None:
        """The client lives, but what it waited for is lost."""
        client = self.pick(data)
        if client.waiting is not None:
            client.waiting.cancel()
            client.waiting = None

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        client = self.pick(data)
        if client.member_id:
            self.groups.leave(client.member_id)
            self.take_answer(client)
            client.member_id, client.generation_id = "", -1

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        """The client is gone, its parked request with it; it may start again without its id."""
        client = self.pick(data)
        if client.waiting is not None and not client.waiting.done():
            client.waiting.cancel()
        client.alive = False
        if client.instance is not None:
            self.clients.append(Client(client.instance, client.protocols, client.version))

    @rule(instance=st.sampled_from(STATIC))
    def an_administrator_removes_a_static_member(self, instance: str) -> None:
        who = LeaveGroupMemberIdentity(member_id="", group_instance_id=instance)
        self.groups.coordinator.members.leave_group(GROUP, [who])

    @rule(luck=st.integers(0, 4))
    def an_administrator_deletes_the_group(self, luck: int) -> None:
        if luck:
            return
        state = self.state()
        result = self.groups.coordinator.admin.delete([GROUP])[0]
        if result.error_code == ErrorCode.NONE:
            assert state is ClassicState.EMPTY, "a group with members was deleted"
            self.committed = None

    @rule(by_ms=st.sampled_from([1_000, SESSION_MS // 2, SESSION_MS, 61_000, 301_000]))
    def time_passes(self, by_ms: int) -> None:
        self.groups.advance(by_ms)

    # -- what happens to the broker ---------------------------------------------------------------

    @rule(luck=st.integers(0, 2))
    def the_next_write_fails(self, luck: int) -> None:
        if not luck:
            self.groups.logs[0].fail_next = storage_error

    @rule(luck=st.integers(0, 2))
    def restart(self, luck: int) -> None:
        if luck:
            return
        self.groups.logs[0].fail_next = None
        for client in self.clients:
            if client.waiting is not None:
                client.waiting.cancel()
                client.waiting = None
        self.groups = self.groups.restarted(**self.settings)
        self.life += 1
        known = self.known()
        self.last_generation = known.generation_id if known is not None else 0

    # -- what must hold ---------------------------------------------------------------------------

    @invariant()
    def answers_arrive(self) -> None:
        for client in getattr(self, "clients", []):
            self.take_answer(client)

    @invariant()
    def a_stable_member_has_what_the_leader_gave_it(self) -> None:
        group = self.known()
        if group is None or group.state is not ClassicState.STABLE:
            return
        given = self.given[group.generation_id]
        for member in group.members.values():
            expected = given.get(member.member_id, b"")
            # A static member that came back under a new id keeps what its old id was given.
            assert member.assignment == expected or member.is_static

    @invariant()
    def every_partition_of_a_stable_generation_has_one_owner(self) -> None:
        group = self.known()
        if group is None or group.state is not ClassicState.STABLE:
            return
        if self.knew_all[group.generation_id]:
            owned = [p for m in group.members.values() for p in owned_by(m.assignment)]
            assert sorted(owned) == list(PARTITIONS)
        for client in self.clients:
            member = group.members.get(client.member_id)
            if client.assigned and member and client.generation_id == group.generation_id:
                assert client.assignment == member.assignment

    @invariant()
    def a_generation_is_not_larger_than_a_group_may_be(self) -> None:
        group = self.known()
        if group is not None and group.state is not ClassicState.PREPARING_REBALANCE:
            assert len(group.members) <= self.groups.settings.max_size

    @invariant()
    def generations_never_go_back(self) -> None:
        group = self.known()
        if group is None:
            getattr(self, "leaders", {}).clear()
        if group is not None:
            assert group.generation_id >= self.last_generation
        # An empty group without offsets is deleted some day, and then begins anew.
        self.last_generation = group.generation_id if group is not None else 0

    @invariant()
    def a_state_fits_its_members(self) -> None:
        group = self.known()
        if group is None:
            return
        assert (group.leader_id in group.members) or not group.members
        assert set(group.roster.static_member_ids.values()) == {
            member.member_id for member in group.members.values() if member.is_static
        }
        assert not group.pending_syncs - set(group.members)
        parked = [member for member in group.members.values() if member.awaits_join]
        assert group.roster.joined == len(parked)
        if group.state is ClassicState.EMPTY:
            assert not group.members
        if group.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
            assert group.members
            assert not any(member.awaits_join for member in group.members.values())
        if group.state is not ClassicState.COMPLETING_REBALANCE:
            assert not any(member.sync_reply for member in group.members.values())

    @invariant()
    def whoever_waits_is_known_to_the_group(self) -> None:
        group = self.known()
        for client in getattr(self, "clients", []):
            if client.waiting is not None and not client.waiting.done():
                assert group is not None
                assert any(
                    member.awaits_join if client.waits_for == "join" else member.sync_reply
                    for member in group.members.values()
                )

    @invariant()
    def the_log_says_the_same(self) -> None:
        group = self.known()
        if group is None:
            return
        found = self.offsets_now().get("topic", {}).get(0)
        assert (found.offset if found else None) == self.committed
        assert_log_agrees(self.groups)

    # -- what must come to pass -------------------------------------------------------------------

    def teardown(self) -> None:
        """Left in peace, whoever lives (and finds room) ends in one stable generation."""
        if self.known() is None:
            return
        self.groups.logs[0].fail_next = None
        for _ in range(ROUNDS_OF_PEACE):
            if self.all_have_settled():
                break
            self.everybody_does_what_consumers_do(1)
            self.groups.advance(SESSION_MS // 3)
            self.answers_arrive()
        assert self.all_have_settled()
        self.every_partition_of_a_stable_generation_has_one_owner()
        self.the_log_says_the_same()

    def all_have_settled(self) -> bool:
        group = self.known()
        alive = [client for client in self.clients if client.alive]
        if group is None or not alive:
            return True
        room = min(len(alive), self.groups.settings.max_size)
        settled = [
            client
            for client in alive
            if client.assigned and client.member_id in group.members and client.waiting is None
        ]
        stable = group.state is ClassicState.STABLE
        return stable and len(settled) == len(group.members) == room

    # -- small words ------------------------------------------------------------------------------

    def known(self) -> ClassicGroup | None:
        if not hasattr(self, "groups"):
            return None
        return self.groups.coordinator.shards.of(GROUP).state.groups.get(GROUP)

    def group(self) -> ClassicGroup:
        return self.groups.group()

    def state(self) -> ClassicState | None:
        group = self.known()
        return group.state if group else None

    def offsets_now(self) -> Mapping[str, PartitionOffsets]:
        return self.groups.coordinator.shards.of(GROUP).state.offsets.of_group(GROUP)

    def pick(self, data: st.DataObject) -> Client:
        alive = [client for client in self.clients if client.alive]
        if not alive:
            alive = [Client(None, PROTOCOLS[0])]
            self.clients += alive
        return data.draw(st.sampled_from(alive))

    def is_current(self, identity: Identity) -> bool:
        group = self.known()
        member_id, generation_id, instance = identity
        return (
            group is not None
            and member_id in group.members
            and generation_id == group.generation_id
            and (instance is None or group.roster.static_member_ids.get(instance) == member_id)
        )

    def expect(self, client: Client, waits_for: str, answer: Any) -> None:
        waiting = answer
        if not isinstance(answer, Waiting):
            waiting = Waiting()
            waiting.set_result(answer)
        client.waiting, client.waits_for = waiting, waits_for
        self.take_answer(client)

    def take_answer(self, client: Client) -> None:
        if client.waiting is None or client.waiting.response is None:
            return
        response, client.waiting = client.waiting.response, None
        if isinstance(response, SyncGroupResponse):
            client.assigned = response.error_code == ErrorCode.NONE
            client.assignment = response.assignment
        if isinstance(response, JoinGroupResponse):
            client.assigned = False
            client.must_join = response.error_code != ErrorCode.NONE
            if response.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                client.member_id = response.member_id
                client.generation_id = response.generation_id
                identity = (client.member_id, client.generation_id, client.instance)
                if identity not in self.identities and client.generation_id >= 0:
                    self.identities.append(identity)
            client.leads = response.leader == response.member_id and not response.skip_assignment
            client.life = self.life
            client.members = [member.member_id for member in response.members]
            if client.leads and response.error_code == ErrorCode.NONE:
                assert response.member_id in client.members
                generation = (self.life, response.generation_id)
                told = self.leaders.setdefault(generation, response.member_id)
                assert told == response.member_id, "two members lead one generation"
        self.refuse(client, ErrorCode(response.error_code))

    @staticmethod
    def refuse(client: Client, code: ErrorCode) -> None:
        """What a consumer does on an error: forget its id, or only its generation."""
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            client.member_id = ""
        if code not in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            client.must_join = True
            client.assigned = False
            if code is not ErrorCode.REBALANCE_IN_PROGRESS:
                client.generation_id = -1
        if code is ErrorCode.FENCED_INSTANCE_ID:
            client.alive = False


def shared_out(members: list[str], generation_id: int) -> dict[str, bytes]:
    """The partitions, in turn, each to one of the members."""
    share: dict[str, list[str]] = {name: [] for name in members}
    for partition in PARTITIONS:
        share[members[partition % len(members)]].append(str(partition))
    return {name: f"{generation_id}:{','.join(own)}".encode() for name, own in share.items()}


def owned_by(assignment: bytes) -> list[int]:
    _, _, partitions = assignment.decode().partition(":")
    return [int(partition) for partition in partitions.split(",") if partition]


ClassicGroupMachine.TestCase.settings = settings(
    max_examples=by_length(12, 500), stateful_step_count=by_length(50, 100), deadline=None
)
TestClassicGroup = ClassicGroupMachine.TestCase
