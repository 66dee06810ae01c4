"""Apache Kafka's reconciliation, in a process of its own: KafkaReconciliation.java."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from odradek.coordinator.assignors.assignment import Assignment
from odradek.coordinator.consumer_groups.member import ConsumerMember, OwnedPartitions
from odradek.coordinator.consumer_groups.ownership import FREE
from odradek.coordinator.consumer_groups.reconciliation import ReconcileInputs
from odradek.coordinator.modern_groups.member import MemberState
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.primitives import uuid_from_text, uuid_text
from tests.support.java_program import JavaProgram


@dataclass(frozen=True, kw_only=True)
class Step:
    """A member, and all that decides what becomes of it."""

    member: ConsumerMember
    target: Assignment
    target_epoch: int
    owners: OwnedPartitions = field(default_factory=dict)
    """The epoch of each partition that somebody owns."""
    changed: bool = False
    owned: Assignment | None = None
    names: Mapping[str, bytes]
    """The topics that there are."""
    regexes: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def inputs(self) -> ReconcileInputs:
        """The same for our own reconciliation."""
        return ReconcileInputs(
            target=self.target,
            epoch=self.target_epoch,
            owner_epoch=lambda topic_id, partition: self.owners.get(topic_id, {}).get(
                partition, FREE
            ),
            subscribed_ids=self._subscribed_ids,
            subscription_changed=self.changed,
            owned=self.owned,
        )

    def _subscribed_ids(self, member: ConsumerMember) -> frozenset[bytes]:
        names = member.subscribed_topics | self.regexes.get(member.subscribed_regex, frozenset())
        return frozenset(self.names[name] for name in names if name in self.names)


class KafkaReconciliation(JavaProgram):
    """One question after the other; ends with its `with`."""

    def __init__(self) -> None:
        super().__init__("KafkaReconciliation.java")

    def reconcile(self, step: Step) -> ConsumerMember:
        """The member after the step, as Kafka has it. Raises ApiError FENCED_MEMBER_EPOCH."""
        answer = self.ask_json(_question(step))
        if "error" in answer:
            raise ApiError(ErrorCode.FENCED_MEMBER_EPOCH, answer["error"])
        return _member(answer["member"])


def _question(step: Step) -> dict[str, Any]:
    member = step.member
    return {
        "member": {
            "epoch": member.member_epoch,
            "previous": member.previous_member_epoch,
            "state": member.state,
            "topics": sorted(member.subscribed_topics),
            "regex": member.subscribed_regex,
            "assigned": _epochs(member.assigned),
            "pending": _epochs(member.pending_revocation),
        },
        "target": _partitions(step.target),
        "targetEpoch": step.target_epoch,
        "owners": _epochs(step.owners),
        "changed": step.changed,
        "owned": None if step.owned is None else _partitions(step.owned),
        "names": {name: uuid_text(topic_id) for name, topic_id in step.names.items()},
        "regexes": {regex: sorted(names) for regex, names in step.regexes.items()},
    }


def _epochs(owned: OwnedPartitions) -> dict[str, dict[str, int]]:
    return {
        uuid_text(topic_id): {str(partition): epoch for partition, epoch in epochs.items()}
        for topic_id, epochs in owned.items()
    }


def _partitions(assignment: Assignment) -> dict[str, list[int]]:
    return {uuid_text(topic_id): sorted(indexes) for topic_id, indexes in assignment.items()}


def _member(json_member: dict[str, Any]) -> ConsumerMember:
    return ConsumerMember(
        member_id="m",
        member_epoch=json_member["epoch"],
        previous_member_epoch=json_member["previous"],
        state=MemberState(json_member["state"]),
        subscribed_topics=frozenset(json_member["topics"]),
        subscribed_regex=json_member["regex"],
        assigned=_read(json_member["assigned"]),
        pending_revocation=_read(json_member["pending"]),
    )


def _read(epochs: dict[str, dict[str, int]]) -> OwnedPartitions:
    return {
        uuid_from_text(topic_id): {int(partition): epoch for partition, epoch in of_topic.items()}
        for topic_id, of_topic in epochs.items()
    }
