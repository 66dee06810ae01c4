"""The processes that own the tasks of a group.

A member owns a task while it is assigned to the member, and while its revocation is pending.
An active task has one owner. A process never has the same task twice, in two of its members or as
two kinds, because a process has one directory for the state of a task. So reconciliation asks here
which processes own a task.

Kafka: StreamsGroup.currentActiveTaskToProcessId, currentStandbyTaskToProcessIds,
currentWarmupTaskToProcessIds.
"""

from odradek.coordinator.modern_groups.partition_sets import each_partition
from odradek.coordinator.runtime.copies import Copyable
from odradek.coordinator.runtime.steps import Step, no_step

from .member import StreamsMember
from .tasks import OwnedTasks, TaskSet

NOBODY: frozenset[str] = frozenset()


class TaskOwners(Copyable):
    """The ids of the processes by task."""

    def __init__(self) -> None:
        self._active: dict[tuple[str, int], str] = {}
        self._standby: dict[tuple[str, int], frozenset[str]] = {}
        self._warmup: dict[tuple[str, int], frozenset[str]] = {}

    def active(self, subtopology_id: str, partition: int) -> str | None:
        """Return the process that owns the active task; None if it is free."""
        return self._active.get((subtopology_id, partition))

    def has_standby(self, process_id: str, subtopology_id: str, partition: int) -> bool:
        """Whether a process owns the task as a standby task."""
        return process_id in self._standby.get((subtopology_id, partition), NOBODY)

    def has_warmup(self, process_id: str, subtopology_id: str, partition: int) -> bool:
        """Whether a process owns the task as a warm-up task."""
        return process_id in self._warmup.get((subtopology_id, partition), NOBODY)

    def replace_member(
        self, old: StreamsMember | None, new: StreamsMember | None, step: Step = no_step
    ) -> None:
        """Add (`old` is None), change, or remove (`new` is None) a member."""
        if old is not None:
            self._remove(old.assigned, old.process_id, step)
            self._remove(old.pending_revocation, old.process_id, step)
        if new is not None:
            self._add(new.assigned, new.process_id, step)
            self._add(new.pending_revocation, new.process_id, step)

    def _remove(self, tasks: OwnedTasks, process_id: str, step: Step) -> None:
        for task in each_partition(tasks.active, step):
            # Replay may see the record of the next owner first, if the log has been cleaned.
            if self._active.get(task) == process_id:
                del self._active[task]
        _discard(self._standby, tasks.standby, process_id, step)
        _discard(self._warmup, tasks.warmup, process_id, step)

    def _add(self, tasks: OwnedTasks, process_id: str, step: Step) -> None:
        for task in each_partition(tasks.active, step):
            self._active[task] = process_id
        _insert(self._standby, tasks.standby, process_id, step)
        _insert(self._warmup, tasks.warmup, process_id, step)


def _discard(
    owners: dict[tuple[str, int], frozenset[str]], tasks: TaskSet, owner: str, step: Step
) -> None:
    for task in each_partition(tasks, step):
        others = owners.get(task, NOBODY) - {owner}
        if others:
            owners[task] = others
        else:
            owners.pop(task, None)


def _insert(
    owners: dict[tuple[str, int], frozenset[str]], tasks: TaskSet, owner: str, step: Step
) -> None:
    for task in each_partition(tasks, step):
        owners[task] = owners.get(task, NOBODY) | {owner}
