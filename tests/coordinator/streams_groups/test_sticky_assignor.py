"""The sticky assignor: every task has one owner, shares are even, and little moves."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.assignors.assignment import AssignorError
from odradek.coordinator.streams_groups.configuration import ConfiguredSubtopology
from odradek.coordinator.streams_groups.sticky_assignor import MemberSpec, assign
from odradek.coordinator.streams_groups.tasks import Tasks


def subtopology(task_count: int, *, stateful: bool = False) -> ConfiguredSubtopology:
    changelogs = {"log": None} if stateful else {}
    return ConfiguredSubtopology(
        task_count=task_count,
        source_topics=frozenset(),
        repartition_sources={},
        repartition_sinks=frozenset(),
        changelogs=changelogs,  # type: ignore[arg-type] # only whether there are any counts
    )


def members(**process_of: str) -> dict[str, MemberSpec]:
    return {member: MemberSpec(process, Tasks()) for member, process in process_of.items()}


def again(processes: Mapping[str, str], before: Mapping[str, Tasks]) -> dict[str, MemberSpec]:
    """Members with the targets that they had, if any."""
    return {
        member: MemberSpec(process, before.get(member, Tasks()))
        for member, process in processes.items()
    }


def active(targets: Mapping[str, Tasks]) -> dict[str, int]:
    return {member: sum(map(len, tasks.active.values())) for member, tasks in targets.items()}


def test_nobody_gets_nothing() -> None:
    with pytest.raises(AssignorError):
        assign({}, {"0": subtopology(1)}, 0)


def test_members_of_one_process_share_its_tasks() -> None:
    targets = assign(members(a="p", b="p", c="q", d="q"), {"0": subtopology(8)}, 0)
    assert active(targets) == {"a": 2, "b": 2, "c": 2, "d": 2}


def test_a_newcomer_gets_its_share_and_the_others_keep_theirs() -> None:
    topology = {"0": subtopology(6)}
    before = assign(members(a="p", b="q"), topology, 0)
    after = assign(again({"a": "p", "b": "q", "c": "r"}, before), topology, 0)
    assert active(after) == {"a": 2, "b": 2, "c": 2}
    for member in ("a", "b"):
        assert after[member].active["0"] <= before[member].active["0"]


def test_a_standby_becomes_active_when_the_owner_is_gone() -> None:
    topology = {"0": subtopology(3, stateful=True)}
    before = assign(members(a="p", b="q", c="r"), topology, 1)
    left = {"b": "q", "c": "r"}
    after = assign(again(left, before), topology, 1)
    lost = before["a"].active["0"]
    for member in left:
        promoted = before[member].standby.get("0", frozenset()) & lost
        assert promoted <= after[member].active["0"]


def test_tasks_without_stores_have_no_standby() -> None:
    targets = assign(
        members(a="p", b="q"), {"0": subtopology(2), "1": subtopology(2, stateful=True)}, 1
    )
    standby = [tasks.standby for tasks in targets.values()]
    assert all(set(one) <= {"1"} for one in standby)
    assert sorted(one for tasks in standby for one in tasks["1"]) == [0, 1]


def test_there_are_no_more_standby_tasks_than_other_processes() -> None:
    warnings: list[str] = []
    topology = {"0": subtopology(2, stateful=True)}
    targets = assign(members(a="p", b="p"), topology, 1, warn=warnings.append)
    assert all(not tasks.standby for tasks in targets.values())
    assert warnings == ["2 standby tasks are missing: there are too few processes"]


counts = st.lists(st.integers(1, 5), min_size=1, max_size=3)
processes = st.lists(st.sampled_from("pqrs"), min_size=1, max_size=6)


@given(counts=counts, first=processes, second=processes, replicas=st.integers(0, 2))
def test_every_task_has_one_owner_and_its_copies_are_elsewhere(
    counts: list[int], first: list[str], second: list[str], replicas: int
) -> None:
    topology = {
        str(number): subtopology(count, stateful=number % 2 == 0)
        for number, count in enumerate(counts)
    }
    targets: dict[str, Tasks] = {}
    for chosen in (first, second):
        process_of = {f"m{number}": process for number, process in enumerate(chosen)}
        targets = assign(again(process_of, targets), topology, replicas)
        owners = {
            (name, partition): member
            for member, tasks in targets.items()
            for name, partitions in tasks.active.items()
            for partition in partitions
        }
        assert len(owners) == sum(counts) == sum(active(targets).values())
        for name, found in topology.items():
            for partition in range(found.task_count):
                holders = [
                    process_of[member]
                    for member, tasks in targets.items()
                    if partition in tasks.standby.get(name, frozenset())
                ]
                wanted = min(replicas, len(set(chosen)) - 1) if found.is_stateful else 0
                assert len(holders) == len(set(holders)) == wanted
                assert process_of[owners[name, partition]] not in holders


@given(counts=counts, chosen=processes)
def test_nothing_moves_while_nobody_comes_or_goes(counts: list[int], chosen: list[str]) -> None:
    topology = {str(number): subtopology(count) for number, count in enumerate(counts)}
    process_of = {f"m{number}": process for number, process in enumerate(chosen)}
    before = assign(again(process_of, {}), topology, 0)
    assert assign(again(process_of, before), topology, 0) == before
