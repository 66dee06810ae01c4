"""ListOffsets (key 2, v0-11; advertised from 1).

Returns the offset of the first record at or after a timestamp, or the offset that a special
timestamp stands for: -1 latest, -2 earliest, -3 the record with the greatest timestamp (v7), -4
earliest local (v8), -5 latest tiered (v9), -6 earliest pending upload (v11). There is no tiered
storage: -4 is the log start offset, and for -5 and -6 the offset is -1.
Apache Kafka serves v1 and above, and so these are advertised. v0 is also served, for clients of
Kafka 0.8. It lists the base offsets of the segments last modified before a timestamp, newest first,
with -1 and -2 as above."""

from collections.abc import Awaitable, Iterable
from functools import partial

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.broker.turns.seen import Seen, repetitions
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from odradek.storage.files import WouldWaitError, combine
from odradek.storage.log import PartitionLog
from odradek.storage.time_search import OffsetAtTime

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

FIRST_VERSION = {
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
NEVER = 0x7FFF
READ_COMMITTED = 1
CONSUMER = -1  # the replica id of a request that is not a replica's
ISOLATION_LEVELS = (0, READ_COMMITTED)
NO_TIMESTAMP = -1
NOWHERE = OffsetAtTime(NO_TIMESTAMP, -1, -1)


def handle(
    context: RequestContext, request: ListOffsetsRequest
) -> ListOffsetsResponse | Awaitable[ListOffsetsResponse]:
    if request.isolation_level not in ISOLATION_LEVELS:
        return unknown_isolation_level(context, request)
    try:
        with context.broker.fetching.cold_reads.first_attempt:
            return look_up_all(context, request)
    except WouldWaitError as missing:
        return context.broker.fetching.cold_reads.look_up(
            partial(look_up_all, context, request), missing, context.session.client
        )


def unknown_isolation_level(
    context: RequestContext, request: ListOffsetsRequest
) -> ListOffsetsResponse:
    """Kafka's answer: an unexpected error for each partition."""
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=wanted.partition_index, error_code=error
                    )
                    for wanted in context.sliced(topic.partitions)
                ],
            )
            for topic in context.sliced(request.topics)
        ]
    )


def look_up_all(context: RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Look up all offsets. Raises WouldWaitError with all that must be read from disk first.

    WouldWaitError is raised only inside an attempt (cold_reads.py).
    """
    missing: list[WouldWaitError] = []
    response = ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=offsets_of(context, request, topic, missing),
            )
            for topic in context.sliced(request.topics)
        ]
    )
    if missing:
        raise combine(missing)
    return response


def offsets_of(
    context: RequestContext,
    request: ListOffsetsRequest,
    topic: ListOffsetsTopic,
    missing: list[WouldWaitError],
) -> list[ListOffsetsPartitionResponse]:
    """Return the offset or the error of each partition. One that occurs twice has an error.

    A partition that would wait for the disk is left out, and its error is added to `missing`.
    """
    if not context.authorize(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name):
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return [
            ListOffsetsPartitionResponse(partition_index=item.partition_index, error_code=error)
            for item in context.sliced(topic.partitions)
        ]
    results = []
    for index, wanted in each_once(context, topic.partitions):
        if wanted is None:
            refusal = ErrorCode.INVALID_REQUEST
            results.append(ListOffsetsPartitionResponse(partition_index=index, error_code=refusal))
            continue
        try:
            results.append(offset_of(context, request, topic.name, wanted))
        except WouldWaitError as error:
            missing.append(error.with_traceback(None))
    return results


def each_once(
    context: RequestContext, partitions: list[ListOffsetsPartition]
) -> Iterable[tuple[int, ListOffsetsPartition | None]]:
    """Each index and its partition, or None if it occurs twice. v0 allows that."""
    if context.api_version == 0:
        return ((item.partition_index, item) for item in context.sliced(partitions))
    indexes = [item.partition_index for item in context.sliced(partitions)]
    repeated = repetitions(context.sliced(indexes))
    first = Seen[int]()
    return (
        (index, None if index in repeated else item)
        for index, item in zip(context.sliced(indexes), partitions, strict=True)
        if first.add(index)
    )


def offset_of(
    context: RequestContext, request: ListOffsetsRequest, topic: str, wanted: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    try:
        check_timestamp(context, wanted.timestamp)
        log = context.broker.log_manager.get(topic, wanted.partition_index)
        if context.api_version == 0:
            return list_starts(context, log, wanted)
        context.broker.check_leader_epoch(log, wanted.current_leader_epoch)
        timestamp_ms, offset, leader_epoch = look_up(log, wanted.timestamp, request)
    except ApiError as error:
        return ListOffsetsPartitionResponse(
            partition_index=wanted.partition_index, error_code=error.code
        )
    return ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index,
        timestamp=timestamp_ms,
        offset=offset,
        leader_epoch=leader_epoch if context.api_version >= 4 else -1,
    )


def list_starts(
    context: RequestContext, log: PartitionLog, wanted: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    """Up to `max_num_offsets` offsets at which segments begin."""
    offsets = log.offsets_written_before(wanted.timestamp, context.now_ms)
    return ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index,
        old_style_offsets=offsets[: max(0, wanted.max_num_offsets)],
    )


def check_timestamp(context: RequestContext, timestamp: int) -> None:
    """Raise UNSUPPORTED_VERSION for a special timestamp that this version does not have."""
    first = FIRST_VERSION.get(timestamp, 0 if timestamp >= EARLIEST else NEVER)
    if context.api_version < first:
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"v{context.api_version} cannot look up timestamp {timestamp}",
        )


def look_up(log: PartitionLog, timestamp: int, request: ListOffsetsRequest) -> OffsetAtTime:
    """The offset for a timestamp, or for a special timestamp."""
    log.check_online()  # the state in memory of an offline log is not reliable
    # A replica, or a debugging client (-2), is not held back by open transactions.
    committed = request.isolation_level == READ_COMMITTED and request.replica_id == CONSUMER
    end_offset = log.last_stable_offset if committed else log.high_watermark
    if timestamp == LATEST:
        return OffsetAtTime(NO_TIMESTAMP, end_offset, log.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return log.earliest_offset()
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOWHERE
    record = (
        log.offset_of_max_timestamp()
        if timestamp == MAX_TIMESTAMP
        else log.offset_for_timestamp(timestamp)
    )
    return record if record is not None and record.offset < end_offset else NOWHERE
