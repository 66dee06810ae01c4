"""The sticky assignor: balances tasks over processes and members, and moves as few as it can.

    active tasks    1. a member keeps its active tasks, up to its share
                    2. a member gets an active task of which it has a standby, or whose state it
                       has restored most of, up to its share
                    3. the least loaded process gets each task that is left
    standby tasks   the same for each replica: the former active member, then a former standby
                    member, then the least loaded process without the task

A member's share is the number of tasks that are left, divided by the members that have not reached
their share. Standby tasks exist for subtopologies with stores only. There are fewer of them than
asked for if there are fewer processes.

Kafka: StickyTaskAssignor, the only assignor of Kafka 4.4. Which of several equally loaded processes
or members gets a task depends there on Java's hash maps and queues, and so it does here: a group
that moves between the two brokers keeps its tasks.
"""

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter, itemgetter
from typing import NamedTuple

from odradek.coordinator.assignors.assignment import AssignorError
from odradek.coordinator.java.java_hash import hash_map_order
from odradek.coordinator.java.java_queue import JavaQueue
from odradek.coordinator.runtime.steps import Step, no_step, stepping

from .configuration import ConfiguredSubtopology
from .process_load import ProcessLoad, TaskId
from .task_offsets import NO_OFFSETS, Offsets
from .tasks import Tasks, TaskSet

logger = logging.getLogger("odradek.groups")

ASSIGNOR_NAME = "sticky"

_BY_PARTITION = attrgetter("partition", "subtopology_id")


class MemberSpec(NamedTuple):
    """A member as the assignor sees it: its process, the tasks that it owns, and task offsets.

    `offsets` is how far it has restored tasks, owned or not, as it has reported.
    """

    process_id: str
    owned: Tasks
    offsets: Offsets = NO_OFFSETS


class _Candidate(NamedTuple):
    """A member that had a standby of a task, or has some of its state."""

    is_no_standby: bool
    minus_offset: int
    member_id: str


_RANK = itemgetter(0, 1)


def assign(
    members: Mapping[str, MemberSpec],
    subtopologies: Mapping[str, ConfiguredSubtopology],
    num_standby_replicas: int,
    step: Step = no_step,
    warn: Callable[[str], object] = logger.warning,
) -> dict[str, Tasks]:
    """Return the target of every member. Raises AssignorError if there is no member."""
    if not members:
        raise AssignorError("there is no member to assign tasks to")
    assignment = _Assignment(members, subtopologies, num_standby_replicas, step)
    assignment.assign_active()
    if num_standby_replicas:
        assignment.assign_standby()
    if assignment.missing_standby:
        count = assignment.missing_standby
        warn(f"{count} standby tasks are missing: there are too few processes")
    return {member_id: assignment.tasks_of(member_id) for member_id in stepping(members, step)}


class _Share:
    """The number of tasks that a member should have, while tasks are given out."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks, self._members = tasks, members

    @property
    def of_member(self) -> int:
        return -(-self._tasks // self._members) if self._members else 0

    def note(self, tasks_of_member: int) -> None:
        """Note the new number of tasks of a member. One that has its share does not count on."""
        if tasks_of_member == self.of_member:
            self._tasks -= tasks_of_member
            self._members -= 1


class _ByLoad:
    """Processes, the least loaded first."""

    def __init__(self, processes: Iterable[ProcessLoad]) -> None:
        self._queue = JavaQueue(processes, lambda process: process.load)

    def give(self, task: TaskId, *, is_active: bool) -> int | None:
        """Give a task to the least loaded process that does not have it.

        Returns the number of tasks of the member that got it; None if all processes have it.
        """
        passed, got = [], None
        while self._queue and got is None:
            process = self._queue.poll()
            if task not in process.tasks:
                got = process.add_to_least_loaded(task, is_active=is_active)
            passed.append(process)
        for process in reversed(passed):
            self._queue.add(process)
        return got


class _Assignment:
    """One assignment while it is computed."""

    def __init__(
        self,
        members: Mapping[str, MemberSpec],
        subtopologies: Mapping[str, ConfiguredSubtopology],
        num_standby_replicas: int,
        step: Step,
    ) -> None:
        self._step = step
        self._replicas = num_standby_replicas
        self.missing_standby = 0
        self._process_of: dict[str, ProcessLoad] = {}
        self._active_before: dict[TaskId, str] = {}
        self._standby_before: dict[TaskId, list[str]] = {}
        """Members that had a standby of a task, then those that have some of its state."""
        self._processes = self._add_members(members)
        self._tasks = _tasks(subtopologies, lambda _: True, step)
        self._stateful = _tasks(subtopologies, lambda found: found.is_stateful, step)
        total = len(self._tasks) + len(self._stateful) * num_standby_replicas
        self._active_share = _Share(len(self._tasks), len(members))
        self._share = _Share(total, len(members))

    def _add_members(self, members: Mapping[str, MemberSpec]) -> list[ProcessLoad]:
        processes: dict[str, ProcessLoad] = {}
        candidates: dict[TaskId, list[_Candidate]] = {}
        for member_id in stepping(hash_map_order(members), self._step):
            member = members[member_id]
            process = processes.setdefault(member.process_id, ProcessLoad())
            process.add_member(member_id)
            self._process_of[member_id] = process
            active = stepping(_ids(member.owned.active), self._step)
            self._active_before.update(dict.fromkeys(active, member_id))
            standby = set(stepping(_ids(member.owned.standby), self._step))
            for task in stepping([*standby, *(member.offsets.keys() - standby)], self._step):
                found = _Candidate(task not in standby, -member.offsets.get(task, 0), member_id)
                candidates.setdefault(TaskId(*task), []).append(found)
        for task, of_task in stepping(candidates.items(), self._step):
            of_task.sort(key=_RANK)
            self._standby_before[task] = [found.member_id for found in of_task]
        order = hash_map_order(processes, len(members), computed=True)
        return [processes[each] for each in order]

    def tasks_of(self, member_id: str) -> Tasks:
        """Return what a member has got."""
        process = self._process_of[member_id]
        return Tasks(
            _by_subtopology(process.active[member_id], self._step),
            _by_subtopology(process.standby[member_id], self._step),
        )

    # -- active tasks ------------------------------------------------------------------------------

    def assign_active(self) -> None:
        """Give each task to one member."""
        left = sorted(self._tasks, key=_BY_PARTITION)
        left = [task for task in stepping(left, self._step) if not self._keep_active(task)]
        left = [task for task in stepping(left, self._step) if not self._promote_standby(task)]
        by_load = _ByLoad(self._processes)
        for task in stepping(sorted(left), self._step):
            self._note_active(by_load.give(task, is_active=True))

    def _keep_active(self, task: TaskId) -> bool:
        member_id = self._active_before.get(task)
        return member_id is not None and self._give_active(member_id, task)

    def _promote_standby(self, task: TaskId) -> bool:
        member_id = self._least_loaded_standby(task)
        return member_id is not None and self._give_active(member_id, task)

    def _give_active(self, member_id: str, task: TaskId) -> bool:
        """Give an active task to a member that has not reached its share."""
        process = self._process_of[member_id]
        if process.task_counts[member_id] >= self._active_share.of_member:
            return False
        self._note_active(process.add(member_id, task, is_active=True))
        return True

    def _note_active(self, tasks_of_member: int | None) -> None:
        assert tasks_of_member is not None, "no process has the task yet"
        self._active_share.note(tasks_of_member)
        self._share.note(tasks_of_member)

    # -- standby tasks -----------------------------------------------------------------------------

    def assign_standby(self) -> None:
        """Give copies of each stateful task to other processes."""
        left = []
        order = sorted(self._stateful, key=_BY_PARTITION, reverse=True)
        for task in stepping(order, self._step):
            given = 0
            while given < self._replicas and self._keep_standby(task):
                given += 1
            left.append((task, self._replicas - given))
        by_load = _ByLoad(self._processes)
        for task, replicas in stepping(sorted(left, reverse=True), self._step):
            self._spread(task, replicas, by_load)

    def _spread(self, task: TaskId, replicas: int, by_load: _ByLoad) -> None:
        for given in range(replicas):
            tasks_of_member = by_load.give(task, is_active=False)
            if tasks_of_member is None:
                self.missing_standby += replicas - given
                return
            self._share.note(tasks_of_member)

    def _keep_standby(self, task: TaskId) -> bool:
        """Give a copy to a member that had the task, if its process has none now."""
        for member_id in (
            self._active_before.get(task),
            self._least_loaded_standby(task, is_copy=True),
        ):
            if member_id is not None and self._give_standby(member_id, task):
                return True
        return False

    def _give_standby(self, member_id: str, task: TaskId) -> bool:
        process = self._process_of[member_id]
        if task in process.tasks or process.task_counts[member_id] >= self._share.of_member:
            return False
        self._share.note(process.add(member_id, task, is_active=False))
        return True

    def _least_loaded_standby(self, task: TaskId, *, is_copy: bool = False) -> str | None:
        """Return a member that had a standby of the task and whose process has little load.

        A copy is not for a process that has the task already.
        """
        found, load, tasks_of_member = None, math.inf, 0
        for member_id in self._standby_before.get(task, ()):
            if is_copy and task in self._process_of[member_id].tasks:
                continue
            less_load, fewer_tasks = self._load_of(member_id)
            if found is None or (less_load < load and fewer_tasks < tasks_of_member):
                found, load, tasks_of_member = member_id, less_load, fewer_tasks
        return found

    def _load_of(self, member_id: str) -> tuple[float, int]:
        process = self._process_of[member_id]
        return process.load, process.task_counts[member_id]


def _tasks(
    subtopologies: Mapping[str, ConfiguredSubtopology],
    is_wanted: Callable[[ConfiguredSubtopology], bool],
    step: Step,
) -> list[TaskId]:
    return [
        TaskId(subtopology_id, partition)
        for subtopology_id, found in subtopologies.items()
        if is_wanted(found)
        for partition in stepping(range(found.task_count), step)
    ]


def _ids(tasks: TaskSet) -> Iterable[TaskId]:
    return (
        TaskId(name, partition) for name, partitions in tasks.items() for partition in partitions
    )


def _by_subtopology(tasks: Iterable[TaskId], step: Step) -> TaskSet:
    found: dict[str, set[int]] = {}
    for task in stepping(tasks, step):
        found.setdefault(task.subtopology_id, set()).add(task.partition)
    return {name: frozenset(partitions) for name, partitions in stepping(found.items(), step)}
