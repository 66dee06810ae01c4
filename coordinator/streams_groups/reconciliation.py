"""Reconciliation: moves a member one step from the tasks it owns towards its target.

    STABLE, at its target      nothing to do
    STABLE, a newer target     if it owns tasks outside the target: UNREVOKED; otherwise it advances
    UNREVOKED                  it stays until its heartbeat no longer reports the tasks to give up;
                               then it advances to the newest target, or gives up more tasks at
                               the next epoch
    advance                    it takes the target's epoch and the free tasks of the target; if it
                               has all of them: STABLE, else UNRELEASED
    UNRELEASED                 it advances again at each heartbeat

An active task is free if no process owns it, and no other member of the same process has a copy of
it. A standby or warm-up task is free if no other member of the same process has the task at all. A
member that has the task itself, as another kind, changes the kind at once, so that the state of the
task stays with it. A copy is kept until the active task that it becomes is granted.

Kafka: streams.CurrentAssignmentBuilder.
"""

from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from odradek.coordinator.modern_groups.member import MemberState
from odradek.coordinator.modern_groups.partition_sets import split
from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.protocol.errors import ApiError, ErrorCode

from .member import StreamsMember
from .task_owners import TaskOwners
from .tasks import OWNS_NOTHING, OwnedTasks, TaskEpochs, Tasks, TaskSet, have_common_task

IsTaken = Callable[[str, int], bool]


class ReconcileInputs(Struct, frozen=True, kw_only=True):
    """The inputs of one reconciliation step."""

    target: Tasks
    epoch: int
    """The group epoch for which the target was computed."""
    owners: TaskOwners
    owned: Tasks | None
    """The tasks that the member reports as owned; None if it does not report them."""
    step: Step = no_step


def reconcile(member: StreamsMember, inputs: ReconcileInputs) -> StreamsMember:
    """Return the member after one step; the same object if there is nothing to do.

    Raises ApiError FENCED_MEMBER_EPOCH for a member in a state of a newer Kafka that still owns
    tasks: it must give them up and join again.
    """
    match member.state:
        case MemberState.STABLE:
            if member.member_epoch == inputs.epoch:
                return member
            return _advance(member, inputs, member.member_epoch)
        case MemberState.UNREVOKED_PARTITIONS:
            if _may_still_own(inputs, member.pending_revocation):
                return member
            # As in Kafka 4.4. A consumer that must give up more keeps its epoch.
            return _advance(member, inputs, member.member_epoch + 1)
        case MemberState.UNRELEASED_PARTITIONS:
            return _advance(member, inputs, member.member_epoch)
        case MemberState.UNKNOWN:
            if inputs.owned is None or not inputs.owned.is_empty:
                raise ApiError(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The member's state is not known here. It must give up all its tasks and join "
                    "again.",
                )
            return _advance(member, inputs, inputs.epoch)


def _may_still_own(inputs: ReconcileInputs, revoked: OwnedTasks) -> bool:
    """Whether the member reports a task that it must give up, or does not report at all."""
    return inputs.owned is None or have_common_task(inputs.owned, revoked)


class _Difference:
    """The tasks of one kind that a member keeps, gives up and gets to reach a target.

    They are partitions by subtopology id, each with the epoch at which the member gets or got it.
    """

    def __init__(
        self, has: TaskEpochs, target: TaskSet, inputs: ReconcileInputs, is_taken: IsTaken
    ) -> None:
        step = inputs.step
        self.kept: dict[str, dict[int, int]] = {}
        self.revoked: dict[str, dict[int, int]] = {}
        self.granted: dict[str, dict[int, int]] = {}
        self.waits = False
        """Whether some tasks of the target are taken."""
        for name in stepping({*target, *has}, step):
            owned, wanted = has.get(name, {}), target.get(name, frozenset())
            new = wanted.difference(owned)
            free = [
                partition
                for partition in stepping(sorted(new), step)
                if not is_taken(name, partition)
            ]
            self.waits = self.waits or len(free) < len(new)
            kept, revoked = split(owned, wanted, step)
            _put(self.kept, name, kept)
            _put(self.revoked, name, revoked)
            _put(self.granted, name, dict.fromkeys(free, inputs.epoch))

    def grant_now(self, name: str, partitions: Iterable[int]) -> list[int]:
        """Make granted tasks owned ones, before the member has given up any. Returns which."""
        granted = self.granted.get(name, {})
        moved = [partition for partition in partitions if partition in granted]
        for partition in moved:
            self.kept.setdefault(name, {})[partition] = granted.pop(partition)
        return moved

    def keep(self, name: str, partitions: Iterable[int]) -> None:
        """Let the member own these tasks still, even if they are not in the target."""
        for partition in partitions:
            self.kept.setdefault(name, {})[partition] = 0

    def unrevoke(self, name: str, partitions: Iterable[int]) -> None:
        """Do not ask the member to give up these tasks."""
        revoked = self.revoked.get(name, {})
        for partition in partitions:
            revoked.pop(partition, None)
        if not revoked:
            self.revoked.pop(name, None)

    def after_grant(self) -> TaskEpochs:
        """The tasks that the member owns when it has given up and got what it can."""
        names = {*self.kept, *self.granted}
        return {name: {**self.kept.get(name, {}), **self.granted.get(name, {})} for name in names}


def _put(tasks: dict[str, dict[int, int]], name: str, epochs: dict[int, int]) -> None:
    if epochs:
        tasks[name] = epochs


def _advance(
    member: StreamsMember, inputs: ReconcileInputs, epoch_if_revoking: int
) -> StreamsMember:
    """Advance the member to the target; or make it give up tasks at `epoch_if_revoking`."""
    has, target, owners, process = member.assigned, inputs.target, inputs.owners, member.process_id

    def is_standby_elsewhere(name: str, partition: int) -> bool:
        is_own = partition in has.standby.get(name, ())
        return owners.has_standby(process, name, partition) and not is_own

    def is_warmup_elsewhere(name: str, partition: int) -> bool:
        is_own = partition in has.warmup.get(name, ())
        return owners.has_warmup(process, name, partition) and not is_own

    def is_active_taken(name: str, partition: int) -> bool:
        return (
            owners.active(name, partition) is not None
            or is_standby_elsewhere(name, partition)
            or is_warmup_elsewhere(name, partition)
        )

    def is_standby_taken(name: str, partition: int) -> bool:
        is_own = partition in has.active.get(name, ())
        return (
            (owners.active(name, partition) == process and not is_own)
            or owners.has_standby(process, name, partition)
            or is_warmup_elsewhere(name, partition)
        )

    def is_warmup_taken(name: str, partition: int) -> bool:
        return (
            owners.active(name, partition) == process
            or is_standby_elsewhere(name, partition)
            or owners.has_warmup(process, name, partition)
        )

    active = _Difference(has.active, target.active, inputs, is_active_taken)
    standby = _Difference(_as_epochs(has.standby), target.standby, inputs, is_standby_taken)
    warmup = _Difference(_as_epochs(has.warmup), target.warmup, inputs, is_warmup_taken)
    for name, epochs in stepping(has.active.items(), inputs.step):
        standby.grant_now(name, epochs)
    for name, partitions in stepping(has.standby.items(), inputs.step):
        standby.unrevoke(name, warmup.grant_now(name, partitions))
    for name, partitions in stepping(has.warmup.items(), inputs.step):
        warmup.unrevoke(name, standby.grant_now(name, partitions))
    promoted = [
        (copies, name, partitions & target.active.get(name, frozenset()))
        for copies, owned in ((standby, has.standby), (warmup, has.warmup))
        for name, partitions in stepping(owned.items(), inputs.step)
    ]
    for copies, name, partitions in promoted:
        copies.unrevoke(name, partitions)
    revoked = OwnedTasks(active.revoked, _as_sets(standby.revoked), _as_sets(warmup.revoked))
    must_give_up = not revoked.is_empty and _may_still_own(inputs, revoked)
    for copies, name, partitions in promoted:
        # Before it has given up tasks, no active task is granted: it keeps every copy.
        granted = {} if must_give_up else active.granted.get(name, {})
        copies.keep(name, partitions.difference(granted))
    if must_give_up:
        kept = OwnedTasks(active.kept, _as_sets(standby.kept), _as_sets(warmup.kept))
        state = MemberState.UNREVOKED_PARTITIONS
        return _step(member, state, epoch_if_revoking, kept, revoked)
    waits = active.waits or standby.waits or warmup.waits
    owned = OwnedTasks(
        active.after_grant(), _as_sets(standby.after_grant()), _as_sets(warmup.after_grant())
    )
    state = MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE
    return _step(member, state, inputs.epoch, owned, OWNS_NOTHING)


def _step(
    member: StreamsMember, state: MemberState, epoch: int, owned: OwnedTasks, revoked: OwnedTasks
) -> StreamsMember:
    return replace(
        member,
        state=state,
        member_epoch=epoch,
        previous_member_epoch=member.member_epoch,
        assigned=owned,
        pending_revocation=revoked,
    )


def _as_epochs(tasks: TaskSet) -> TaskEpochs:
    """Tasks without epochs, in the form of those with epochs."""
    return {name: dict.fromkeys(partitions, 0) for name, partitions in tasks.items()}


def _as_sets(tasks: TaskEpochs) -> TaskSet:
    return {name: frozenset(epochs) for name, epochs in tasks.items()}
