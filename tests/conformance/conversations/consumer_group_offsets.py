"""Consumer groups as they are described, and their offsets by member epoch (KIP-848, KIP-1251)."""

from typing import Any

from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatTopicPartitions,
)
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.metadata import MetadataResponseTopic
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
from tests.conformance.conversation import Conversation
from tests.support.config_requests import alter_configs_request

GROUP_RESOURCE = 32


def _in_order(answer: Any) -> object:
    """Members by id, topics by name, partitions by number: Kafka's order is its hash tables'."""
    return [
        (
            *(group.group_id, group.error_code, bool(group.error_message), group.group_state),
            *(group.group_epoch, group.assignment_epoch, group.assignor_name),
            group.authorized_operations,
            sorted((_member(one) for one in group.members), key=lambda one: str(one[0])),
        )
        for group in answer.groups
    ]


def _member(one: Any) -> tuple[object, ...]:
    return (
        *(one.member_id, one.instance_id, one.rack_id, one.member_epoch, one.client_id),
        *(one.client_host, sorted(one.subscribed_topic_names), one.subscribed_topic_regex),
        one.member_type,
        *(
            sorted((topic.topic_name, sorted(topic.partitions)) for topic in part.topic_partitions)
            for part in (one.assignment, one.target_assignment)
        ),
    )


def _describe(talk: Conversation, *groups: str) -> None:
    for group in groups:
        for version in talk.versions_of(ConsumerGroupDescribeRequest):
            request = ConsumerGroupDescribeRequest(
                group_ids=[group], include_authorized_operations=version == 1
            )
            talk.ask(request, version, _in_order)


def _beat(
    talk: Conversation,
    group: str,
    member: str,
    epoch: int,
    *,
    owned: tuple[bytes, list[int]] | None = None,
    **words: Any,
) -> None:
    """A heartbeat, whose answer other conversations look at."""
    partitions = []
    if owned is not None:
        topic_id, indexes = owned
        partitions = [ConsumerGroupHeartbeatTopicPartitions(topic_id=topic_id, partitions=indexes)]
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        topic_partitions=partitions if owned is not None or epoch == 0 else None,
        **words,
    )
    answer = talk.silently(request, 1)
    assert not answer.error_code, answer


def _join(talk: Conversation, group: str, member: str, topic: str, **words: Any) -> None:
    said = {"subscribed_topic_names": [topic], "rebalance_timeout_ms": 60_000, **words}
    _beat(talk, group, member, 0, **said)


def _prepare(talk: Conversation, group: str) -> None:
    talk.wait_for_coordinator(group)
    change = {"consumer.assignment.interval.ms": "0"}
    talk.silently(alter_configs_request(GROUP_RESOURCE, group, change), 1)


def _commit(
    topic: MetadataResponseTopic, group: str, member: str, epoch: int, *partitions: int
) -> OffsetCommitRequest:
    wanted = [
        OffsetCommitRequestPartition(
            partition_index=index, committed_offset=epoch + 10, committed_metadata=""
        )
        for index in partitions
    ]
    return OffsetCommitRequest(
        group_id=group,
        member_id=member,
        generation_id_or_member_epoch=epoch,
        topics=[
            OffsetCommitRequestTopic(name=topic.name, topic_id=topic.topic_id, partitions=wanted)
        ],
    )


def consumer_groups_are_described(talk: Conversation) -> None:
    topic = talk.create_topic("shown", 4)
    _prepare(talk, "shown")
    _describe(talk, "", "shown-never", "shown")
    _join(talk, "shown", "first", "shown", rack_id="r", server_assignor="range")
    _describe(talk, "shown")
    _beat(talk, "shown", "first", 2, owned=(topic.topic_id, [0, 1, 2, 3]))
    _join(talk, "shown", "second", "shown", instance_id="i")
    _describe(talk, "shown")
    _beat(talk, "shown", "first", 2, owned=(topic.topic_id, [0, 1, 2, 3]))
    _describe(talk, "shown")
    _beat(talk, "shown", "first", 2, owned=(topic.topic_id, [0, 1]))
    _beat(talk, "shown", "second", 3)
    _describe(talk, "shown")
    _beat(talk, "shown", "second", -2, instance_id="i")
    _describe(talk, "shown")
    talk.ask(DeleteGroupsRequest(groups_names=["shown"]), 2)
    _beat(talk, "shown", "first", -1)
    _beat(talk, "shown", "second", -1)
    _describe(talk, "shown")

    def only_mine(answer: Any) -> object:
        return [
            (one.group_id, one.protocol_type, one.group_state, one.group_type)
            for one in answer.groups
            if one.group_id == "shown"
        ]

    for kinds in ([], ["consumer"], ["CONSUMER"], ["classic"]):
        talk.ask(ListGroupsRequest(types_filter=kinds), 5, only_mine)
        talk.ask(ListGroupsRequest(types_filter=kinds, states_filter=["empty"]), 5, only_mine)
    talk.ask(DeleteGroupsRequest(groups_names=["shown"]), 2)
    _describe(talk, "shown")


def offsets_are_committed_and_fetched_by_member_epoch(talk: Conversation) -> None:
    topic = talk.create_topic("member-epochs", 4)
    _prepare(talk, "member-epochs")
    _join(talk, "member-epochs", "first", "member-epochs")
    _beat(talk, "member-epochs", "first", 2, owned=(topic.topic_id, [0, 1, 2, 3]))
    for version in talk.versions_of(OffsetCommitRequest):
        talk.ask(_commit(topic, "member-epochs", "first", 2, 0), version)
        talk.ask(_commit(topic, "member-epochs", "first", 3, 0), version)
        talk.ask(_commit(topic, "member-epochs", "nobody", 2, 0), version)
        talk.ask(_commit(topic, "member-epochs", "", -1, 0), version)
    _join(talk, "member-epochs", "second", "member-epochs")
    _beat(talk, "member-epochs", "first", 2, owned=(topic.topic_id, [0, 1, 2, 3]))
    talk.ask(_commit(topic, "member-epochs", "first", 2, 0, 1, 2, 3), 9)
    talk.ask(_commit(topic, "member-epochs", "first", 1, 0), 9)
    _leave_to_each_other(talk, topic)
    for epoch in (4, 3, 2, 1, -1):
        for partition in range(4):
            for member in ("first", "second"):
                talk.ask(_commit(topic, "member-epochs", member, epoch, partition), 9)
    talk.ask(_commit(topic, "member-epochs", "first", 2, 0, 1, 2, 3), 10)
    wanted = [OffsetFetchRequestTopic(name="member-epochs", partition_indexes=[0, 1, 2, 3])]
    for member, epoch in ((None, -1), ("first", 3), ("first", 2), ("nobody", 3), ("", -1)):
        for topics in (wanted, None):
            group = OffsetFetchRequestGroup(
                group_id="member-epochs", member_id=member, member_epoch=epoch, topics=topics
            )
            talk.ask(OffsetFetchRequest(groups=[group]), 9, _offsets_in_order)
    for name in ("member-epochs", "epochs-not"):
        deletion = OffsetDeleteRequestTopic(
            name=name, partitions=[OffsetDeleteRequestPartition(partition_index=0)]
        )
        talk.ask(OffsetDeleteRequest(group_id="member-epochs", topics=[deletion]), 0)


def _leave_to_each_other(talk: Conversation, topic: MetadataResponseTopic) -> None:
    """Two give way to each other; both end at epoch 3 with what their targets say."""
    kept: dict[str, list[int]] = {}
    request = ConsumerGroupDescribeRequest(
        group_ids=["member-epochs"], include_authorized_operations=False
    )
    (group,) = talk.silently(request, 1).groups
    for one in group.members:
        kept[one.member_id] = [
            index for each in one.target_assignment.topic_partitions for index in each.partitions
        ]
    _beat(talk, "member-epochs", "first", 2, owned=(topic.topic_id, kept["first"]))
    _beat(talk, "member-epochs", "second", 3, owned=(topic.topic_id, kept["second"]))


def _offsets_in_order(answer: Any) -> object:
    return [
        (
            *(group.group_id, group.error_code),
            sorted(
                (topic.name, part.partition_index, part.committed_offset, part.error_code)
                for topic in group.topics
                for part in topic.partitions
            ),
        )
        for group in answer.groups
    ]
