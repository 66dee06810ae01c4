"""Produce (key 0, v0-13).

The request has one record batch for each partition. Its header is checked, and it is stored
unchanged. Clients of Kafka 0.8 to 0.10 (v0-2) send message sets, which are converted to a batch
first. (Apache Kafka advertises these versions and does not serve them: without them, old librdkafka
fails, see KAFKA-18659.)
With acks=0 there is no response, and an error closes the connection, because nothing else can
report it. When flush.messages is reached, the response waits for the fsync that covers the records.
A batch is stored later than the others of its request if its records take long to check, because
another process does that (record_walks), if its log must be read from disk before its first append,
or if the record that begins its transaction must be synced first. A producer of transaction version
2 waits while its last transaction is still being completed.
v7 allows zstd · v8 adds error messages and the records at fault (KIP-467) · v11 clients know
TRANSACTION_ABORTABLE · v12 adds the partitions to the producer's transaction (KIP-890) · v13 names
topics by id (KIP-516)."""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from odradek.broker.producing.produce_answers import (
    UNKNOWN_OFFSET,
    close_on_error,
    count_refusal,
    partition_with_error,
)
from odradek.broker.producing.produced_batches import (
    ATTRIBUTES_LOW_BYTE,
    FIRST_VERSION_BY_ID,
    FIRST_VERSION_WITH_ZSTD,
    batch_of,
    has_transactional_batch,
    is_closed,
    is_transactional,
    owned,
    topic_name,
)
from odradek.broker.producing.produced_transactions import (
    FIRST_VERSION_THAT_ADDS_PARTITIONS,
    is_ending,
    verify,
    verify_all,
    verify_when_ended,
)
from odradek.broker.producing.quick_produce import append_partition, append_quickly
from odradek.broker.producing.single_batch import SingleBatch
from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.named_leaders import named
from odradek.broker.security.authorizer import refusal
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.broker.transactions.verification import UnsyncedTransactionError, Verified
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.batch_header import (
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
    ProduceRequest,
    ProduceResponse,
    ProduceTopicData,
    ProduceTopicResponse,
)
from odradek.storage.batch_validator import NotOneBatchError, read_one_batch
from odradek.storage.log import PartitionLog
from odradek.storage.record_walk import (
    AT_ONCE,
    WalkedRecords,
    WalkTooLongError,
    convert_messages,
)
from odradek.storage.topic_partition import TopicPartition

LAST_VERSION_WITH_MESSAGE_SETS = 2
NO_TRANSACTIONAL_ID = ApiError(
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    "a transactional batch came without a transactional id",
)
# Errors of the transaction coordinator after which the write can be repeated.
RETRIED_LATER = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class ColdLogError(Exception):
    """The log must be read before its first append since it was opened. `batch` is a copy."""

    def __init__(self, batch: bytes) -> None:
        super().__init__()
        self.batch = batch


class UnsyncedBatchError(Exception):
    """The batch must wait for a record of the transaction coordinator. `batch` is a copy."""

    def __init__(self, batch: bytes, transaction: UnsyncedTransactionError) -> None:
        super().__init__()
        self.batch = batch
        self.transaction = transaction


REASONS = (WalkTooLongError, ColdLogError, UnsyncedBatchError)
Reason = WalkTooLongError | ColdLogError | UnsyncedBatchError


class LateBatch(NamedTuple):
    """A batch that cannot be appended yet, the reason, and the position of its answer."""

    topic: ProduceTopicData
    answers: list[ProducePartitionResponse]
    position: int
    reason: Reason


def handle(
    context: RequestContext, request: ProduceRequest | SingleBatch
) -> bytearray | ProduceResponse | Awaitable[ProduceResponse | None] | None:
    if context.slices is None:  # else it could be interrupted between its checks and its appends
        answer = append_quickly(context, request)
        if answer is not None:
            return answer if request.acks else None
    if isinstance(request, SingleBatch):
        request = request.whole()
    if request.transactional_id is None:
        if has_transactional_batch(context, request):
            return append(context, request, NO_TRANSACTIONAL_ID)
        return append(context, request, {})
    verified = verify_all(context, request)
    config = context.broker.config
    if is_ending(context, verified) and config.add_partitions_to_txn_retry_backoff_max_ms:
        return append_when_ended(context, owned(context, request))
    return append(context, request, verified)


async def append_when_ended(
    context: RequestContext, request: ProduceRequest
) -> ProduceResponse | None:
    """Append the batches when the producer's last transaction has ended, or refuse them."""
    answer = append(context, request, await verify_when_ended(context, request))
    return await answer if isinstance(answer, Awaitable) else answer


def append(
    context: RequestContext, request: ProduceRequest, verified: Verified | ApiError
) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    """Append the batches; `verified`: the answers of the transaction coordinator.

    An ApiError refuses all of them.
    """
    late: list[LateBatch] = []
    if isinstance(verified, ApiError):
        topics = [refused_topic(context, topic, verified) for topic in topics_of(context, request)]
    else:
        topics = [
            append_to_topic(context, request, topic, late, verified)
            for topic in topics_of(context, request)
        ]
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
    return named(context, ProduceResponse(responses=topics), ApiKey.PRODUCE)


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
            each.answers[each.position] = await append_late(context, request.transactional_id, each)
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
    return named(context, ProduceResponse(responses=topics), ApiKey.PRODUCE)


async def append_late(
    context: RequestContext, transactional_id: str | None, late: LateBatch
) -> ProducePartitionResponse:
    """Append a batch as soon as it does not have to wait. There may be several reasons to wait.

    Its transaction is verified again, because it may have ended in the meantime. The result of a
    check is kept while the batch waits for something else.
    """
    index, reason = late.answers[late.position].index, late.reason
    walked: WalkedRecords | None = None
    while True:
        try:
            batch, found = await make_ready(context, late.topic, index, reason)
            walked = found or walked
            name = topic_name(context, late.topic)  # raises if the topic was deleted meanwhile
        except ApiError as error:
            return partition_with_error(context, index, error)
        context.now_ms = context.broker.clock.now_ms()
        partition = ProducePartitionData(index=index, records=batch)
        try:
            verified: Verified = {}
            if transactional_id is not None:
                verified = verify(context, transactional_id, [(late.topic, partition)])
            return append_to_partition(context, name, partition, verified, walked)
        except ApiError as error:
            return partition_with_error(context, index, error)
        except REASONS as again:
            reason = again


async def make_ready(
    context: RequestContext,
    topic: ProduceTopicData,
    index: int,
    reason: Reason,
) -> tuple[memoryview | bytes, WalkedRecords | None]:
    """Read a cold log, check a batch in another process, or wait for the transaction's record.

    Returns the batch, and the result of a check.
    """
    broker = context.broker
    if isinstance(reason, UnsyncedBatchError):
        await reason.transaction.wait()
        return reason.batch, None
    if isinstance(reason, ColdLogError):
        name = topic_name(context, topic)
        await broker.fetching.cold_reads.look_up(
            lambda: broker.log_manager.get(name, index).prepare_append()
        )
        return reason.batch, None
    found = await broker.record_walks.run(reason.walk, reason.batch, context.session.client)
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
    if failures:
        topics = [
            ProduceTopicResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    not_synced(
                        done, failures.get((topic.topic_id if by_id else topic.name, done.index))
                    )
                    for done in context.sliced(topic.partition_responses)
                ],
            )
            for topic in context.sliced(topics)
        ]
    return named(context, ProduceResponse(responses=topics), ApiKey.PRODUCE)


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
    verified: Verified,
) -> ProduceTopicResponse:
    """Append the batches of a topic; those that cannot be appended yet are added to `late`."""
    try:
        name = topic_name(context, topic)
    except ApiError as error:
        return refused_topic(context, topic, error)
    if not context.authorize(AclOperation.WRITE, ResourceType.TOPIC, name):
        return refused_topic(context, topic, refusal(ResourceType.TOPIC))
    partitions: list[ProducePartitionResponse] = []
    problem = why_not_written(context, request, name)
    for partition in context.sliced(topic.partition_data):
        if context.slices is not None:
            try:
                name = topic_name(context, topic)  # raises if the topic was deleted meanwhile
            except ApiError as error:
                partitions.append(partition_with_error(context, partition.index, error))
                continue
            verified = verified_again(context, request, topic, partition, verified)
        if problem is not None:
            earlier = earlier_refusal(context, name, partition, verified)
            count_refusal(context, name)
            partitions.append(partition_with_error(context, partition.index, earlier or problem))
            continue
        try:
            answer = None
            if context.slices is not None:  # else `append_quickly` was tried with all of them
                answer = append_partition(context, request, name, partition)
            partitions.append(answer or append_to_partition(context, name, partition, verified))
        except REASONS as reason:
            late.append(LateBatch(topic, partitions, len(partitions), reason))
            partitions.append(
                ProducePartitionResponse(index=partition.index, base_offset=UNKNOWN_OFFSET)
            )
    return ProduceTopicResponse(
        name=topic.name, topic_id=topic.topic_id, partition_responses=partitions
    )


def verified_again(
    context: RequestContext,
    request: ProduceRequest,
    topic: ProduceTopicData,
    partition: ProducePartitionData,
    verified: Verified,
) -> Verified:
    """Verify a transactional batch: its transaction may have ended since the request was verified.

    A request that is served in slices is interrupted between two partitions.
    """
    if request.transactional_id is None or not is_transactional(partition):
        return verified
    try:
        return verify(context, request.transactional_id, [(topic, partition)])
    except ApiError as error:
        return {TopicPartition(topic_name(context, topic), partition.index): error}


def topics_of(context: RequestContext, request: ProduceRequest) -> Iterable[ProduceTopicData]:
    """The topics to answer. As in Kafka, one without partitions is left out."""
    return (topic for topic in context.sliced(request.topic_data) if topic.partition_data)


def refused_topic(
    context: RequestContext, topic: ProduceTopicData, error: ApiError
) -> ProduceTopicResponse:
    return ProduceTopicResponse(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_responses=[
            partition_with_error(context, partition.index, error)
            for partition in context.sliced(topic.partition_data)
        ],
    )


def check_verified(
    context: RequestContext,
    verified: Verified,
    where: TopicPartition,
    batch: memoryview | bytes,
) -> None:
    """Raise the error with which a transactional batch was refused, or UnsyncedBatchError.

    A batch that is missing in `verified` is not refused here. The log accepts it only if the
    transaction is open there.
    Kafka: KafkaApis.handleProduceRequest, ReplicaManager.handleProduceAppend.
    """
    error = verified.get(where)
    if error is None:
        return
    if isinstance(error, UnsyncedTransactionError):
        raise UnsyncedBatchError(bytes(batch), error)
    is_old = context.api_version < FIRST_VERSION_THAT_ADDS_PARTITIONS
    if error.code in RETRIED_LATER or (is_old and error.code is ErrorCode.CONCURRENT_TRANSACTIONS):
        # Old clients retry this error without asking for the metadata again.
        raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, f"cannot verify: {error.message}")
    raise error


def why_not_written(
    context: RequestContext, request: ProduceRequest, topic: str
) -> ApiError | None:
    """Return why the request may write to no partition of the topic, or None if it may write."""
    if request.acks not in (-1, 0, 1):
        text = f"acks is {request.acks}, not -1, 0 or 1"
        return ApiError(ErrorCode.INVALID_REQUIRED_ACKS, text)
    if is_closed(context, topic):
        text = f"{topic} is internal: only the broker writes to it"
        return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, text)
    return None


def earlier_refusal(
    context: RequestContext, topic: str, partition: ProducePartitionData, verified: Verified
) -> ApiError | None:
    """An error that Kafka reports before those of `why_not_written`.

    The partition does not exist, its field is not one batch, or its transaction is not verified.
    Kafka: KafkaApis.handleProduceRequest, ReplicaManager.handleProduceAppend.
    """
    try:
        context.broker.log_manager.get(topic, partition.index)
        batch = batch_of(partition)
        if context.api_version > LAST_VERSION_WITH_MESSAGE_SETS:
            check_first_batch(context, batch)
            read_one_batch(batch)
        check_verified(context, verified, TopicPartition(topic, partition.index), batch)
    except ApiError as error:
        return error
    except UnsyncedBatchError:
        return None
    return None


def append_to_partition(
    context: RequestContext,
    topic: str,
    partition: ProducePartitionData,
    verified: Verified,
    walked: WalkedRecords | None = None,
) -> ProducePartitionResponse:
    """Append a batch; `walked` and WalkTooLongError as in `PartitionLog.append`.

    Raises ColdLogError, UnsyncedBatchError.
    """
    log_start_offset = UNKNOWN_OFFSET
    try:
        log = context.broker.log_manager.get(topic, partition.index)
        batch = batch_of(partition)
        if context.api_version <= LAST_VERSION_WITH_MESSAGE_SETS:
            batch = batch_of_messages(log, batch)
            if not batch:
                return ProducePartitionResponse(index=partition.index, base_offset=UNKNOWN_OFFSET)
        attributes = check_first_batch(context, batch)
        if context.broker.disk_space.low:
            context.broker.disk_space.check(log)
        is_verified = False
        if attributes & TRANSACTIONAL_BIT:
            where = TopicPartition(topic, partition.index)
            check_verified(context, verified, where, batch)
            # Partitions are missing whose topic did not exist yet when the batches were verified.
            is_verified = where in verified
        if not log.is_prepared:
            raise ColdLogError(bytes(batch))
        log_start_offset = log.log_start_offset
        result = log.append(
            batch, now_ms=context.now_ms, transaction_verified=is_verified, walked=walked
        )
    except ApiError as error:
        count_refusal(context, topic)
        if isinstance(error, NotOneBatchError):
            return partition_with_error(context, partition.index, error)
        return partition_with_error(context, partition.index, error, log_start_offset)
    return ProducePartitionResponse(
        index=partition.index,
        base_offset=result.base_offset,
        log_append_time_ms=result.log_append_time_ms,
        log_start_offset=result.log_start_offset,
    )


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


def check_first_batch(context: RequestContext, records: memoryview | bytes) -> int:
    """Refuse zstd from a client that could not read it back (KIP-110). Returns the attributes.

    What is no batch has none; the log refuses it.
    """
    if len(records) < HEADER_BYTES or records[MAGIC_POSITION] != MAGIC_V2:
        return 0
    attributes = records[ATTRIBUTES_LOW_BYTE]
    if (
        attributes & COMPRESSION_MASK == CompressionType.ZSTD
        and context.api_version < FIRST_VERSION_WITH_ZSTD
    ):
        raise ApiError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"zstd needs Produce v{FIRST_VERSION_WITH_ZSTD} or later",
        )
    return attributes
