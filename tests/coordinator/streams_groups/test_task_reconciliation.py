"""One step of a member towards its target: what it gives up, gets, and waits for."""

import pytest

from odradek.coordinator.modern_groups.member import MemberState
from odradek.coordinator.streams_groups.member import StreamsMember
from odradek.coordinator.streams_groups.reconciliation import ReconcileInputs, reconcile
from odradek.coordinator.streams_groups.task_owners import TaskOwners
from odradek.coordinator.streams_groups.tasks import OwnedTasks, Tasks
from odradek.protocol.errors import ApiError, ErrorCode

STABLE, UNREVOKED, UNRELEASED = (
    MemberState.STABLE,
    MemberState.UNREVOKED_PARTITIONS,
    MemberState.UNRELEASED_PARTITIONS,
)


def member(name: str = "m", *active: int, standby: frozenset[int] = frozenset()) -> StreamsMember:
    """A stable member at epoch 5 that has had its tasks since epoch 4."""
    return StreamsMember(
        member_id=name,
        process_id=f"process of {name}",
        member_epoch=5,
        assigned=OwnedTasks(
            {"0": dict.fromkeys(active, 4)} if active else {}, {"0": standby} if standby else {}
        ),
    )


def step(
    one: StreamsMember,
    *others: StreamsMember,
    target: Tasks,
    epoch: int = 6,
    owned: Tasks | None = None,
) -> StreamsMember:
    owners = TaskOwners()
    for present in (one, *others):
        owners.replace_member(None, present)
    return reconcile(one, ReconcileInputs(target=target, epoch=epoch, owners=owners, owned=owned))


def active(*partitions: int) -> Tasks:
    return Tasks({"0": frozenset(partitions)} if partitions else {})


def test_a_member_at_its_target_stays_as_it_is() -> None:
    one = member("m", 0)
    assert step(one, target=active(0), epoch=5) is one


def test_free_tasks_are_taken_at_once_with_the_new_epoch() -> None:
    after = step(member("m", 0), target=active(0, 1))
    assert (after.state, after.member_epoch, after.previous_member_epoch) == (STABLE, 6, 5)
    assert after.assigned.active == {"0": {0: 4, 1: 6}}


def test_tasks_to_give_up_keep_the_epoch_until_they_are_not_reported_any_more() -> None:
    one = step(member("m", 0, 1), target=active(0, 2))
    assert (one.state, one.member_epoch) == (UNREVOKED, 5)
    assert one.pending_revocation.active == {"0": {1: 4}}
    assert step(one, target=active(0, 2)) is one
    assert step(one, target=active(0, 2), owned=active(0, 1)) is one
    after = step(one, target=active(0, 2), owned=active(0))
    assert (after.state, after.member_epoch) == (STABLE, 6)
    assert after.assigned.active == {"0": {0: 4, 2: 6}}
    assert after.pending_revocation.is_empty


def test_a_task_that_is_not_reported_is_given_up_in_the_same_step() -> None:
    after = step(member("m", 0, 1), target=active(0), owned=active(0))
    assert (after.state, after.assigned.active) == (STABLE, {"0": {0: 4}})


def test_a_task_of_another_member_is_waited_for() -> None:
    owner = member("o", 1)
    one = step(member("m", 0), owner, target=active(0, 1))
    assert (one.state, one.member_epoch) == (UNRELEASED, 6)
    assert one.assigned.active == {"0": {0: 4}}
    assert step(one, owner, target=active(0, 1)).state is UNRELEASED
    assert step(one, target=active(0, 1)).state is STABLE


def test_a_process_does_not_have_a_task_twice() -> None:
    """It keeps one directory for the state of a task: another member of it gives up its copy."""
    other = StreamsMember(
        member_id="o",
        process_id="process of m",
        assigned=OwnedTasks({}, {"0": frozenset({1})}),
    )
    waiting = step(member("m"), other, target=active(1))
    assert (waiting.state, waiting.assigned.active) == (UNRELEASED, {})
    assert step(waiting, target=active(1)).assigned.active == {"0": {1: 6}}


def test_a_copy_becomes_the_active_task_in_one_step() -> None:
    one = member("m", standby=frozenset({1}))
    after = step(one, target=active(1), owned=Tasks(standby={"0": frozenset({1})}))
    assert (after.state, after.assigned) == (STABLE, OwnedTasks({"0": {1: 6}}))


def test_a_copy_is_kept_until_the_active_task_is_free() -> None:
    one, owner = member("m", standby=frozenset({1})), member("o", 1)
    reported = Tasks(standby={"0": frozenset({1})})
    waiting = step(one, owner, target=active(1), owned=reported)
    assert (waiting.state, waiting.assigned) == (UNRELEASED, one.assigned)
    after = step(waiting, target=active(1), owned=reported)
    assert (after.state, after.assigned) == (STABLE, OwnedTasks({"0": {1: 6}}))


def test_a_copy_is_kept_while_other_tasks_are_given_up() -> None:
    one = member("m", 0, standby=frozenset({1}))
    reported = Tasks({"0": frozenset({0})}, {"0": frozenset({1})})
    waiting = step(one, target=active(1), owned=reported)
    assert (waiting.state, waiting.assigned.standby) == (UNREVOKED, {"0": frozenset({1})})
    after = step(waiting, target=active(1), owned=Tasks(standby={"0": frozenset({1})}))
    assert (after.state, after.assigned) == (STABLE, OwnedTasks({"0": {1: 6}}))


def test_an_active_task_becomes_a_copy_before_it_is_given_up() -> None:
    target = Tasks(standby={"0": frozenset({1})})
    leaving = step(member("m", 1), target=target, owned=active(1))
    assert (leaving.state, leaving.assigned) == (UNREVOKED, OwnedTasks({}, target.standby))


def test_a_copy_may_be_in_another_process_than_the_active_task() -> None:
    target = Tasks(standby={"0": frozenset({1})})
    assert step(member("m"), member("o", 1), target=target).state is STABLE


def test_a_member_in_an_unknown_state_must_give_up_everything() -> None:
    one = StreamsMember(member_id="m", member_epoch=5, state=MemberState.UNKNOWN)
    for owned in (None, active(0)):
        with pytest.raises(ApiError) as refusal:
            step(one, target=active(0), owned=owned)
        assert refusal.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert step(one, target=active(0), owned=Tasks()).state is STABLE
