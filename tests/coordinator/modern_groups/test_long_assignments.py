"""An assignment of very many partitions is written, replayed and described in steps."""

from types import ModuleType
from typing import Any

import pytest

from odradek.coordinator.consumer_groups import records as of_consumers
from odradek.coordinator.consumer_groups.description import described as described_consumers
from odradek.coordinator.consumer_groups.group import ConsumerGroup
from odradek.coordinator.consumer_groups.leave import Departures
from odradek.coordinator.consumer_groups.member import ConsumerMember
from odradek.coordinator.runtime.timers import Now
from odradek.coordinator.share_groups import records as of_shares
from odradek.coordinator.share_groups.description import described as described_shares
from odradek.coordinator.share_groups.group import ShareGroup
from odradek.coordinator.share_groups.member import ShareMember
from odradek.coordinator.share_groups.state_partitions import StatePartitions, TopicOfState
from odradek.coordinator.streams_groups import records as of_streams
from odradek.coordinator.streams_groups.description import described as described_streams
from odradek.coordinator.streams_groups.group import StreamsGroup
from odradek.coordinator.streams_groups.leave import leave_for_a_while
from odradek.coordinator.streams_groups.member import StreamsMember
from odradek.coordinator.streams_groups.tasks import OwnedTasks, Tasks
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.records.streams_group import StreamsGroupTopologyValue

MANY = 1_000
IDS = [number.to_bytes(16, "big") for number in range(MANY)]
TARGET = dict.fromkeys(IDS, frozenset({0}))
TASKS = {"0": frozenset(range(MANY))}
OWNED = dict.fromkeys(range(MANY), 1)  # with the epochs of the assignment


class Steps:
    """Counts steps."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self) -> None:
        self._count += 1

    def since(self) -> int:
        """The number of steps since the last question."""
        count, self._count = self._count, 0
        return count


@pytest.mark.parametrize(
    ("records", "group", "member", "target"),
    [
        (
            of_consumers,
            ConsumerGroup("g"),
            ConsumerMember(member_id="m", assigned={topic_id: {0: 1} for topic_id in IDS}),
            TARGET,
        ),
        (of_shares, ShareGroup("g"), ShareMember(member_id="m", assigned=TARGET), TARGET),
        (
            of_streams,
            StreamsGroup("g"),
            StreamsMember(member_id="m", assigned=OwnedTasks({"0": dict.fromkeys(TASKS["0"], 1)})),
            Tasks(TASKS),
        ),
    ],
    ids=["consumer", "share", "streams"],
)
def test_of_a_member(records: ModuleType, group: Any, member: Any, target: Any) -> None:
    steps = Steps()
    made = [
        records.target_record("g", "m", target, steps).value,
        records.current_assignment_record("g", member, steps).value,
    ]
    if records is not of_streams:  # its tasks are in one entry
        assert steps.since() >= 2 * MANY
    group.replay_target("m", made[0], steps)
    assert group.targets["m"] == target
    assert steps.since() >= MANY
    for _ in range(2):  # of a new member, and of a known one
        group.replay_current_assignment("m", made[1], steps)
        assert group.members["m"].assigned == member.assigned
        assert records is of_shares or steps.since() >= MANY


@pytest.mark.parametrize(
    ("records", "group", "member"),
    [
        (
            of_consumers,
            ConsumerGroup("g"),
            ConsumerMember(member_id="m", assigned={IDS[0]: OWNED}),
        ),
        (
            of_streams,
            StreamsGroup("g"),
            StreamsMember(
                member_id="m",
                process_id="p",
                assigned=OwnedTasks({f"{number:04}": {0: 1} for number in range(MANY)}),
            ),
        ),
        (
            of_streams,
            StreamsGroup("g"),
            StreamsMember(
                member_id="m",
                process_id="p",
                assigned=OwnedTasks({"0": OWNED}),
            ),
        ),
    ],
    ids=["one topic", "many subtopologies", "one subtopology"],
)
def test_of_what_a_member_owns(records: ModuleType, group: Any, member: Any) -> None:
    steps = Steps()
    value = records.current_assignment_record("g", member, steps).value
    assert steps.since() >= MANY, "its record"
    group.replay_current_assignment("m", value, steps)
    assert steps.since() >= 2 * MANY, "the value, and the new owner"
    assert member.owned_count == MANY
    group.replay_current_assignment("m", value, steps)
    assert steps.since() >= 3 * MANY, "the old owner too"
    group.replay_current_assignment("m", None, steps)
    assert steps.since() >= MANY, "it owns nothing any more"


def test_of_a_streams_member_that_reports_about_itself() -> None:
    steps = Steps()
    group = StreamsGroup("g")
    member = StreamsMember(member_id="m", assigned=OwnedTasks({"0": OWNED}))
    value = of_streams.current_assignment_record("g", member).value
    group.replay_current_assignment("m", value)
    group.replay_member("m", of_streams.member_record("g", member).value, steps)
    assert steps.since() >= 2 * MANY


def test_of_a_static_member_that_leaves_for_a_while() -> None:
    steps, now = Steps(), Now(0, 0)
    consumers = ConsumerGroup("g")
    consumers.members["m"] = ConsumerMember(
        member_id="m", instance_id="i", assigned={IDS[0]: OWNED}
    )
    consumers.static_member_ids["i"] = "m"
    request = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="m", member_epoch=-2, instance_id="i"
    )
    departures = Departures(None, None, None)  # type: ignore[arg-type] # not asked
    departures.leave(consumers, request, now, steps)
    assert steps.since() >= 2 * MANY
    streams = StreamsMember(member_id="m", assigned=OwnedTasks({"0": OWNED}))
    leave_for_a_while(StreamsGroup("g"), streams, now, None, steps)
    assert steps.since() >= 2 * MANY


def test_of_a_consumer_that_is_described() -> None:
    steps = Steps()
    group = ConsumerGroup("g")
    group.targets["m"] = TARGET
    for owned in ("assigned", "pending_revocation"):
        partitions = {topic_id: {0: 1} for topic_id in IDS}
        group.members["m"] = ConsumerMember(member_id="m", **{owned: partitions})
        (member,) = described_consumers(group, "uniform", lambda _: "t", 0, steps).members
        assert len(member.assignment.topic_partitions) == MANY
        assert len(member.target_assignment.topic_partitions) == MANY
        assert steps.since() >= 3 * MANY


def test_of_a_share_consumer_that_is_described() -> None:
    steps = Steps()
    steps_per_topic = []

    class Noted(dict[bytes, frozenset[int]]):
        def __getitem__(self, topic_id: bytes) -> frozenset[int]:
            steps_per_topic.append(steps.since())
            return super().__getitem__(topic_id)

    group = ShareGroup("g")
    group.members["m"] = ShareMember(member_id="m", assigned=Noted(TARGET))
    described_shares(group, "simple", lambda _: "t", 0, steps)
    assert len(steps_per_topic) == MANY
    assert all(steps_per_topic)


def test_of_a_streams_member_that_is_described() -> None:
    steps = Steps()
    tasks = {topic_id.hex(): frozenset({0}) for topic_id in IDS}
    group = StreamsGroup("g")
    group.replay_topology(StreamsGroupTopologyValue(epoch=0, subtopologies=[]))
    group.targets["m"] = Tasks(tasks)
    assigned = OwnedTasks({name: {0: 1} for name in tasks}, tasks, tasks)
    group.members["m"] = StreamsMember(member_id="m", assigned=assigned)
    described_streams(group, 0, steps, wants_readable_topology=False)
    assert steps.since() >= 4 * MANY


def test_of_the_stored_states_of_a_share_group() -> None:
    steps = Steps()
    topics = {topic_id: TopicOfState("t", frozenset({0}), 5) for topic_id in IDS}
    state = StatePartitions(initialized=topics)
    value = of_shares.state_partitions_record("g", state, lambda _: None, steps).value
    assert steps.since() >= MANY
    group = ShareGroup("g")
    group.replay_state_partitions(value, 5, steps)
    assert group.state_partitions == state
    assert steps.since() >= MANY


def test_of_the_subscription_of_a_consumer() -> None:
    steps = Steps()
    names = frozenset(f"t{number:04}" for number in range(MANY))
    for records, group, member in (
        (of_consumers, ConsumerGroup("g"), ConsumerMember(member_id="m", subscribed_topics=names)),
        (of_shares, ShareGroup("g"), ShareMember(member_id="m", subscribed_topics=names)),
    ):
        value = records.subscription_record("g", member, steps).value
        steps.since()
        group.replay_member("m", value, steps)
        assert group.members["m"].subscribed_topics == names
        assert steps.since() >= 2 * MANY
