"""What is said about offsets, groups and topics: see steps.py."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsTopic
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsTopic
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.schema import Message
from tests.conformance.random_groups.participants import ADMIN, Participants
from tests.conformance.random_groups.steps import (
    HEARD,
    OWN,
    Epoch,
    Step,
    classic_id,
    consumer_id,
    number,
)

TOPIC_IDS_SINCE = 10
GROUPS_SINCE = 8
NO_LIST_BEFORE = 2
STATIC_COMMITS = 7
STABLE_SINCE = 7
NOBODY = ""
WAIT_MS = 30_000


def _member(participants: Participants, step: "Commit | FetchOffsets") -> tuple[str, int]:
    """Who a step about offsets speaks for, and the epoch or generation it gives."""
    if step.who == ADMIN:
        return step.id if step.id != OWN else NOBODY, number(step.epoch, -1)
    seat = participants.seat(step.group, step.who)
    if step.classic:
        return classic_id(participants, step.group, step.who, step.id), number(
            step.epoch, seat.generation
        )
    return consumer_id(participants, step.group, step.who, step.id), number(step.epoch, seat.epoch)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Commit(Step):
    """An OffsetCommit; `classic`: with the member id and the generation of that protocol."""

    id: str = OWN
    epoch: Epoch = HEARD
    classic: bool = False
    instance: str | None = None
    topics: tuple[str, ...] = ("a",)
    partitions: tuple[int, ...] = (0, 1)
    offset: int = 5
    metadata: str | None = ""
    leader_epoch: int = -1
    version: int = 9

    def request(self, participants: Participants) -> tuple[Message, int]:
        member_id, epoch = _member(participants, self)
        partitions = [
            OffsetCommitRequestPartition(
                partition_index=one,
                committed_offset=self.offset,
                committed_leader_epoch=self.leader_epoch,
                committed_metadata=self.metadata,
            )
            for one in self.partitions
        ]
        by_id = self.version >= TOPIC_IDS_SINCE
        request = OffsetCommitRequest(
            group_id=participants.full(self.group),
            generation_id_or_member_epoch=epoch,
            member_id=member_id,
            group_instance_id=self.instance if self.version >= STATIC_COMMITS else None,
            topics=[
                OffsetCommitRequestTopic(
                    name="" if by_id else participants.full(name),
                    topic_id=participants.topic_id(name) if by_id else ZERO_UUID,
                    partitions=partitions,
                )
                for name in self.topics
            ],
        )
        return request, self.version


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FetchOffsets(Step):
    """An OffsetFetch, of all topics or of some."""

    id: str = OWN
    epoch: Epoch = HEARD
    classic: bool = False
    topics: tuple[str, ...] | None = None
    stable: bool = False
    version: int = 9

    def request(self, participants: Participants) -> tuple[Message, int]:
        member_id, epoch = _member(participants, self)
        by_id = self.version >= TOPIC_IDS_SINCE
        topics = None
        if self.topics is not None or self.version < NO_LIST_BEFORE:
            topics = [
                OffsetFetchRequestTopic(
                    name="" if by_id else participants.full(name),
                    topic_id=participants.topic_id(name) if by_id else ZERO_UUID,
                    partition_indexes=[0, 1, 7],
                )
                for name in self.topics or ()
            ]
        stable = self.stable and self.version >= STABLE_SINCE
        group = participants.full(self.group)
        if self.version < GROUPS_SINCE:
            request = OffsetFetchRequest(group_id=group, topics=topics, require_stable=stable)
            return request, self.version
        wanted = OffsetFetchRequestGroup(
            group_id=group,
            member_id=member_id if self.who != ADMIN else None,
            member_epoch=epoch,
            topics=topics,
        )
        return OffsetFetchRequest(groups=[wanted], require_stable=stable), self.version


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DeleteOffsets(Step):
    """An OffsetDelete."""

    topics: tuple[str, ...] = ("a",)
    partitions: tuple[int, ...] = (0, 7)

    def request(self, participants: Participants) -> tuple[Message, int]:
        topics = [
            OffsetDeleteRequestTopic(
                name=participants.full(name),
                partitions=[
                    OffsetDeleteRequestPartition(partition_index=one) for one in self.partitions
                ],
            )
            for name in self.topics
        ]
        return OffsetDeleteRequest(group_id=participants.full(self.group), topics=topics), 0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListAll(Step):
    """A ListGroups."""

    states: tuple[str, ...] = ()
    types: tuple[str, ...] = ()

    def request(self, participants: Participants) -> tuple[Message, int]:
        request = ListGroupsRequest(states_filter=list(self.states), types_filter=list(self.types))
        return request, 5


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DescribeClassic(Step):
    """A DescribeGroups."""

    version: int = 6

    def request(self, participants: Participants) -> tuple[Message, int]:
        return DescribeGroupsRequest(groups=[participants.full(self.group)]), self.version


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Describe(Step):
    """A ConsumerGroupDescribe."""

    def request(self, participants: Participants) -> tuple[Message, int]:
        request = ConsumerGroupDescribeRequest(
            group_ids=[participants.full(self.group)], include_authorized_operations=False
        )
        return request, 1


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DeleteGroup(Step):
    """A DeleteGroups."""

    def request(self, participants: Participants) -> tuple[Message, int]:
        return DeleteGroupsRequest(groups_names=[participants.full(self.group)]), 2


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TopicStep(Step):
    """What the groups' coordinator is told of when the answer has left."""

    @abstractmethod
    def changed(self, answer: Any) -> Mapping[str, int]:
        """The topics that are not what they were, and how many partitions they have now."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CreateTopic(TopicStep):
    """A CreateTopics."""

    names: tuple[str, ...]
    partitions: int = 3

    def request(self, participants: Participants) -> tuple[Message, int]:
        topics = [
            CreateTopicsTopic(
                name=participants.full(name),
                num_partitions=self.partitions,
                replication_factor=1,
                assignments=[],
                configs=[],
            )
            for name in self.names
        ]
        return CreateTopicsRequest(topics=topics, timeout_ms=WAIT_MS), 7

    def changed(self, answer: Any) -> Mapping[str, int]:
        codes = {topic.name: topic.error_code for topic in answer.topics}
        made = (full for full, code in codes.items() if code == ErrorCode.NONE)
        return {full.rpartition("-")[2]: self.partitions for full in made}

    def heard(self, participants: Participants, answer: Any) -> None:
        for topic in answer.topics:
            if topic.error_code == ErrorCode.NONE:
                participants.topic_ids[topic.name.removeprefix(f"{participants.tag}-")] = (
                    topic.topic_id
                )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GrowTopic(TopicStep):
    """A CreatePartitions."""

    name: str
    partitions: int

    def request(self, participants: Participants) -> tuple[Message, int]:
        topic = CreatePartitionsTopic(
            name=participants.full(self.name), count=self.partitions, assignments=None
        )
        request = CreatePartitionsRequest(topics=[topic], timeout_ms=WAIT_MS, validate_only=False)
        return request, 3

    def changed(self, answer: Any) -> Mapping[str, int]:
        return {} if answer.results[0].error_code else {self.name: self.partitions}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DeleteTopic(TopicStep):
    """A DeleteTopics."""

    name: str

    def request(self, participants: Participants) -> tuple[Message, int]:
        topic = DeleteTopicsTopic(name=participants.full(self.name), topic_id=ZERO_UUID)
        return DeleteTopicsRequest(topics=[topic], timeout_ms=WAIT_MS), 6

    def changed(self, answer: Any) -> Mapping[str, int]:
        return {} if answer.responses[0].error_code else {self.name: 0}
