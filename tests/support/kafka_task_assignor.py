"""Apache Kafka's assignor of streams groups, in a process of its own: KafkaTaskAssignor.java."""

from collections.abc import Mapping
from typing import Any

from odradek.coordinator.streams_groups.configuration import ConfiguredSubtopology
from odradek.coordinator.streams_groups.sticky_assignor import MemberSpec
from odradek.coordinator.streams_groups.tasks import Tasks, TaskSet
from tests.support.java_program import JavaProgram


class KafkaTaskAssignor(JavaProgram):
    """Answers as our assignor does, one question after the other; ends with its `with`."""

    def __init__(self) -> None:
        super().__init__("KafkaTaskAssignor.java")

    def assign(
        self,
        members: Mapping[str, MemberSpec],
        subtopologies: Mapping[str, ConfiguredSubtopology],
        num_standby_replicas: int,
    ) -> dict[str, Tasks]:
        """Kafka's new targets."""
        answer: dict[str, Any] = self.ask_json(
            {
                "replicas": num_standby_replicas,
                "subtopologies": {
                    name: {"tasks": found.task_count, "stateful": found.is_stateful}
                    for name, found in subtopologies.items()
                },
                "members": [
                    {
                        "id": member_id,
                        "process": member.process_id,
                        "active": _written(member.owned.active),
                        "standby": _written(member.owned.standby),
                        "offsets": [(*task, far) for task, far in member.offsets.items()],
                    }
                    for member_id, member in members.items()
                ],
            }
        )
        return {
            member_id: Tasks(_read(found["active"]), _read(found["standby"]))
            for member_id, found in answer.items()
        }


def _written(tasks: TaskSet) -> dict[str, list[int]]:
    return {name: sorted(partitions) for name, partitions in tasks.items()}


def _read(tasks: dict[str, list[int]]) -> TaskSet:
    return {name: frozenset(partitions) for name, partitions in tasks.items()}
