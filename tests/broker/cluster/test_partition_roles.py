"""Who leads a partition of a played cluster: pure decisions."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.cluster.partition_roles import (
    Roles,
    cancelled,
    completed,
    elected,
    moved,
    new_roles,
    reassigned,
    shrunk,
    spread,
    with_node,
    without_node,
)

NODES = (1, 2, 3)
ALONE = dict.fromkeys(NODES)


def test_the_next_replica_in_sync_leads_when_the_leader_dies() -> None:
    roles = shrunk(new_roles(NODES, NODES), [3])
    assert without_node(roles, 1, {2, 3}, min_isr=1) == Roles(NODES, (3,), 3)


def test_a_node_that_comes_back_is_in_sync_and_leads_nothing() -> None:
    roles = without_node(new_roles(NODES, NODES), 1, {2, 3}, min_isr=1)
    assert with_node(roles, 1, NODES, min_isr=1) == Roles(NODES, NODES, 2)


def test_what_leaves_a_small_in_sync_set_may_still_lead() -> None:
    roles = new_roles((1, 2), NODES)
    one = without_node(roles, 1, {2, 3}, min_isr=2)
    assert (one.leader, one.eligible) == (2, (1,))
    none = without_node(one, 2, {3}, min_isr=2)
    assert (none.leader, none.isr, none.eligible) == (-1, (), (1, 2))
    back = with_node(none, 1, {1, 3}, min_isr=2)
    assert (back.leader, back.isr, back.eligible) == (1, (1,), (2,))


def test_only_an_unclean_election_lets_others_lead() -> None:
    roles = without_node(shrunk(new_roles(NODES, NODES), []), 1, {2, 3}, min_isr=1)
    assert elected(roles, {2, 3}).leader == -1
    assert elected(roles, {2, 3}, unclean=True) == Roles(NODES, (2,), 2)


def test_a_leader_moves_to_a_replica_in_sync_only() -> None:
    roles = new_roles((1, 2), NODES)
    assert moved(roles, 2, NODES) == Roles((1, 2), (1, 2), 2)
    assert moved(roles, 3, NODES) is None
    assert moved(roles, 2, {1, 3}) is None


def test_a_reassignment_has_both_sets_until_it_is_complete() -> None:
    begun = reassigned(new_roles((1, 2), NODES), (3, 2))
    assert (begun.replicas, begun.adding, begun.removing) == ((3, 2, 1), (3,), (1,))
    assert completed(begun, NODES) == Roles((3, 2), (2, 3), 3)
    assert cancelled(begun, NODES) == Roles((2, 1), (1, 2), 1)


@given(st.text(min_size=1), st.integers(1, 7), st.integers(1, 60), st.integers(1, 7))
def test_leaders_and_replicas_are_spread_evenly(
    topic: str, nodes: int, partitions: int, factor: int
) -> None:
    factor = min(factor, nodes)
    racks = dict.fromkeys(range(1, nodes + 1))
    placed = [spread(topic, index, factor, racks, racks) for index in range(partitions)]
    assert all(len(set(replicas)) == factor for replicas in placed)
    leaders = Counter(replicas[0] for replicas in placed)
    assert max(leaders.values()) - min(leaders[node] for node in racks) <= 1


@given(st.text(min_size=1), st.sets(st.integers(1, 5), min_size=1), st.integers(1, 5))
def test_live_nodes_lead_and_dead_ones_come_last(topic: str, live: set[int], factor: int) -> None:
    racks = dict.fromkeys(range(1, 6))
    placed = [spread(topic, index, factor, racks, live) for index in range(20)]
    assert {replicas[0] for replicas in placed} == live
    for replicas in placed:
        assert len(set(replicas)) == factor
        assert [node in live for node in replicas] == sorted(
            (node in live for node in replicas), reverse=True
        )


def test_neighbours_are_in_different_racks() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    placed = [spread("orders", index, 2, racks, racks) for index in range(4)]
    assert all({racks[node] for node in replicas} == {"a", "b"} for replicas in placed)


events = st.lists(st.tuples(st.sampled_from(("lost", "back")), st.sampled_from(NODES)))


@given(events, st.integers(1, 3))
def test_the_leader_is_always_live_and_in_sync(
    happened: list[tuple[str, int]], min_isr: int
) -> None:
    roles, live = new_roles(NODES, NODES), set(NODES)
    for event, node in happened:
        if event == "lost" and node in live:
            live.discard(node)
            roles = without_node(roles, node, live, min_isr)
        elif event == "back" and node not in live:
            live.add(node)
            roles = with_node(roles, node, live, min_isr)
        assert roles.leader == -1 or roles.leader in live & set(roles.isr)
        assert roles.isr or roles.eligible
    for node in NODES:
        live.add(node)
        roles = with_node(roles, node, live, min_isr)
    assert sorted(roles.isr) == list(NODES)
