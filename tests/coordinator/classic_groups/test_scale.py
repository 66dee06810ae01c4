"""A thousand members in one group: what a request costs does not grow with the group."""

from collections.abc import Callable

import pytest

from odradek.coordinator.classic_groups.group import ClassicState
from tests.support.call_counts import steps_of
from tests.support.groups import Groups


def a_joining_group(size: int) -> tuple[Groups, list[str]]:
    """A new group that still collects its members."""
    groups = Groups(initial_rebalance_delay_ms=3_000)
    return groups, [groups.parked_join()[0] for _ in range(size)]


def a_stable_group(size: int) -> tuple[Groups, list[str]]:
    groups, members = a_joining_group(size)
    groups.advance(6_000)
    for member_id in [*members[1:], members[0]]:
        groups.send_sync(member_id)
    assert groups.group().state is ClassicState.STABLE
    return groups, members


def cost_of_a_new_member(size: int) -> int:
    groups, _ = a_joining_group(size)
    return steps_of(groups.parked_join)


def cost_of_a_rejoin(size: int) -> int:
    groups, members = a_stable_group(size)
    groups.parked_join()
    # All but the first are back: whoever looks for one that is missing looks at all of them.
    for member_id in members[2:]:
        groups.send_join(member_id)
    return steps_of(lambda: groups.send_join(members[1]))


def cost_of_a_sync(size: int) -> int:
    groups, members = a_joining_group(size)
    groups.advance(6_000)
    return steps_of(lambda: groups.send_sync(members[-1]))


def cost_of_a_heartbeat(size: int) -> int:
    groups, members = a_stable_group(size)
    return steps_of(lambda: groups.heartbeat(members[-1]))


def cost_of_a_static_member_that_returns_in_a_rebalance(size: int) -> int:
    groups, _ = a_joining_group(size)
    groups.parked_join(instance="i1")
    return steps_of(lambda: groups.parked_join(instance="i1"))


@pytest.mark.parametrize(
    "cost",
    [
        cost_of_a_new_member,
        cost_of_a_rejoin,
        cost_of_a_sync,
        cost_of_a_heartbeat,
        cost_of_a_static_member_that_returns_in_a_rebalance,
    ],
)
def test_a_request_costs_as_much_in_a_large_group_as_in_a_small_one(
    cost: Callable[[int], int],
) -> None:
    # The alarm of the loop is set now and then, and a heap is a little deeper.
    assert cost(200) <= cost(20) + 10


def test_the_counts_are_those_of_the_members() -> None:
    groups, members = a_stable_group(5)
    groups.parked_join()
    groups.send_join(members[1])
    groups.send_join(members[1])
    roster = groups.group().roster
    assert roster.joined == sum(member.awaits_join for member in roster.by_id.values()) == 2
