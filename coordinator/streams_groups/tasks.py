"""The tasks of members: what they are assigned, and what they own.

A task is one partition of a subtopology: it reads that partition of each of the subtopology's
source topics. A task is active in one member, which processes records. Standby tasks keep copies of
its state in other processes. Warm-up tasks build such a copy before the active task moves; Kafka
4.4.0 stores and returns them, but assigns none.

Kafka: TasksTuple, TasksTupleWithEpochs.
"""

from collections.abc import Iterable, Mapping, Set
from types import MappingProxyType
from typing import Protocol

from msgspec import Struct

from odradek.coordinator.modern_groups.partition_sets import partition_count, partition_sets
from odradek.coordinator.runtime.steps import Step, no_step, stepping

# Partitions by subtopology id. No entry is empty.
TaskSet = Mapping[str, frozenset[int]]
# Subtopology id -> partition -> the member epoch at which the task was assigned.
TaskEpochs = Mapping[str, Mapping[int, int]]

NO_TASKS: TaskSet = MappingProxyType({})
NO_EPOCHS: TaskEpochs = MappingProxyType({})


class TaskIds(Protocol):
    """The tasks of one subtopology, as requests and records name them."""

    @property
    def subtopology_id(self) -> str: ...

    @property
    def partitions(self) -> list[int]: ...


class Tasks(Struct, frozen=True, gc=False):
    """Tasks of the three kinds: a member's target, or what it reports to own."""

    active: TaskSet = NO_TASKS
    standby: TaskSet = NO_TASKS
    warmup: TaskSet = NO_TASKS

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)


class OwnedTasks(Struct, frozen=True, gc=False):
    """Tasks that a member owns, or must give up; each active task with its epoch (KIP-1251)."""

    active: TaskEpochs = NO_EPOCHS
    standby: TaskSet = NO_TASKS
    warmup: TaskSet = NO_TASKS

    @property
    def tasks(self) -> Tasks:
        """The same tasks without epochs."""
        active = {name: frozenset(epochs) for name, epochs in self.active.items()}
        return Tasks(active, self.standby, self.warmup)

    @property
    def count(self) -> int:
        return sum(map(partition_count, (self.active, self.standby, self.warmup)))

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)


NOTHING = Tasks()
OWNS_NOTHING = OwnedTasks()


def task_set(tasks: Iterable[TaskIds], step: Step = no_step) -> TaskSet:
    """Return tasks of a request or a record by subtopology id."""
    named = ((task.subtopology_id, task.partitions) for task in tasks if task.partitions)
    return partition_sets(stepping(named, step), step)


def have_common_task(reported: Tasks, owned: OwnedTasks) -> bool:
    """Whether a task is in both, as a task of the same kind."""
    return (
        _overlap(reported.active, {name: epochs.keys() for name, epochs in owned.active.items()})
        or _overlap(reported.standby, owned.standby)
        or _overlap(reported.warmup, owned.warmup)
    )


def are_owned(reported: Tasks | None, owned: OwnedTasks) -> bool:
    """Whether a member owns all tasks that it reports; False if it reports none (None)."""
    return reported is not None and (
        _is_within(reported.active, {name: epochs.keys() for name, epochs in owned.active.items()})
        and _is_within(reported.standby, owned.standby)
        and _is_within(reported.warmup, owned.warmup)
    )


def _overlap(one: TaskSet, other: Mapping[str, Set[int]]) -> bool:
    """Whether a task is in both. It takes as long as `other` is large."""
    return any(
        not one.get(subtopology_id, frozenset()).isdisjoint(partitions)
        for subtopology_id, partitions in other.items()
    )


def _is_within(one: TaskSet, other: Mapping[str, Set[int]]) -> bool:
    return all(
        partitions <= other.get(subtopology_id, frozenset())
        for subtopology_id, partitions in one.items()
    )
