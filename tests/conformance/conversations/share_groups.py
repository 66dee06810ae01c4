"""Share groups: heartbeats, descriptions and start offsets by hand (KIP-932).

A member gets partitions once their state has been stored, which happens behind the scenes: that is
waited for. Targets are computed at once, for `share.assignment.interval.ms` is set to 0.
"""

from typing import Any

from odradek.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest
from odradek.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from odradek.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.conformance.conversation import Conversation, patiently
from tests.conformance.stored_states import await_share_coordinator
from tests.support.config_requests import alter_configs_request

GROUP_RESOURCE = 32
V1 = 1


def heartbeats_of_share_groups_are_checked(talk: Conversation) -> None:
    talk.create_topic("share-checked")
    group = "share-checked"
    _configure(talk, group)
    for wrong in (
        _join("", "m", "share-checked"),
        _join("  ", "m", "share-checked"),
        _join(group, "", "share-checked"),
        _join(group, " ", "share-checked"),
        _join(group, "m" * 37, "share-checked"),
        _join(group, "m", "share-checked", rack_id=""),
        _join(group, "m"),
        _beat(group, "m", 0),
        _beat(group, "m", -2),
        _beat(group, "m", 1),
        _beat(group, "m", -1),
    ):
        talk.ask(wrong, V1)
    talk.ask(_join(group, "m" * 36, "share-checked"), V1)
    talk.ask(_beat(group, "stranger", 2), V1)
    talk.ask(_beat(group, "stranger", -1), V1)
    talk.ask(_beat(group, "m" * 36, 9), V1)
    talk.ask(_beat(group, "m" * 36, -1), V1)
    talk.ask(_beat(group, "m" * 36, -1), V1)


def members_of_a_share_group_join_and_leave(talk: Conversation) -> None:
    topic = talk.create_topic("share-joined", 3)
    talk.transcript.write("topic", [{"topic_id": topic.topic_id}])
    await_share_coordinator(talk, topic.topic_id)
    group = "share-joined"
    _configure(talk, group)
    talk.ask(_join(group, "one", "share-joined"), V1)
    _assigned_soon(talk, "one is assigned", group, "one", 2)
    talk.ask(_beat(group, "one", 2), V1)
    talk.ask(_beat(group, "one", 3), V1)
    talk.ask(_beat(group, "one", 3, topics=["share-joined"]), V1)
    _describe(talk, group)
    # Which partitions each of two members gets depends on the order of a hash table in Kafka.
    _count(talk, _join(group, "two", "share-joined", rack_id="r"))
    _count(talk, _beat(group, "one", 3))
    _count(talk, _beat(group, "one", 3))
    _count(talk, _beat(group, "one", 1))
    _count(talk, _join(group, "one", "share-joined"))
    _count(talk, _beat(group, "two", 4, topics=["share-joined-not"]))
    _count(talk, _beat(group, "one", 4))
    _count(talk, _beat(group, "one", 5))
    talk.ask(_beat(group, "two", -1), V1)
    talk.ask(_beat(group, "one", 5), V1)
    talk.ask(_beat(group, "one", -1), V1)
    _describe(talk, group)
    talk.ask(DeleteGroupsRequest(groups_names=[group]), 2)
    _describe(talk, group)


def a_share_group_follows_its_topics(talk: Conversation) -> None:
    first = talk.create_topic("share-follows-a")
    talk.transcript.write("topic", [{"topic_id": first.topic_id}])
    await_share_coordinator(talk, first.topic_id)
    group = "share-follows"
    _configure(talk, group)
    talk.ask(_join(group, "m", "share-follows-a", "share-follows-b"), V1)
    _assigned_soon(talk, "the first", group, "m", 2)
    more = CreatePartitionsTopic(name="share-follows-a", count=3, assignments=None)
    request = CreatePartitionsRequest(topics=[more], timeout_ms=9_000, validate_only=False)
    talk.silently(request, 3)
    second = talk.create_topic("share-follows-b", 2)
    talk.transcript.write("topic", [{"topic_id": second.topic_id}])
    epoch = _settled(talk, group, "m", 3, 5)
    _describe(talk, group, without_epochs=True)
    talk.silently(DeleteTopicsRequest(topic_names=["share-follows-b"], timeout_ms=9_000), 5)
    talk.wait_until_gone("share-follows-b")
    _settled(talk, group, "m", epoch, 3)
    _describe(talk, group, without_epochs=True)
    _offsets(talk, group, None)


def start_offsets_of_share_groups_are_administered(talk: Conversation) -> None:
    topic = talk.create_topic("share-starts", 2)
    talk.transcript.write("topic", [{"topic_id": topic.topic_id}])
    await_share_coordinator(talk, topic.topic_id)
    group = "share-starts"
    _configure(talk, group)
    _offsets(talk, group, None)
    _offsets(talk, group, {"share-starts": [0, 1], "share-starts-not": [0]})
    talk.ask(_alter(group, {}), 0)
    _note_listed(talk, group)
    talk.ask(_alter(group, {"share-starts": {0: 5, 9: 1}, "share-starts-not": {0: 0}}), 0)
    patiently(lambda: _has_offsets(talk, group))
    _describe(talk, group)
    _offsets(talk, group, None)
    _offsets(talk, group, {"share-starts": [1, 0]})
    talk.ask(_alter("", {"share-starts": {0: 5}}), 0)
    talk.ask(_delete(group, "share-starts-not"), 0)
    talk.ask(_delete("share-starts-none", "share-starts"), 0)
    talk.ask(_delete("", "share-starts"), 0)
    talk.ask(_join(group, "m", "share-starts"), V1)
    patiently(lambda: _has_offsets(talk, group, partitions=2))
    talk.ask(_alter(group, {"share-starts": {0: 5}}), 0)
    talk.ask(_delete(group, "share-starts"), 0)
    talk.ask(DeleteGroupsRequest(groups_names=[group]), 2)
    talk.ask(_beat(group, "m", -1), V1)
    talk.ask(_delete(group, "share-starts", "share-starts-not"), 0)
    _offsets(talk, group, None)
    talk.ask(_delete(group, "share-starts"), 0)
    talk.ask(DeleteGroupsRequest(groups_names=[group]), 2)
    talk.ask(_delete(group, "share-starts"), 0)


def a_share_group_is_no_consumer_group(talk: Conversation) -> None:
    topic = talk.create_topic("share-other")
    await_share_coordinator(talk, topic.topic_id)
    shared, consumed = "share-other", "share-other-consumer"
    for group in (shared, consumed):
        _configure(talk, group)
    talk.ask(_join(shared, "m", "share-other"), V1)
    join = ConsumerGroupHeartbeatRequest(
        group_id=shared,
        member_id="c",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["share-other"],
        topic_partitions=[],
    )
    talk.ask(join, V1)
    consumer = ConsumerGroupHeartbeatRequest(
        group_id=consumed,
        member_id="c",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["share-other"],
        topic_partitions=[],
    )
    talk.silently(consumer, V1)
    talk.ask(_join(consumed, "m", "share-other"), V1)
    talk.ask(_alter(consumed, {"share-other": {0: 0}}), 0)
    talk.ask(_delete(consumed, "share-other"), 0)
    _describe(talk, consumed)
    _offsets(talk, consumed, None)
    talk.ask(OffsetFetchRequest(group_id=shared, topics=[]), 6)
    _note_listed(talk, shared, consumed)
    talk.ask(_beat(shared, "m", -1), V1)


# -- requests --------------------------------------------------------------------------------------


def _beat(
    group: str, member: str, epoch: int, *, topics: list[str] | None = None, rack_id: Any = None
) -> ShareGroupHeartbeatRequest:
    return ShareGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        rack_id=rack_id,
        subscribed_topic_names=topics,
    )


def _join(group: str, member: str, *topics: str, rack_id: Any = None) -> ShareGroupHeartbeatRequest:
    return _beat(group, member, 0, topics=list(topics), rack_id=rack_id)


def _configure(talk: Conversation, group: str) -> None:
    talk.wait_for_coordinator(group)
    change: dict[str, str | None] = {
        "share.assignment.interval.ms": "0",
        "consumer.assignment.interval.ms": "0",
    }
    talk.silently(alter_configs_request(GROUP_RESOURCE, group, change), 1)


def _assigned_soon(talk: Conversation, title: str, group: str, member: str, epoch: int) -> None:
    """Beat until there is an assignment, and write that down."""

    def assigned() -> Any:
        answer = talk.silently(_beat(group, member, epoch), V1)
        return answer if answer.assignment is not None or answer.error_code else None

    talk.transcript.write(title, patiently(assigned))


def _count(talk: Conversation, request: ShareGroupHeartbeatRequest) -> None:
    """Beat, and note how many partitions the member gets, but not which ones."""
    answer = talk.silently(request, V1)
    assigned = answer.assignment and [
        len(topic.partitions) for topic in answer.assignment.topic_partitions
    ]
    noted = [answer.error_code, answer.member_epoch, assigned]
    talk.transcript.write(f"{request.member_id} gets partitions", noted)


def _settled(talk: Conversation, group: str, member: str, epoch: int, partitions: int) -> int:
    """Beat until a member has so many partitions. Returns its epoch."""

    def settled() -> int | None:
        nonlocal epoch
        answer = talk.silently(_beat(group, member, epoch, topics=_topics(group)), V1)
        assert not answer.error_code, answer
        epoch = answer.member_epoch
        found = sum(len(topic.partitions) for topic in answer.assignment.topic_partitions)
        return epoch if found == partitions else None

    found: int = patiently(settled)
    return found


def _topics(group: str) -> list[str]:
    return [f"{group}-a", f"{group}-b"]


def _describe(talk: Conversation, group: str, *, without_epochs: bool = False) -> None:
    request = ShareGroupDescribeRequest(group_ids=[group], include_authorized_operations=False)
    if not without_epochs:
        talk.ask(request, V1)
        return
    [found] = talk.silently(request, V1).groups
    members = [(one.member_id, one.assignment) for one in found.members]
    talk.transcript.write(f"{group} is", [found.group_state, members])


def _offsets(talk: Conversation, group: str, topics: dict[str, list[int]] | None) -> None:
    wanted = topics and [
        DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=partitions)
        for name, partitions in topics.items()
    ]
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=wanted)
    for version in talk.versions_of(DescribeShareGroupOffsetsRequest):
        talk.ask(DescribeShareGroupOffsetsRequest(groups=[asked]), version)


def _has_offsets(talk: Conversation, group: str, partitions: int = 1) -> bool | None:
    """Whether so many partitions have a state: Kafka makes it some time after a member has come."""
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
    [found] = talk.silently(DescribeShareGroupOffsetsRequest(groups=[asked]), 1).groups
    return sum(len(topic.partitions) for topic in found.topics) >= partitions or None


def _alter(group: str, offsets: dict[str, dict[int, int]]) -> AlterShareGroupOffsetsRequest:
    return AlterShareGroupOffsetsRequest(
        group_id=group,
        topics=[
            AlterShareGroupOffsetsRequestTopic(
                topic_name=name,
                partitions=[
                    AlterShareGroupOffsetsRequestPartition(
                        partition_index=partition, start_offset=offset
                    )
                    for partition, offset in partitions.items()
                ],
            )
            for name, partitions in offsets.items()
        ],
    )


def _delete(group: str, *topics: str) -> DeleteShareGroupOffsetsRequest:
    return DeleteShareGroupOffsetsRequest(
        group_id=group,
        topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics],
    )


def _note_listed(talk: Conversation, *names: str) -> None:
    answer = talk.silently(ListGroupsRequest(states_filter=[], types_filter=[]), 5)
    found = [group for group in answer.groups if group.group_id in names]
    talk.transcript.write(f"{names} are listed as", sorted(found, key=lambda one: one.group_id))
