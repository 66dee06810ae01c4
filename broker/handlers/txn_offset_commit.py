"""TxnOffsetCommit (key 28, v0-6).

Stores the offsets of a group as part of a producer's transaction. They take effect when the
transaction is committed. Topics and partitions must exist.
If the transaction's record must be synced first (`flush.messages`), the offsets wait for it.
v3 adds the member and generation (KIP-447) · v4 clients know TRANSACTION_ABORTABLE · v5 adds the
group to the transaction (KIP-890) · v6 names topics by id (KIP-1319)."""

from collections.abc import Awaitable
from functools import partial

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.offset_commits import commit_existing, topic_with_error
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.broker.transactions.verification import Support, UnsyncedTransactionError
from odradek.coordinator.runtime.producer import ProducerIdAndEpoch
from odradek.coordinator.runtime.steps import free
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponseTopic,
)
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from odradek.storage.topic_partition import TopicPartition

FIRST_VERSION_WITH_LOAD_IN_PROGRESS = 2
FIRST_VERSION_WITH_ABORTABLE = 4
FIRST_VERSION_THAT_ADDS_GROUPS = 5
FIRST_VERSION_BY_ID = 6


def handle(
    context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse | Awaitable[TxnOffsetCommitResponse]:
    try:
        return answer(context, request)
    except UnsyncedTransactionError as error:
        return answer_later(context, request, error)


async def answer_later(
    context: RequestContext, request: TxnOffsetCommitRequest, unsynced: UnsyncedTransactionError
) -> TxnOffsetCommitResponse:
    """Commit the offsets when the transaction's record is synced."""
    while True:
        await unsynced.wait()
        context.now_ms = context.broker.clock.now_ms()
        try:
            return answer(context, request)
        except UnsyncedTransactionError as error:
            unsynced = error


def answer(context: RequestContext, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    """Commit the offsets. Raises UnsyncedTransactionError."""
    topics = [as_committed(context, topic) for topic in context.sliced(request.topics)]
    try:
        transaction = ResourceType.TRANSACTIONAL_ID
        context.check(AclOperation.WRITE, transaction, request.transactional_id)
        context.check_group(AclOperation.READ, request.group_id)
    except ApiError as error:
        results = with_error(context, topics, error)
    else:
        has_ids = context.api_version >= FIRST_VERSION_BY_ID
        committing = partial(commit, context, request)
        results = commit_existing(context, topics, committing, has_ids=has_ids)
    response = respond(context, results)
    free(context.step, topics, results)
    return response


def commit(
    context: RequestContext,
    request: TxnOffsetCommitRequest,
    topics: list[OffsetCommitRequestTopic],
) -> list[OffsetCommitResponseTopic]:
    """Commit the offsets in topics that exist. Returns the results of each topic."""
    try:
        if not request.group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
        verify(context, request)  # before the group is asked, whose errors come second
        return context.broker.coordinators.groups.offsets.commit_in_transaction(
            request, topics, context.api_version, context.step, partial(verify, context, request)
        )
    except ApiError as error:
        return with_error(context, topics, error)


def verify(context: RequestContext, request: TxnOffsetCommitRequest) -> None:
    """Check that the transaction has the group's partition, or add it.

    Raises ApiError, UnsyncedTransactionError.
    """
    support = Support.of(
        context.api_version,
        abortable_since=FIRST_VERSION_WITH_ABORTABLE,
        adds_since=FIRST_VERSION_THAT_ADDS_GROUPS,
    )
    verifier = context.broker.transaction_verifier
    if verifier.may_skip(support):
        return
    shards = context.broker.coordinators.groups.shards
    partition = TopicPartition(shards.topic, shards.partition_of(request.group_id))
    log = shards.of(request.group_id).journal.log
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    now_ms = context.broker.clock.timer_ms()
    if not log.begin_verification(producer, -1, now_ms, is_v2=support is Support.ADDS):
        return
    found = verifier.add_or_verify(request.transactional_id, producer, {partition}, support)
    obstacle = found.get(partition)
    if obstacle is not None:
        raise obstacle


def as_committed(
    context: RequestContext, topic: TxnOffsetCommitRequestTopic
) -> OffsetCommitRequestTopic:
    """The topic as a commit without a transaction names it."""
    return OffsetCommitRequestTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitRequestPartition(
                partition_index=each.partition_index,
                committed_offset=each.committed_offset,
                committed_leader_epoch=each.committed_leader_epoch,
                committed_metadata=each.committed_metadata,
            )
            for each in context.sliced(topic.partitions)
        ],
    )


def with_error(
    context: RequestContext, topics: list[OffsetCommitRequestTopic], error: ApiError
) -> list[OffsetCommitResponseTopic]:
    code = known_code(context, error.code)
    return [topic_with_error(context, topic, code) for topic in context.sliced(topics)]


def known_code(context: RequestContext, code: ErrorCode) -> ErrorCode:
    """The code; a retriable one for clients that fail at COORDINATOR_LOAD_IN_PROGRESS."""
    is_old = context.api_version < FIRST_VERSION_WITH_LOAD_IN_PROGRESS
    if is_old and code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return code


def respond(
    context: RequestContext, results: list[OffsetCommitResponseTopic]
) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=each.error_code
                    )
                    for each in context.sliced(topic.partitions)
                ],
            )
            for topic in context.sliced(results)
        ]
    )
