"""A state machine test of a share group, its members and administrators, and its stored states.

Members come, send heartbeats and leave. Topics are created and deleted, also while the coordinator
is not served. Administrators set start offsets and delete the group, also in a step of each other.
Logs of states go offline, appends fail, the coordinator starts again. At the end all logs are
online and all members send heartbeats: they read every partition, the group epoch stands still, and
start offsets that were confirmed count.
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from odradek.coordinator.groups import share_group_service
from odradek.coordinator.share_groups.group import ShareGroup
from odradek.protocol.errors import ApiError, ErrorCode
from tests.support.both_lives import assert_log_agrees
from tests.support.groups import GROUP
from tests.support.lengths import by_length
from tests.support.share_members import RETRY_MS, ShareMembers

TOPICS = ("a", "b")
PARTITIONS = 3
places = st.tuples(st.sampled_from(TOPICS), st.integers(0, PARTITIONS - 1))
members = st.sampled_from(["m", "n"])


class ShareGroupMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(share_group_service, "STATES_PER_TURN", 2)
        self.share = ShareMembers(a=PARTITIONS, b=PARTITIONS)
        self.subscribed: dict[str, list[str]] = {}
        self.confirmed: dict[tuple[str, int], int] = {}

    # -- members

    @rule(member=members, topics=st.lists(st.sampled_from(TOPICS), min_size=1, unique=True))
    def comes(self, member: str, topics: list[str]) -> None:
        self.share.epochs[member] = 0
        self.subscribed[member] = topics
        self.sends(member)

    @rule(member=members)
    def sends(self, member: str) -> None:
        if member in self.subscribed:
            joins = not self.share.epochs[member]
            self.share.beat(member, *(self.subscribed[member] if joins else ()))

    @rule(member=members)
    def leaves(self, member: str) -> None:
        if member in self.subscribed:
            self.share.leave(member)
            del self.subscribed[member]

    # -- administrators

    @rule(what=st.sampled_from(("group", *TOPICS)), is_served=st.booleans())
    def deletes(self, what: str, is_served: bool = True) -> None:
        if what == "group":
            if self.share.delete_group() is not ErrorCode.NON_EMPTY_GROUP:
                self.confirmed.clear()
        elif what in self.share.metadata.state.topics:
            self.confirmed = {place: at for place, at in self.confirmed.items() if place[0] != what}
            if is_served:
                self.share.delete_topic(what)
            else:
                self.share.lose_topic(what)
                self.starts_again()

    @rule(topic=st.sampled_from(TOPICS))
    def creates_topic(self, topic: str) -> None:
        if topic not in self.share.metadata.state.topics:
            self.share.topic(topic, PARTITIONS)

    @rule(
        wanted=st.sets(places, min_size=1),
        offset=st.integers(1, 100),
        at_step=st.integers(1, 40),
        deleted=st.sampled_from([None, None, "group", *TOPICS]),
    )
    def sets_offsets(
        self, wanted: set[tuple[str, int]], offset: int, at_step: int, deleted: str | None
    ) -> None:
        """In one of the steps the group or a topic may be deleted."""
        by_topic: dict[str, dict[int, int]] = {}
        for topic, partition in wanted:
            by_topic.setdefault(topic, {})[partition] = offset
        left = at_step

        def step() -> None:
            nonlocal left
            left -= 1
            if left == 0 and deleted is not None:
                self.deletes(deleted)

        try:
            answer = self.share.alter(step, **by_topic)
        except ApiError as error:
            if error.code is not ErrorCode.NON_EMPTY_GROUP:
                for place in wanted:
                    self.confirmed.pop(place, None)
            return
        for topic, codes in answer.items():
            for partition, code in zip(by_topic[topic], codes, strict=True):
                if code is ErrorCode.NONE and (left > 0 or deleted not in ("group", topic)):
                    self.confirmed[topic, partition] = offset

    # -- what else happens

    @rule(place=places)
    def a_log_goes_offline(self, place: tuple[str, int]) -> None:
        self.share.states.refused.add(place)

    @rule()
    def all_logs_are_online(self) -> None:
        self.share.states.refused.clear()

    @rule()
    def an_append_fails(self) -> None:
        self.share.groups.logs[0].fail_next = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "offline")

    @rule(by_ms=st.sampled_from([None, 0, RETRY_MS]))
    def time_passes(self, by_ms: int | None) -> None:
        if by_ms is None:
            self.share.groups.loop.turn()
        else:
            self.share.groups.advance(by_ms)

    @rule()
    def starts_again(self) -> None:
        self.share.groups.logs[0].fail_next = None
        self.share.restart()

    # -- what must hold

    @invariant()
    def confirmed_start_offsets_count(self) -> None:
        starts = self.share.starts()
        assert {place: starts[place] for place in self.confirmed} == self.confirmed

    @invariant()
    def no_state_stays_of_which_the_group_does_not_know(self) -> None:
        group = self.share.groups.coordinator.shards.of(GROUP).state.groups.get(GROUP)
        assert isinstance(group, ShareGroup) or not self.share.states.kept
        for key in self.share.states.kept:
            state = group.state_partitions
            is_stored = key.topic_id in state.stored() and (
                key.partition in state.stored()[key.topic_id].partitions
            )
            assert is_stored or key.topic_id in state.deleting, key

    def teardown(self) -> None:
        self.patch.undo()
        self.share.groups.logs[0].fail_next = None
        self.share.states.refused.clear()
        for topic in TOPICS:
            self.creates_topic(topic)
        self.comes("m", list(TOPICS))
        for _ in range(4):
            for member in self.subscribed:
                self.sends(member)
                self.sends(member)
            self.share.groups.advance(RETRY_MS)
        for member in self.subscribed:
            self.sends(member)
            self.sends(member)
        every = {(topic, partition) for topic in TOPICS for partition in range(PARTITIONS)}
        epoch = self.share.group.epoch
        self.share.settle()
        assert self.share.assigned() == every
        assert self.share.group.epoch == epoch
        assert self.share.starts().keys() == every
        self.confirmed_start_offsets_count()
        assert_log_agrees(self.share.groups)
        for member in list(self.subscribed):
            self.leaves(member)
        assert self.share.delete_group() is ErrorCode.NONE
        assert not self.share.starts()


ShareGroupMachine.TestCase.settings = settings(
    max_examples=by_length(25, 300), stateful_step_count=by_length(25, 60), deadline=None
)
TestShareGroupAndItsStates = ShareGroupMachine.TestCase
