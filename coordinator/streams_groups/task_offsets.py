"""The offsets that a member of a streams group reports about its tasks.

They are the sum of the offsets up to which it has restored a task, and the sum of the ends of the
task's changelogs. StreamsGroupDescribe returns them. A restart forgets them.

Kafka: MemberTaskOffsets.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from odradek.coordinator.runtime.steps import Step, stepping
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatTaskOffset

Task = tuple[str, int]
Offsets = Mapping[Task, int]
Reported = Iterable[StreamsGroupHeartbeatTaskOffset]
NO_OFFSETS: Offsets = MappingProxyType({})


class TaskOffsets(NamedTuple):
    """Offsets by subtopology and partition."""

    restored: Offsets = NO_OFFSETS
    ends: Offsets = NO_OFFSETS

    def updated(
        self, restored: Reported | None, ends: Reported | None, step: Step
    ) -> "TaskOffsets":
        """Return them after a report; None: unchanged. Raises ApiError INVALID_REQUEST."""
        return TaskOffsets(
            self.restored if restored is None else _by_task(restored, step),
            self.ends if ends is None else _by_task(ends, step),
        )


NO_TASK_OFFSETS = TaskOffsets()


def _by_task(reported: Reported, step: Step) -> Offsets:
    found: dict[Task, int] = {}
    for entry in stepping(reported, step):
        task = (entry.subtopology_id, entry.partition)
        if task in found:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"Task offsets contain a duplicate entry for subtopology {task[0]} and "
                f"partition {task[1]}.",
            )
        found[task] = entry.offset
    return found
