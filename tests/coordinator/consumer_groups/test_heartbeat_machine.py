"""A state machine test of a consumer group and its clients.

Clients join, report, give partitions up early or late, change their subscription, lose responses,
leave, leave temporarily and come back under another id, or stop. Topics are created, extended and
deleted. Appends fail. The broker restarts. Invariants: no partition is owned by two clients that
are members, and a replay of the log gives the same group. When all clients keep sending heartbeats,
the group becomes stable, and every partition is owned by exactly one subscriber.
"""

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
)

from odradek.coordinator.consumer_groups.group import ConsumerState
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from tests.support.group_snapshot import consumer_group_snapshot
from tests.support.groups import GROUP
from tests.support.heartbeats import REBALANCE_MS, Heartbeats
from tests.support.lengths import by_length

TOPICS = ("t-a", "t-b", "u")
PATTERN = "t-.*"
REJOIN = {
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
}
PASSING = {ErrorCode.NOT_COORDINATOR}
Owned = dict[str, set[int]]

subscriptions = st.one_of(
    st.lists(st.sampled_from(TOPICS), unique=True, max_size=3).map(lambda names: (names, "")),
    st.just(([], PATTERN)),
)


@dataclass(eq=False)
class Client:
    """A consumer's state: its epoch, the partitions it owns, and the assignment it received.

    It reports what it owns when that has changed, not while it is still on its way to what it was
    told; and says all when it joins, or does not know whether it was heard.
    """

    member_id: str
    instance: str | None
    names: list[str]
    regex: str
    epoch: int = 0
    owned: Owned = field(default_factory=dict)
    reported: Owned | None = None
    told: Owned | None = None
    has_changed_its_mind: bool = False
    says_all: bool = True
    is_silent: bool = False


class Group(RuleBasedStateMachine):
    clients = Bundle("clients")

    def __init__(self) -> None:
        super().__init__()
        self.beats = Heartbeats(assignment_interval_ms=1_000)
        self.living: list[Client] = []
        self.drawn = 0

    @initialize()
    def create_topics(self) -> None:
        for name in TOPICS[:2]:
            self.beats.topic(name, 2)

    # -- what clients do ---------------------------------------------------------------------------

    @rule(target=clients, subscription=subscriptions, static=st.booleans())
    def comes(self, subscription: tuple[list[str], str], static: bool) -> Client:
        self.drawn += 1
        instance = f"instance {self.drawn}" if static else None
        client = Client(f"m{self.drawn}", instance, *subscription)
        self.living.append(client)
        return client

    @rule(client=clients, answer_is_lost=st.booleans())
    def beat(self, client: Client, answer_is_lost: bool = False) -> None:
        if client.is_silent:
            return
        answer = self.send(client)
        if answer_is_lost:
            self.reconciles(client)
            client.says_all = True
        else:
            self.hear(client, answer)

    @rule(client=clients)
    def reconciles(self, client: Client) -> None:
        if client.told is not None:
            client.owned, client.told = client.told, None

    @rule(client=clients, subscription=subscriptions)
    def changes_its_mind(self, client: Client, subscription: tuple[list[str], str]) -> None:
        client.names, client.regex = subscription
        client.has_changed_its_mind = True

    @rule(client=consumes(clients))
    def leaves(self, client: Client) -> None:
        self.beats.leave(client.member_id, instance=client.instance)
        self.living.remove(client)

    @rule(client=clients)
    def goes_for_a_while_and_comes_back(self, client: Client) -> None:
        if client.instance is None or not client.epoch or client.is_silent:
            return
        self.beats.beat(client.member_id, -2, instance=client.instance)
        self.drawn += 1
        client.member_id = f"m{self.drawn}"
        self.forget(client)

    @rule(client=clients)
    def falls_silent(self, client: Client) -> None:
        client.is_silent = True

    def send(self, client: Client) -> ConsumerGroupHeartbeatResponse:
        """A heartbeat, which says what is new, or all."""
        subscribes = client.says_all or client.has_changed_its_mind
        reports = client.says_all or (client.told is None and client.owned != client.reported)
        if reports:
            client.reported = dict(client.owned)
        client.has_changed_its_mind = False
        known = self.beats.metadata.state.topics
        owned = {name: sorted(has) for name, has in client.owned.items() if name in known}
        return self.beats.beat(
            client.member_id,
            client.epoch,
            owned=owned if reports else None,
            topics=client.names if subscribes else None,
            regex=client.regex if subscribes else None,
            instance=client.instance,
            rebalance_timeout_ms=REBALANCE_MS if client.says_all else -1,
        )

    def hear(self, client: Client, answer: ConsumerGroupHeartbeatResponse) -> None:
        code = ErrorCode(answer.error_code)
        if code in PASSING:
            self.reconciles(client)
            client.says_all = True
            return
        if code is not ErrorCode.NONE:
            assert code in REJOIN or client.instance, answer
            self.forget(client)
            return
        client.epoch, client.says_all = answer.member_epoch, False
        told = self.beats.assigned(answer)
        if told is not None:
            client.told = {name: set(partitions) for name, partitions in told.items()}

    @staticmethod
    def forget(client: Client) -> None:
        client.epoch, client.owned, client.told, client.says_all = 0, {}, None, True
        client.reported = None

    # -- what else happens -------------------------------------------------------------------------

    @rule(by_ms=st.sampled_from([1, 500, 2_000, 11_000, 46_000]))
    def time_passes(self, by_ms: int) -> None:
        self.beats.advance(by_ms)

    @rule(name=st.sampled_from(TOPICS))
    def a_topic_comes_or_grows(self, name: str) -> None:
        topic = self.beats.metadata.state.topics.get(name)
        if topic is None:
            self.beats.topic(name, 2)
        elif len(topic.partitions) < 5:
            self.beats.grow(name, len(topic.partitions) + 1)

    @rule(name=st.sampled_from(TOPICS))
    def a_topic_goes(self, name: str) -> None:
        if name in self.beats.metadata.state.topics:
            self.beats.delete(name)
            for client in self.living:
                client.owned.pop(name, None)
                if client.told is not None:
                    client.told.pop(name, None)

    @rule()
    def an_append_fails(self) -> None:
        self.beats.fail_next_append()

    @rule()
    def the_broker_starts_anew(self) -> None:
        self.beats.groups.logs[0].fail_next = None
        before = self.snapshot()
        self.beats = self.beats.restarted()
        assert self.snapshot() == before

    def snapshot(self) -> object:
        group = self.beats.groups.coordinator.shards.of(GROUP).state.find_consumer(GROUP)
        return None if group is None else consumer_group_snapshot(group)

    # -- what must hold ----------------------------------------------------------------------------

    @invariant()
    def no_partition_is_with_two_members(self) -> None:
        group = self.beats.groups.coordinator.shards.of(GROUP).state.find_consumer(GROUP)
        members = {} if group is None else group.members
        owned = [
            (name, partition)
            for client in self.living
            if client.member_id in members
            for name, partitions in client.owned.items()
            for partition in partitions
        ]
        assert len(owned) == len(set(owned)), owned

    def teardown(self) -> None:
        self.beats.groups.logs[0].fail_next = None
        living = [client for client in self.living if not client.is_silent]
        for _ in range(14):
            for client in living:
                self.beat(client)
                self.reconciles(client)
            self.no_partition_is_with_two_members()
            self.beats.advance(11_000)
        if living:
            self.all_is_well(living)

    def all_is_well(self, living: list[Client]) -> None:
        group = self.beats.group()
        assert set(group.members) == {client.member_id for client in living}
        assert group.state is ConsumerState.STABLE
        topics = self.beats.metadata.state.topics
        wanted = {
            (name, partition)
            for client in living
            for name in topics
            if name in client.names or (client.regex and name.startswith("t-"))
            for partition in topics[name].partitions
        }
        owned = {
            (name, partition)
            for client in living
            for name, partitions in client.owned.items()
            for partition in partitions
        }
        assert owned == wanted


Group.TestCase.settings = settings(
    max_examples=by_length(10, 600), stateful_step_count=by_length(40, 80), deadline=None
)
TestConsumerGroupAndItsClients = Group.TestCase
