"""Apache Kafka's server-side assignors, in a process of their own: KafkaAssignors.java."""

from typing import Any

from odradek.coordinator.assignors.assignment import Assignment, AssignorError, GroupSpec
from odradek.protocol.primitives import uuid_from_text, uuid_text
from tests.support.assigned_groups import Topics
from tests.support.java_program import JavaProgram


class KafkaAssignors(JavaProgram):
    """Answers as our assignors do, one question after the other; ends with its `with`."""

    def __init__(self) -> None:
        super().__init__("KafkaAssignors.java")

    def assign(
        self, name: str, spec: GroupSpec, topics: Topics, *, is_ordered: bool
    ) -> dict[str, Assignment]:
        """Kafka's new targets; raises AssignorError with its words.

        `is_ordered`: Kafka meets members and topics by id, as our assignors do.
        """
        answer = self.ask_json(_question(name, spec, topics, is_ordered=is_ordered))
        if "error" in answer:
            raise AssignorError(answer["error"])
        return {
            member_id: _read(answer["members"].get(member_id, {})) for member_id in spec.members
        }


def _question(name: str, spec: GroupSpec, topics: Topics, *, is_ordered: bool) -> dict[str, Any]:
    members = [
        {
            "id": member_id,
            "instance": spec.members[member_id].instance_id,
            "topics": [
                uuid_text(each) for each in sorted(spec.members[member_id].subscribed_topic_ids)
            ],
            "target": _written(spec.members[member_id].assignment),
        }
        for member_id in sorted(spec.members)
    ]
    return {
        "assignor": name,
        "homogeneous": spec.is_homogeneous,
        "ordered": is_ordered,
        "topics": {uuid_text(topic_id): count for topic_id, count in topics.counts.items()},
        "members": members,
    }


def _written(target: Assignment) -> dict[str, list[int]]:
    return {uuid_text(topic_id): sorted(target[topic_id]) for topic_id in sorted(target)}


def _read(target: dict[str, list[int]]) -> Assignment:
    return {uuid_from_text(each): frozenset(partitions) for each, partitions in target.items()}
