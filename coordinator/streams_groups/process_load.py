"""A process of an application during an assignment: its members, and the tasks they have got.

Kafka: ProcessState.
"""

from typing import NamedTuple

from odradek.coordinator.java.java_hash import hash_map_order
from odradek.coordinator.java.java_queue import JavaQueue


class TaskId(NamedTuple):
    """One partition of a subtopology."""

    subtopology_id: str
    partition: int


class ProcessLoad:
    """The tasks that one process has got so far."""

    def __init__(self) -> None:
        self.task_counts: dict[str, int] = {}
        """The number of tasks by member id."""
        self.active: dict[str, set[TaskId]] = {}
        """The active tasks by member id."""
        self.standby: dict[str, set[TaskId]] = {}
        """The standby tasks by member id."""
        self.tasks: set[TaskId] = set()
        """All of them, of every member."""
        self._task_count = 0
        self._members_by_load: JavaQueue[str] | None = None

    @property
    def load(self) -> float:
        """Tasks per member."""
        return self._task_count / len(self.task_counts)

    def add_member(self, member_id: str) -> None:
        """Add a member without tasks."""
        self.task_counts[member_id] = 0
        self.active[member_id] = set()
        self.standby[member_id] = set()

    def add(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        """Give a task to a member. Returns the member's number of tasks."""
        self._members_by_load = None
        return self._add(member_id, task, is_active=is_active)

    def _add(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        of_kind = self.active if is_active else self.standby
        of_kind[member_id].add(task)
        self.tasks.add(task)
        self.task_counts[member_id] += 1
        self._task_count += 1
        return self.task_counts[member_id]

    def add_to_least_loaded(self, task: TaskId, *, is_active: bool) -> int:
        """Give a task to the member with the fewest. Returns the member's number of tasks."""
        if self._members_by_load is None:
            members = hash_map_order(self.task_counts)
            self._members_by_load = JavaQueue(members, self.task_counts.__getitem__)
        member_id = self._members_by_load.poll()
        count = self._add(member_id, task, is_active=is_active)
        self._members_by_load.add(member_id)
        return count
