"""Properties of every server-side assignor."""

import copy
import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from odradek.coordinator.assignors import ASSIGNORS
from odradek.coordinator.assignors.assignment import Assignor, AssignorError, GroupSpec, MemberSpec
from odradek.coordinator.assignors.simple import SimpleAssignor
from odradek.protocol.errors import ErrorCode
from odradek.protocol.primitives import uuid_text
from tests.support.assigned_groups import (
    Topics,
    group,
    groups,
    owners,
    present,
    small_id,
    with_targets,
)
from tests.support.lengths import by_length

every_assignor = pytest.mark.parametrize("assignor", ASSIGNORS.values(), ids=ASSIGNORS.keys())
random_groups = given(st.booleans().flatmap(lambda same: groups(is_homogeneous=same)))
examples = settings(max_examples=by_length(20, 3000), deadline=None)
T1, T2 = small_id(2), small_id(3)


@every_assignor
@examples
@random_groups
def test_every_partition_of_a_subscribed_topic_has_one_owner_and_that_one_subscribes(
    assignor: Assignor, case: tuple[GroupSpec, Topics]
) -> None:
    spec, topics = case
    targets = assignor.assign(spec, topics)
    assert targets.keys() == spec.members.keys()
    owned = owners(targets)
    assert owned.keys() == {
        (topic_id, partition)
        for member in spec.members.values()
        for topic_id in member.subscribed_topic_ids
        for partition in range(topics.counts[topic_id])
    }
    for (topic_id, _), member_id in owned.items():
        assert topic_id in spec.members[member_id].subscribed_topic_ids
    assert all(all(target.values()) for target in targets.values()), "a topic with no partitions"


@every_assignor
@examples
@random_groups
def test_assigning_again_moves_nothing_and_gives_the_same_objects(
    assignor: Assignor, case: tuple[GroupSpec, Topics]
) -> None:
    spec, topics = case
    targets = assignor.assign(spec, topics)
    again = assignor.assign(with_targets(spec, targets), topics)
    assert all(again[member_id] is target for member_id, target in targets.items())


@every_assignor
@examples
@random_groups
def test_an_equal_target_is_the_very_same_object(
    assignor: Assignor, case: tuple[GroupSpec, Topics]
) -> None:
    spec, topics = case
    for member_id, target in assignor.assign(spec, topics).items():
        present_one = spec.members[member_id].assignment
        assert target is present_one or target != present_one


@every_assignor
@examples
@random_groups
def test_the_order_in_which_members_came_does_not_matter(
    assignor: Assignor, case: tuple[GroupSpec, Topics]
) -> None:
    spec, topics = case
    backwards = dict(reversed([*spec.members.items()]))
    assert assignor.assign(replace(spec, members=backwards), topics) == assignor.assign(
        spec, topics
    )


@every_assignor
@examples
@random_groups
def test_the_present_targets_are_left_as_they_are(
    assignor: Assignor, case: tuple[GroupSpec, Topics]
) -> None:
    spec, topics = case
    before = copy.deepcopy(present(spec))
    assignor.assign(spec, topics)
    assert present(spec) == before


@every_assignor
@pytest.mark.parametrize("other", [{T1}, {T1, T2}])
def test_a_topic_that_does_not_exist_cannot_be_assigned(
    assignor: Assignor, other: set[bytes]
) -> None:
    spec = group({"a": frozenset({T1, T2}), "b": frozenset(other)})
    with pytest.raises(AssignorError) as raised:
        assignor.assign(spec, Topics({T1: 3}))
    assert raised.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    if assignor.name == "uniform":
        assert f"topic {uuid_text(T2)} which doesn't exist" in raised.value.message
    else:
        assert "non-existent topic" in raised.value.message


@every_assignor
def test_a_group_without_members_gets_nothing(assignor: Assignor) -> None:
    assert assignor.assign(group({}), Topics({})) == {}


@every_assignor
def test_a_member_without_subscription_gets_no_partitions(assignor: Assignor) -> None:
    held = {"a": {T1: frozenset({0, 1})}, "b": {T1: frozenset({2})}}
    nothing: frozenset[bytes] = frozenset()
    topics = Topics({T1: 3})
    assert assignor.assign(group({"a": nothing, "b": nothing}, held), topics) == {"a": {}, "b": {}}
    one_left = group({"a": nothing, "b": frozenset({T1})}, held)
    assert assignor.assign(one_left, topics) == {"a": {}, "b": {T1: frozenset({0, 1, 2})}}


@pytest.mark.parametrize("assignor", [*ASSIGNORS.values(), SimpleAssignor()])
def test_few_lines_run_between_two_steps_when_a_member_has_many_topics(assignor: Assignor) -> None:
    topic_ids = [number.to_bytes(16, "big") for number in range(1_000)]
    member = MemberSpec(member_id="a", subscribed_topic_ids=frozenset(topic_ids))
    spec = GroupSpec(members={"a": member}, is_homogeneous=True)
    topics = Topics(dict.fromkeys(topic_ids, 1))
    lines = longest = 0

    def step() -> None:
        nonlocal lines, longest
        lines, longest = 0, max(lines, longest)

    def trace(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        assignor.assign(spec, topics, step)
    finally:
        sys.settrace(before)
    step()
    assert longest < 1.5 * len(topic_ids)
