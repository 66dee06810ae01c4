"""Random lives of a streams group: its log says what it is, and it always comes to rest.

Members are threads of a few processes, with a store, and standby tasks. They report what they own,
late or not at all; they join, leave, and fall silent. Source topics grow, internal topics appear
when the broker creates them, appends fail, the broker restarts. At any moment, no task is active in
two members, and no process has a task twice. At the end everybody sends heartbeats, and each task
has one owner.
"""

from collections import Counter
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from odradek.coordinator.streams_groups.member import StreamsMember
from odradek.protocol.errors import ApiError, ErrorCode
from tests.support.both_lives import assert_log_agrees
from tests.support.lengths import by_length
from tests.support.streams_members import WORD_COUNT, StreamsMembers

MEMBERS = ("p1", "p2", "q1", "r1")
members = st.sampled_from(MEMBERS)


def held(member: StreamsMember, *, pending: bool = True) -> dict[str, dict[str, list[int]]]:
    """What a client that has not given anything up yet reports: its tasks by kind."""
    tasks = [member.assigned, *([member.pending_revocation] if pending else [])]
    active: dict[str, set[int]] = {}
    standby: dict[str, set[int]] = {}
    for owned in tasks:
        for name, epochs in owned.active.items():
            active.setdefault(name, set()).update(epochs)
        for name, partitions in owned.standby.items():
            standby.setdefault(name, set()).update(partitions)
    return {
        "owned": {name: sorted(found) for name, found in active.items()},
        "owned_standby": {name: sorted(found) for name, found in standby.items()},
    }


class StreamsGroupLife(RuleBasedStateMachine):
    """One group."""

    @initialize(replicas=st.sampled_from(["0", "1"]), delay_ms=st.sampled_from([0, 3_000]))
    def start(self, replicas: str, delay_ms: int) -> None:
        self.rig = StreamsMembers(
            overrides={"streams.num.standby.replicas": replicas},
            initial_rebalance_delay_ms=delay_ms,
        )
        self.rig.topic("lines", 2)
        for member in MEMBERS[1:3]:
            self.join(member)
        self.rig.advance(delay_ms)
        self.everybody_beats()

    @property
    def present(self) -> dict[str, StreamsMember]:
        try:
            return dict(self.rig.group.members)
        except ApiError:
            return {}

    @rule(member=members)
    def join(self, member: str) -> None:
        self.rig.join(member, WORD_COUNT, process=member[0])

    @rule(member=members, reports=st.sampled_from(["nothing", "all", "what it keeps"]))
    def beat(self, member: str, reports: str) -> None:
        known = self.present.get(member)
        if known is None:
            return
        words: dict[str, Any] = {}
        if reports != "nothing":
            words = held(known, pending=reports == "all")
        reply = self.rig.send(member, known.member_epoch, **words)
        assert reply.response.error_code == ErrorCode.NONE, reply
        self.rig.create_missing(reply)

    @rule(reports=st.sampled_from(["all", "what it keeps"]))
    def everybody_beats(self, reports: str = "what it keeps") -> None:
        for member in MEMBERS:
            self.beat(member, reports)

    @rule(member=members)
    def leave(self, member: str) -> None:
        if member in self.present:
            self.rig.leave(member)

    @rule(partitions=st.integers(3, 5))
    def grow(self, partitions: int) -> None:
        """All topics grow together, as an administrator must do it."""
        topics = self.rig.metadata.state.topics
        for name in ("lines", "words", "counts"):
            if name in topics and len(topics[name].partitions) < partitions:
                self.rig.grow(name, partitions)

    @rule(by_ms=st.sampled_from([1_000, 5_000, 30_000]))
    def time_passes(self, by_ms: int) -> None:
        self.rig.advance(by_ms)

    @rule(member=members)
    def an_append_fails(self, member: str) -> None:
        log = self.rig.groups.logs[0]
        log.fail_next = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk says no")
        self.rig.join(member, WORD_COUNT, process=member[0])
        log.fail_next = None

    @rule()
    def restart(self) -> None:
        self.rig.restart()

    @invariant()
    def the_log_says_what_the_group_is(self) -> None:
        assert_log_agrees(self.rig.groups)

    @invariant()
    def no_task_is_twice_where_it_must_not_be(self) -> None:
        actives: Counter[tuple[str, int]] = Counter()
        by_process: Counter[tuple[str, str, int]] = Counter()
        for member in self.present.values():
            tasks = set()  # a member may have a task as another kind before it gives up the first
            for owned in (member.assigned, member.pending_revocation):
                active = [(name, one) for name, found in owned.active.items() for one in found]
                copies = [(name, one) for name, found in owned.standby.items() for one in found]
                actives.update(active)
                tasks.update((*active, *copies))
            by_process.update((member.process_id, *task) for task in tasks)
        assert not actives or max(actives.values()) == 1, actives
        assert not by_process or max(by_process.values()) == 1, by_process

    def teardown(self) -> None:
        if not hasattr(self, "rig") or not self.present:
            return
        self.rig.advance(5_000)  # an initial rebalance delay passes
        for _ in range(12):
            for member in MEMBERS:
                self.beat(member, "what it keeps")
        if not self.present:
            return
        assert self.rig.group.state_name == "Stable", self.rig.group.state_name
        tasks = Counter(
            (name, partition)
            for member in self.present.values()
            for name, epochs in member.assigned.active.items()
            for partition in epochs
        )
        count = len(self.rig.metadata.state.topics["lines"].partitions)
        assert tasks == Counter((name, one) for name in "01" for one in range(count))


StreamsGroupLife.TestCase.settings = settings(
    max_examples=by_length(6, 600), stateful_step_count=by_length(40, 80), deadline=None
)
TestStreamsGroupLife = StreamsGroupLife.TestCase
