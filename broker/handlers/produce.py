"""Produce (key 0, v0-13).

The request has one record batch for each partition. Its header is checked, and it is stored
unchanged. Clients of Kafka 0.8 to 0.10 (v0-2) send message sets, which are converted to a batch
first. (Apache Kafka advertises these versions and does not serve them: without them, old librdkafka
fails, see KAFKA-18659.)
With acks=0 there is no response, and an error closes the connection, because nothing else can
report it. When flush.messages is reached, the response waits for the fsync that covers the records.
A batch is stored later than the others of its request if its records take long to check, because
another process does that (record_walks), or if its log must be read from disk before its first
append.
v7 allows zstd · v8 adds error messages and the records at fault (KIP-467) · v13 names topics by id
(KIP-516).
Not done: transactional batches."""

import asyncio
from collections.abc import Awaitable, Mapping
from functools import partial
from typing import NamedTuple

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import RefusedRequestError
from odradek.broker.security.authorizer import refusal
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.protocol.batch_header import (
    CHECKED_POSITION,
    COMPRESSION_MASK,
    HEADER_BYTES,
    MAGIC_POSITION,
    MAGIC_V2,
    TRANSACTIONAL_BIT,
    TooManyRecordsError,
)
from odradek.protocol.compression import CompressionType
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProducePartitionResponse,
    ProduceRecordError,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicData,
    ProduceTopicResponse,
)
from odradek.protocol.schema import SplicedRecords
from odradek.storage.batch_validator import NotOneBatchError, read_one_batch
from odradek.storage.log import PartitionLog
from odradek.storage.record_walk import (
    AT_ONCE,
    RecordsRefusedError,
    WalkedRecords,
    WalkTooLongError,
    convert_messages,
)
from odradek.storage.topic_names import is_internal

ADMIN_CLIENT_ID = "__admin_client"
ATTRIBUTES_LOW_BYTE = CHECKED_POSITION + 1
LAST_VERSION_WITH_MESSAGE_SETS = 2
FIRST_VERSION_WITH_ZSTD = 7
FIRST_VERSION_BY_ID = 13
UNKNOWN_OFFSET = -1
# Errors of a log that are sent without the log start offset.
# Kafka: ReplicaManager.appendToLocalLog.
WITHOUT_LOG_START = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class ColdLogError(Exception):
    """The log must be read before its first append since it was opened. `batch` is a copy."""

    def __init__(self, batch: bytes) -> None:
        super().__init__()
        self.batch = batch


class LateBatch(NamedTuple):
    """A batch that cannot be appended yet, the reason, and the position of its answer."""

    topic: ProduceTopicData
    answers: list[ProducePartitionResponse]
    position: int
    reason: WalkTooLongError | ColdLogError


def handle(
    context: RequestContext, request: ProduceRequest
) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    late: list[LateBatch] = []
    if request.transactional_id is None or may_write_transactions(context, request):
        topics = [append_to_topic(context, request, topic, late) for topic in request.topic_data]
    else:
        error = refusal(ResourceType.TRANSACTIONAL_ID)
        topics = [refused_topic(topic, error) for topic in request.topic_data]
    syncs = context.broker.log_syncs
    due = syncs.take_due() if syncs.due else None
    if late:
        # Shielded: the batches are stored even if the client disconnects.
        return asyncio.shield(
            asyncio.ensure_future(answer_late(context, request, topics, late, due or {}))
        )
    if request.acks == 0:
        close_on_error(topics)
        return None
    if due:
        return answer_when_synced(context, topics, due)
    return ProduceResponse(responses=topics)


async def answer_late(
    context: RequestContext,
    request: ProduceRequest,
    topics: list[ProduceTopicResponse],
    late: list[LateBatch],
    due: Mapping[PartitionLog, asyncio.Future[None]],
) -> ProduceResponse | None:
    """Store the late batches, in order within each partition, and return the response."""
    due = dict(due)

    async def store(batches: list[LateBatch]) -> None:
        for each in batches:
            each.answers[each.position] = await append_late(context, each)
            if context.broker.log_syncs.due:
                due.update(context.broker.log_syncs.take_due())

    in_order: dict[tuple[str, bytes, int], list[LateBatch]] = {}
    for each in late:
        key = (each.topic.name, each.topic.topic_id, each.answers[each.position].index)
        in_order.setdefault(key, []).append(each)
    await asyncio.gather(*map(store, in_order.values()))
    if request.acks == 0:
        close_on_error(topics)
        return None
    if due:
        return await answer_when_synced(context, topics, due)
    return ProduceResponse(responses=topics)


async def append_late(context: RequestContext, late: LateBatch) -> ProducePartitionResponse:
    """Append a batch as soon as it does not have to wait. There may be several reasons to wait."""
    index, reason = late.answers[late.position].index, late.reason
    while True:
        try:
            batch, walked = await make_ready(context, late.topic, index, reason)
            name = topic_name(context, late.topic)  # raises if the topic was deleted meanwhile
        except ApiError as error:
            return refused(index, error)
        context.now_ms = context.broker.now_ms()
        try:
            return append_to_partition(
                context, name, ProducePartitionData(index=index, records=batch), walked
            )
        except (WalkTooLongError, ColdLogError) as again:
            reason = again


async def make_ready(
    context: RequestContext,
    topic: ProduceTopicData,
    index: int,
    reason: WalkTooLongError | ColdLogError,
) -> tuple[memoryview | bytes, WalkedRecords | None]:
    """Read a cold log, or check a batch in another process. Returns the batch and the result."""
    broker = context.broker
    if isinstance(reason, ColdLogError):
        name = topic_name(context, topic)
        await broker.cold_reads.look_up(
            lambda: broker.log_manager.get(name, index).prepare_append()
        )
        return reason.batch, None
    found = await broker.record_walks.run(reason.walk, reason.batch)
    if isinstance(found, WalkedRecords):
        return reason.batch, found
    return memoryview(found), None


async def answer_when_synced(
    context: RequestContext,
    topics: list[ProduceTopicResponse],
    due: Mapping[PartitionLog, asyncio.Future[None]],
) -> ProduceResponse:
    """Return the response after the fsyncs, with an error for each partition whose fsync failed."""
    await asyncio.wait(due.values())
    by_id = context.api_version >= FIRST_VERSION_BY_ID
    failures = {
        (log.topic_id if by_id else log.topic, log.partition): error
        for log, sync in due.items()
        if (error := sync.exception()) is not None
    }
    if not failures:
        return ProduceResponse(responses=topics)
    return ProduceResponse(
        responses=[
            ProduceTopicResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    not_synced(
                        done, failures.get((topic.topic_id if by_id else topic.name, done.index))
                    )
                    for done in topic.partition_responses
                ],
            )
            for topic in topics
        ]
    )


def not_synced(
    done: ProducePartitionResponse, error: BaseException | None
) -> ProducePartitionResponse:
    """The answer to an append whose fsync ended with `error`."""
    if error is None or done.error_code != ErrorCode.NONE:
        return done
    return ProducePartitionResponse(
        index=done.index,
        error_code=ErrorCode.KAFKA_STORAGE_ERROR,
        base_offset=UNKNOWN_OFFSET,
        error_message=str(error),
    )


def append_to_topic(
    context: RequestContext,
    request: ProduceRequest,
    topic: ProduceTopicData,
    late: list[LateBatch],
) -> ProduceTopicResponse:
    """Append the batches of a topic; those that cannot be appended yet are added to `late`."""
    try:
        name = topic_name(context, topic)
    except ApiError as error:
        return refused_topic(topic, error)
    if not context.authorize(AclOperation.WRITE, ResourceType.TOPIC, name):
        return refused_topic(topic, refusal(ResourceType.TOPIC))
    partitions: list[ProducePartitionResponse] = []
    problem = why_not_written(context, request, name)
    for partition in topic.partition_data:
        if problem is not None:
            earlier = earlier_refusal(context, name, partition)
            partitions.append(refused(partition.index, earlier or problem))
            continue
        try:
            partitions.append(append_to_partition(context, name, partition))
        except (WalkTooLongError, ColdLogError) as reason:
            late.append(LateBatch(topic, partitions, len(partitions), reason))
            partitions.append(
                ProducePartitionResponse(index=partition.index, base_offset=UNKNOWN_OFFSET)
            )
    return ProduceTopicResponse(
        name=topic.name, topic_id=topic.topic_id, partition_responses=partitions
    )


def refused_topic(topic: ProduceTopicData, error: ApiError) -> ProduceTopicResponse:
    return ProduceTopicResponse(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_responses=[refused(one.index, error) for one in topic.partition_data],
    )


def may_write_transactions(context: RequestContext, request: ProduceRequest) -> bool:
    """Whether the client may write with the request's transactional id.

    Only transactional batches need it: a client may send an id that it does not use.
    """
    assert request.transactional_id is not None
    has_transactional_batch = any(
        is_transactional(partition)
        for topic in request.topic_data
        for partition in topic.partition_data
    )
    return not has_transactional_batch or context.authorize(
        AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id
    )


def is_transactional(partition: ProducePartitionData) -> bool:
    records = partition.records
    if records is None or isinstance(records, SplicedRecords) or len(records) < HEADER_BYTES:
        return False
    return bool(records[ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_BIT)


def topic_name(context: RequestContext, topic: ProduceTopicData) -> str:
    """The topic's name, which newer clients do not send. Raises UNKNOWN_TOPIC_ID."""
    if context.api_version >= FIRST_VERSION_BY_ID:
        return context.broker.topic_name(topic.topic_id)
    return topic.name


def why_not_written(
    context: RequestContext, request: ProduceRequest, topic: str
) -> ApiError | None:
    """Return why the request may write to no partition of the topic, or None if it may write."""
    if request.acks not in (-1, 0, 1):
        text = f"acks is {request.acks}, not -1, 0 or 1"
        return ApiError(ErrorCode.INVALID_REQUIRED_ACKS, text)
    if is_internal(topic) and context.client_id != ADMIN_CLIENT_ID:
        text = f"{topic} is internal: only the broker writes to it"
        return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, text)
    return None


def earlier_refusal(
    context: RequestContext, topic: str, partition: ProducePartitionData
) -> ApiError | None:
    """An error that Kafka reports before those of `why_not_written`.

    The partition does not exist, or its field is not one batch.
    Kafka: KafkaApis.handleProduceRequest.
    """
    try:
        context.broker.log_manager.get(topic, partition.index)
        batch = batch_of(partition)
        if context.api_version > LAST_VERSION_WITH_MESSAGE_SETS:
            check_first_batch(context, batch)
            read_one_batch(batch)
    except ApiError as error:
        return error
    return None


def append_to_partition(
    context: RequestContext,
    topic: str,
    partition: ProducePartitionData,
    walked: WalkedRecords | None = None,
) -> ProducePartitionResponse:
    """Append a batch; `walked` and WalkTooLongError as in `PartitionLog.append`.

    Raises ColdLogError.
    """
    log_start_offset = UNKNOWN_OFFSET
    try:
        log = context.broker.log_manager.get(topic, partition.index)
        batch = batch_of(partition)
        if not log.is_prepared:
            raise ColdLogError(bytes(batch))
        if context.api_version <= LAST_VERSION_WITH_MESSAGE_SETS:
            batch = batch_of_messages(log, batch)
            if not batch:
                return ProducePartitionResponse(index=partition.index, base_offset=UNKNOWN_OFFSET)
        check_first_batch(context, batch)
        if context.broker.disk_space.low:
            context.broker.disk_space.check(log)
        log_start_offset = log.log_start_offset
        result = log.append(batch, now_ms=context.now_ms, walked=walked)
    except NotOneBatchError as error:
        return refused(partition.index, error)
    except ApiError as error:
        return refused(partition.index, error, log_start_offset)
    return ProducePartitionResponse(
        index=partition.index,
        base_offset=result.base_offset,
        log_append_time_ms=result.log_append_time_ms,
        log_start_offset=result.log_start_offset,
    )


def batch_of(partition: ProducePartitionData) -> memoryview | bytes:
    if partition.records is None or isinstance(partition.records, SplicedRecords):
        raise ApiError(ErrorCode.INVALID_RECORD, "there is no record batch in the request")
    return partition.records


def batch_of_messages(log: PartitionLog, records: memoryview | bytes) -> memoryview | bytes:
    """The record batch made of a message set, empty if the set has no whole message.

    A record batch is returned unchanged. Raises ApiError; WalkTooLongError if the conversion would
    take too long.
    """
    if len(records) > MAGIC_POSITION and records[MAGIC_POSITION] == MAGIC_V2:
        return records
    convert = partial(
        convert_messages,
        log_append_time=log.config.message_timestamp_type == "LogAppendTime",
        max_message_bytes=log.config.max_message_bytes,
    )
    try:
        return memoryview(convert(records, limits=AT_ONCE))
    except TooManyRecordsError as error:
        raise WalkTooLongError(str(error), bytes(records), convert) from None


def check_first_batch(context: RequestContext, records: memoryview | bytes) -> None:
    """Refuse transactions, and zstd from a client that could not read it back (KIP-110)."""
    if len(records) < HEADER_BYTES:
        return
    attributes = records[ATTRIBUTES_LOW_BYTE]
    if attributes & TRANSACTIONAL_BIT:
        raise ApiError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "transactions are not served yet"
        )
    if (
        attributes & COMPRESSION_MASK == CompressionType.ZSTD
        and context.api_version < FIRST_VERSION_WITH_ZSTD
    ):
        raise ApiError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"zstd needs Produce v{FIRST_VERSION_WITH_ZSTD} or later",
        )


def refused(
    index: int, error: ApiError, log_start_offset: int = UNKNOWN_OFFSET
) -> ProducePartitionResponse:
    """The answer for a refused batch; `log_start_offset` is that of the log."""
    singles = error.record_errors if isinstance(error, RecordsRefusedError) else ()
    return ProducePartitionResponse(
        index=index,
        error_code=error.code,
        base_offset=UNKNOWN_OFFSET,
        log_start_offset=UNKNOWN_OFFSET if error.code in WITHOUT_LOG_START else log_start_offset,
        record_errors=[
            ProduceRecordError(batch_index=index, batch_index_error_message=text)
            for index, text in singles
        ],
        error_message=error.message,
    )


def close_on_error(topics: list[ProduceTopicResponse]) -> None:
    for topic in topics:
        for partition in topic.partition_responses:
            if partition.error_code != ErrorCode.NONE:
                code = ErrorCode(partition.error_code)
                raise RefusedRequestError(
                    f"Produce with acks=0 to {topic.name}-{partition.index} failed:"
                    f" {code.name}: {partition.error_message}"
                )
