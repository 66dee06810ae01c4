"""What changes a group: setting its offsets, deleting them, deleting the group."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Literal, NamedTuple

from msgspec import field

from odradek.broker.console.calls import Call
from odradek.broker.console.endpoints import Endpoint, Nothing
from odradek.broker.console.groups.deliveries import start_offset_of
from odradek.broker.console.groups.finding import find_group
from odradek.broker.console.refusals import check_code
from odradek.broker.console.view import View
from odradek.broker.http.messages import HttpError
from odradek.broker.security.operations import AclOperation
from odradek.coordinator.any_group.group import Committer, Group
from odradek.coordinator.groups.group_state import GroupState
from odradek.coordinator.metadata.topics import Topic
from odradek.coordinator.share_groups.group import ShareGroup
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from odradek.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
)
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)

CONSUMER = -1  # the replica id of a request that is not a replica's
# Timestamps of ListOffsets that stand for an offset.
LATEST, EARLIEST = -1, -2
NO_OFFSET = -1


class NewOffsetsRequest(View):
    """Offsets to set in partitions of a topic; None: in all.

    `value` is the offset, the time in milliseconds (the first record at or after it, else the end),
    or by how many records to shift. Offsets outside of the log become its start or its end.
    `preview`: nothing is set.
    """

    group: str
    topic: str
    to: Literal["earliest", "latest", "offset", "time", "shift"]
    partitions: list[int] | None = None
    value: int | None = None
    preview: bool = True


class NewOffset(View):
    """The offset of a partition before and after; None: it had none."""

    topic: str
    partition: int
    to: int
    before: int | None = field(name="from")


class NewOffsets(View):
    """Offsets that were set, or would be. `refusal`: why they cannot be set now."""

    offsets: list[NewOffset]
    refusal: str | None = None


class DeleteGroupRequest(View):
    """`confirm` is the id of the group again."""

    group: str
    confirm: str


class DeleteOffsetsRequest(View):
    """The partitions of a topic whose offsets to delete; None: all. Share groups delete all."""

    group: str
    topic: str
    partitions: list[int] | None = None


# -- setting offsets -------------------------------------------------------------------------------


async def set_offsets(call: Call, request: NewOffsetsRequest) -> NewOffsets:
    """Set offsets, or say what would be set."""
    find_group(call, request.group, AclOperation.READ)
    topic = _topic(call, request.topic)
    partitions = sorted(topic.partitions if request.partitions is None else set(request.partitions))
    targets = await _targets(call, request, partitions)
    group, state = find_group(call, request.group, AclOperation.READ)  # as it is now
    offsets = [
        NewOffset(
            topic=topic.name,
            partition=partition,
            before=_offset_before(call, group, state, topic, partition),
            to=targets.offset_of(partition),
        )
        for partition in call.sliced(partitions)
    ]
    if request.to == "shift":
        _shift(call, offsets, targets, request)
    refusal = _refusal(group)
    if not request.preview:
        if refusal is not None:
            raise refusal
        await _apply(call, group, topic, offsets)
    return NewOffsets(offsets=offsets, refusal=None if refusal is None else refusal.message)


def _topic(call: Call, name: str) -> Topic:
    call.check_topic(AclOperation.READ, name)
    topic = call.observed.broker.metadata.topics.get(name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
    return topic


class _Targets(NamedTuple):
    """The logs' first and last offsets by partition, and the offsets to set if they are known."""

    earliest: Mapping[int, int]
    latest: Mapping[int, int]
    wanted: Mapping[int, int]

    def offset_of(self, partition: int) -> int:
        """The wanted offset if it is in the log, else the start or the end."""
        return self.clamped(partition, self.wanted.get(partition, self.latest[partition]))

    def clamped(self, partition: int, offset: int) -> int:
        return max(self.earliest[partition], min(offset, self.latest[partition]))


async def _targets(call: Call, request: NewOffsetsRequest, partitions: list[int]) -> _Targets:
    earliest = await _listed(call, request.topic, partitions, EARLIEST)
    latest = await _listed(call, request.topic, partitions, LATEST)
    if request.to == "earliest":
        return _Targets(earliest, latest, earliest)
    if request.to == "latest":
        return _Targets(earliest, latest, latest)
    value = request.value
    if value is None or (value < 0 and request.to != "shift"):
        text = f"{request.to} needs a value" + ("" if request.to == "shift" else ", 0 or more")
        raise HttpError(HTTPStatus.BAD_REQUEST, text)
    if request.to == "time":
        listed = await _listed(call, request.topic, partitions, value)
        after = {index: offset for index, offset in listed.items() if offset != NO_OFFSET}
        return _Targets(earliest, latest, after)
    return _Targets(earliest, latest, dict.fromkeys(partitions, value))


async def _listed(
    call: Call, topic: str, partitions: list[int], timestamp: int
) -> Mapping[int, int]:
    """ListOffsets for a timestamp. Raises ApiError if it fails for a partition."""
    wanted = [
        ListOffsetsPartition(partition_index=each, timestamp=timestamp)
        for each in call.sliced(partitions)
    ]
    request = ListOffsetsRequest(
        replica_id=CONSUMER, topics=[ListOffsetsTopic(name=topic, partitions=wanted)]
    )
    answer = await call.ask(request, ListOffsetsResponse)
    offsets: dict[int, int] = {}
    for listed in answer.topics:
        for partition in call.sliced(listed.partitions):
            check_code(partition.error_code, f"{topic}-{partition.partition_index}")
            offsets[partition.partition_index] = partition.offset
    return offsets


def _offset_before(
    call: Call, group: Group, state: GroupState, topic: Topic, partition: int
) -> int | None:
    if isinstance(group, ShareGroup):
        return start_offset_of(call, SharePartitionKey(group.group_id, topic.id, partition))
    committed = state.offsets.of_group(group.group_id).get(topic.name, {}).get(partition)
    return committed.offset if committed is not None and committed.is_of(topic.id) else None


def _shift(
    call: Call, offsets: list[NewOffset], targets: _Targets, request: NewOffsetsRequest
) -> None:
    assert request.value is not None
    for offset in call.sliced(offsets):
        if offset.before is None:
            text = f"there is no offset of {offset.topic}-{offset.partition} that could be shifted"
            raise HttpError(HTTPStatus.BAD_REQUEST, text)
        offset.to = targets.clamped(offset.partition, offset.before + request.value)


def _refusal(group: Group) -> ApiError | None:
    """Why the offsets of a group cannot be set now: it has members."""
    try:
        if isinstance(group, ShareGroup):
            group.check_deletable()  # as AlterShareGroupOffsets does
        else:
            group.check_commit(Committer())
    except ApiError as error:
        text = (
            f"group {group.group_id} is {group.state_name}, and has members"
            f" ({len(group.members)}); its offsets can be set while it has none"
        )
        return ApiError(error.code, text)
    return None


async def _apply(call: Call, group: Group, topic: Topic, offsets: list[NewOffset]) -> None:
    if isinstance(group, ShareGroup):
        await _alter(call, group.group_id, topic, offsets)
    else:
        await _commit(call, group.group_id, topic, offsets)


async def _commit(call: Call, group_id: str, topic: Topic, offsets: list[NewOffset]) -> None:
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=each.partition, committed_offset=each.to, committed_metadata=""
        )
        for each in call.sliced(offsets)
    ]
    request = OffsetCommitRequest(
        group_id=group_id,
        topics=[
            OffsetCommitRequestTopic(name=topic.name, topic_id=topic.id, partitions=partitions)
        ],
    )
    answer = await call.ask(request, OffsetCommitResponse)
    for committed in answer.topics:
        for partition in call.sliced(committed.partitions):
            check_code(partition.error_code, f"{topic.name}-{partition.partition_index}")


async def _alter(call: Call, group_id: str, topic: Topic, offsets: list[NewOffset]) -> None:
    partitions = [
        AlterShareGroupOffsetsRequestPartition(partition_index=each.partition, start_offset=each.to)
        for each in call.sliced(offsets)
    ]
    request = AlterShareGroupOffsetsRequest(
        group_id=group_id,
        topics=[AlterShareGroupOffsetsRequestTopic(topic_name=topic.name, partitions=partitions)],
    )
    answer = await call.ask(request, AlterShareGroupOffsetsResponse)
    check_code(answer.error_code, answer.error_message)
    for altered in answer.responses:
        for partition in call.sliced(altered.partitions):
            check_code(partition.error_code, partition.error_message)


# -- deleting --------------------------------------------------------------------------------------


async def delete_group(call: Call, request: DeleteGroupRequest) -> Nothing:
    """Delete a group that has no members, with its offsets."""
    if request.confirm != request.group:
        text = "confirm must be the id of the group that is deleted"
        raise HttpError(HTTPStatus.BAD_REQUEST, text)
    answer = await call.ask(DeleteGroupsRequest(groups_names=[request.group]), DeleteGroupsResponse)
    [result] = answer.results
    check_code(result.error_code, result.error_message)
    return Nothing()


async def delete_offsets(call: Call, request: DeleteOffsetsRequest) -> Nothing:
    """Delete offsets of a group in a topic that no member reads."""
    group, state = find_group(call, request.group, AclOperation.DELETE)
    if isinstance(group, ShareGroup):
        await _delete_start_offsets(call, request)
        return Nothing()
    known = state.offsets.of_group(request.group).get(request.topic, {})
    partitions = list(known) if request.partitions is None else request.partitions
    answer = await call.ask(
        OffsetDeleteRequest(
            group_id=request.group,
            topics=[
                OffsetDeleteRequestTopic(
                    name=request.topic,
                    partitions=[
                        OffsetDeleteRequestPartition(partition_index=each)
                        for each in call.sliced(partitions)
                    ],
                )
            ],
        ),
        OffsetDeleteResponse,
    )
    check_code(answer.error_code, f"group {request.group} has members")
    for topic in answer.topics:
        for partition in call.sliced(topic.partitions):
            check_code(partition.error_code, f"{topic.name}-{partition.partition_index}")
    return Nothing()


async def _delete_start_offsets(call: Call, request: DeleteOffsetsRequest) -> None:
    if request.partitions is not None:
        text = "a share group's offsets of a topic are deleted together: leave out partitions"
        raise HttpError(HTTPStatus.BAD_REQUEST, text)
    answer = await call.ask(
        DeleteShareGroupOffsetsRequest(
            group_id=request.group,
            topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=request.topic)],
        ),
        DeleteShareGroupOffsetsResponse,
    )
    check_code(answer.error_code, answer.error_message)
    for topic in answer.responses:
        check_code(topic.error_code, topic.error_message)


ENDPOINTS = (
    Endpoint(
        method="POST",
        template="/groups/{group}/offsets",
        summary="Set the offsets of a group without members, or preview them.",
        handle=set_offsets,
        request=NewOffsetsRequest,
        response=NewOffsets,
    ),
    Endpoint(
        method="DELETE",
        template="/groups/{group}/offsets",
        summary="Delete the offsets of a group in a topic.",
        handle=delete_offsets,
        request=DeleteOffsetsRequest,
        response=Nothing,
    ),
    Endpoint(
        method="DELETE",
        template="/groups/{group}",
        summary="Delete a group that has no members.",
        handle=delete_group,
        request=DeleteGroupRequest,
        response=Nothing,
    ),
)
