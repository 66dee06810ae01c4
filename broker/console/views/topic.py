"""One topic: its partitions, and what changes or deletes it."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus

from odradek.broker.console.calls import Call
from odradek.broker.console.endpoints import Endpoint, Nothing
from odradek.broker.console.refusals import check_code
from odradek.broker.console.view import View
from odradek.broker.http.messages import HttpError
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.metadata.topics import Partition, Topic
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from odradek.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicsTopic,
)
from odradek.protocol.primitives import ZERO_UUID, uuid_text
from odradek.storage.log import PartitionLog

from .topics import logs_of, size_bytes

EVERY_S = 2.0
TIMEOUT_MS = 30_000  # is not used: this broker has done what it answers


class TopicRequest(View):
    """A topic by its name."""

    topic: str


class TopicPartitionView(View):
    """A partition.

    If it is not served, `reason` says why and all that its log would tell is null.
    `high_watermark` and `last_stable_offset` are the ends of what consumers see that read
    uncommitted and committed records. `directory` is null if the client may not DESCRIBE the
    cluster, and `open_transactions` if it may not READ the topic.
    """

    partition: int
    leader: int
    leader_epoch: int
    directory: str | None
    is_online: bool
    reason: str | None
    log_start_offset: int | None = None
    last_stable_offset: int | None = None
    high_watermark: int | None = None
    log_end_offset: int | None = None
    size_bytes: int | None = None
    segments: int | None = None
    open_transactions: int | None = None


class TopicView(View):
    """A topic.

    `may_change`: the client may add partitions; `may_write`: it may produce; `may_delete`: it may
    delete the topic and records; `may_alter_configs`: it may change settings. All are false if the
    console is read-only.
    """

    name: str
    topic_id: str
    is_internal: bool
    may_change: bool
    may_write: bool
    may_delete: bool
    may_alter_configs: bool
    size_bytes: int
    partitions: list[TopicPartitionView]


class DeleteTopicRequest(TopicRequest):
    """`confirm` is the topic's name again."""

    confirm: str


class MorePartitionsRequest(TopicRequest):
    """`total` is the number of partitions afterwards."""

    total: int
    validate_only: bool = False


class DeleteRecordsUpTo(TopicRequest):
    """The first offset that stays, by partition; -1: the high watermark."""

    offsets: dict[int, int]


class RecordsNotDeleted(View):
    """A partition whose records stay, and the error."""

    partition: int
    error: str


class RecordsDeleted(View):
    """The first offset of each partition that was changed; and those that were refused."""

    low_watermarks: dict[int, int]
    failures: list[RecordsNotDeleted]


def described_topic(call: Call, name: str) -> Topic:
    """Return a topic that the client may describe. Raises ApiError."""
    call.check_topic(AclOperation.DESCRIBE, name)
    topic = call.observed.broker.metadata.topics.get(name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
    return topic


def described_log(call: Call, topic: str, partition: int) -> PartitionLog:
    """Return the open log of a topic that the client may describe. Raises ApiError."""
    described_topic(call, topic)
    return call.observed.broker.log_manager.get(topic, partition)


def topic_view(call: Call, request: TopicRequest) -> TopicView:
    """Make the view. Needs DESCRIBE on the topic."""
    topic = described_topic(call, request.topic)
    may_change = partial(call.may_change, resource_type=ResourceType.TOPIC, name=topic.name)
    return TopicView(
        name=topic.name,
        topic_id=uuid_text(topic.id),
        is_internal=topic.is_internal,
        may_change=may_change(AclOperation.ALTER),
        may_write=may_change(AclOperation.WRITE),
        may_delete=may_change(AclOperation.DELETE),
        may_alter_configs=may_change(AclOperation.ALTER_CONFIGS),
        size_bytes=size_bytes(logs_of(call, topic.name)),
        partitions=[
            _partition(call, topic.name, each) for each in call.sliced(topic.partitions.values())
        ],
    )


def _partition(call: Call, topic: str, partition: Partition) -> TopicPartitionView:
    manager = call.observed.broker.log_manager
    view = TopicPartitionView(
        partition=partition.index,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        directory=None,
        is_online=False,
        reason=None,
    )
    try:
        log = manager.get(topic, partition.index)
        if call.may_on_cluster(AclOperation.DESCRIBE):
            view.directory = str(manager.directory_of(log).path)
        log.check_online()
    except ApiError as error:
        view.reason = error.message
        return view
    view.is_online = True
    view.log_start_offset = log.log_start_offset
    view.last_stable_offset = log.last_stable_offset
    view.high_watermark = log.high_watermark
    view.log_end_offset = log.log_end_offset
    view.size_bytes = log.size_bytes
    view.segments = len(log.segments)
    if call.may(AclOperation.READ, ResourceType.TOPIC, topic):
        view.open_transactions = len(log.producers.open_transactions)
    return view


async def delete_topic(call: Call, request: DeleteTopicRequest) -> Nothing:
    """Delete a topic. Raises ApiError, HttpError."""
    if request.confirm != request.topic:
        text = f"to delete topic {request.topic}, give its name as confirm"
        raise HttpError(HTTPStatus.BAD_REQUEST, text)
    wanted = DeleteTopicsTopic(name=request.topic, topic_id=ZERO_UUID)
    answer = await call.ask(
        DeleteTopicsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS), DeleteTopicsResponse
    )
    (result,) = answer.responses
    check_code(result.error_code, result.error_message)
    return Nothing()


async def add_partitions(call: Call, request: MorePartitionsRequest) -> Nothing:
    """Give a topic more partitions. Raises ApiError."""
    wanted = CreatePartitionsTopic(name=request.topic, count=request.total, assignments=None)
    answer = await call.ask(
        CreatePartitionsRequest(
            topics=[wanted], timeout_ms=TIMEOUT_MS, validate_only=request.validate_only
        ),
        CreatePartitionsResponse,
    )
    (result,) = answer.results
    check_code(result.error_code, result.error_message)
    return Nothing()


async def delete_records(call: Call, request: DeleteRecordsUpTo) -> RecordsDeleted:
    """Delete the records before some offsets.

    Raises ApiError if all partitions are refused; else those that are refused are in the response.
    """
    if not request.offsets:
        raise ApiError(ErrorCode.INVALID_REQUEST, "offsets names no partition")
    wanted = DeleteRecordsTopic(
        name=request.topic,
        partitions=[
            DeleteRecordsPartition(partition_index=index, offset=offset)
            for index, offset in call.sliced(iter(request.offsets.items()))
        ],
    )
    answer = await call.ask(
        DeleteRecordsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS), DeleteRecordsResponse
    )
    results = answer.topics[0].partitions
    refused = [each for each in results if each.error_code]
    if refused and len(refused) == len(results):
        check_code(refused[0].error_code, f"records of {request.topic} were not deleted")
    return RecordsDeleted(
        low_watermarks={
            each.partition_index: each.low_watermark for each in results if not each.error_code
        },
        failures=[
            RecordsNotDeleted(partition=each.partition_index, error=ErrorCode(each.error_code).name)
            for each in refused
        ],
    )


ENDPOINTS = (
    Endpoint(
        method="GET",
        template="/topics/{topic}",
        summary="A topic and its partitions, with their offsets.",
        handle=topic_view,
        request=TopicRequest,
        response=TopicView,
        every_s=EVERY_S,
    ),
    Endpoint(
        method="DELETE",
        template="/topics/{topic}",
        summary="Delete a topic.",
        handle=delete_topic,
        request=DeleteTopicRequest,
        response=Nothing,
    ),
    Endpoint(
        method="POST",
        template="/topics/{topic}/partitions",
        summary="Give a topic more partitions.",
        handle=add_partitions,
        request=MorePartitionsRequest,
        response=Nothing,
    ),
    Endpoint(
        method="POST",
        template="/topics/{topic}/delete-records",
        summary="Delete the records before an offset of each partition.",
        handle=delete_records,
        request=DeleteRecordsUpTo,
        response=RecordsDeleted,
    ),
)
