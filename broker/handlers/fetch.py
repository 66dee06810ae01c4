"""Fetch (key 1, v4-18).

Waits until min_bytes are readable or max_wait_ms has passed; batches leave as they are stored.
v7 sessions (KIP-227) · v9 leader epochs (KIP-320) · v12 diverging epochs · v13 topic ids (KIP-516).
Not done: rack-aware replica choice, follower fetches (single node)."""

from collections.abc import Awaitable

from ...protocol.errors import ApiError, ErrorCode
from ...protocol.messages.fetch import (
    FetchEpochEndOffset,
    FetchPartition,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
    FetchTopicResponse,
)
from ...storage.log import PartitionLog, RecordsSlice
from ..context import RequestContext
from ..fetch_sessions import FetchPlan, PartitionKey, split_key

UNKNOWN_OFFSET = -1

Answers = dict[PartitionKey, FetchPartitionData]


def handle(
    context: RequestContext, request: FetchRequest
) -> FetchResponse | Awaitable[FetchResponse]:
    plan = context.broker.fetch_sessions.plan(request, context.api_version, context.now_ms)
    if not plan.wanted:
        return respond(plan, {})
    answers, readable_bytes = read_all(context, request, plan)
    must_wait = readable_bytes < request.min_bytes and request.max_wait_ms > 0
    if not must_wait or any(is_urgent(answer) for answer in answers.values()):
        return respond(plan, answers)
    return wait_and_respond(context, request, plan, request.min_bytes - readable_bytes)


async def wait_and_respond(
    context: RequestContext, request: FetchRequest, plan: FetchPlan, missing_bytes: int
) -> FetchResponse:
    logs = [find_log(context, key) for key in plan.wanted]
    await context.broker.fetch_waiters.wait(logs, missing_bytes, request.max_wait_ms)
    answers, _ = read_all(context, request, plan)
    return respond(plan, answers)


def respond(plan: FetchPlan, answers: Answers) -> FetchResponse:
    error, session_id, told = plan.conclude(answers)
    topics: dict[str | bytes, FetchTopicResponse] = {}
    for key, answer in told.items():
        name, topic_id, _ = split_key(key)
        topic = topics.get(key[0])
        if topic is None:
            topic = FetchTopicResponse(topic=name, topic_id=topic_id, partitions=[])
            topics[key[0]] = topic
        topic.partitions.append(answer)
    return FetchResponse(error_code=error, session_id=session_id, responses=list(topics.values()))


def is_urgent(answer: FetchPartitionData) -> bool:
    """An error or a divergence is told at once, however little there is to read."""
    return answer.error_code != ErrorCode.NONE or answer.diverging_epoch.end_offset >= 0


def read_all(
    context: RequestContext, request: FetchRequest, plan: FetchPlan
) -> tuple[Answers, int]:
    """Read every partition in order, within the request's and the broker's limit of bytes.

    The first partition with records gives at least one batch, even if that is over the limits:
    else a consumer would be stuck before a large one (KIP-74).
    """
    left_bytes = min(request.max_bytes, context.broker.config.fetch_max_bytes)
    answers: Answers = {}
    total_bytes = 0
    for key, wanted in plan.wanted.items():
        answer = read_partition(
            context,
            key,
            wanted,
            max_bytes=min(wanted.partition_max_bytes, left_bytes),
            at_least_one_batch=total_bytes == 0,
        )
        answers[key] = answer
        if isinstance(answer.records, RecordsSlice):
            total_bytes += answer.records.size_bytes
            left_bytes = max(0, left_bytes - answer.records.size_bytes)
    return answers, total_bytes


def read_partition(
    context: RequestContext,
    key: PartitionKey,
    wanted: FetchPartition,
    *,
    max_bytes: int,
    at_least_one_batch: bool,
) -> FetchPartitionData:
    try:
        log = find_log(context, key)
        context.broker.check_leader_epoch(log, wanted.current_leader_epoch)
        diverging = diverging_epoch(log, wanted)
        if diverging is not None:
            return describe(wanted.partition, log, diverging_epoch=diverging)
        records = log.read(wanted.fetch_offset, max_bytes, at_least_one_batch=at_least_one_batch)
        return describe(wanted.partition, log, records=records)
    except ApiError as error:
        return FetchPartitionData(
            partition_index=wanted.partition,
            error_code=error.code,
            high_watermark=UNKNOWN_OFFSET,
            records=b"",
        )


def find_log(context: RequestContext, key: PartitionKey) -> PartitionLog:
    topic, partition = key
    if isinstance(topic, bytes):
        topic = context.broker.topic_name(topic)
    return context.broker.log_manager.get(topic, partition)


def diverging_epoch(log: PartitionLog, wanted: FetchPartition) -> FetchEpochEndOffset | None:
    """Where the client's log leaves ours, if its last epoch says so (KIP-595)."""
    if wanted.last_fetched_epoch < 0:
        return None
    epoch, end_offset = log.end_offset_for_epoch(wanted.last_fetched_epoch)
    if end_offset < 0:
        raise ApiError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"there is no end offset for epoch {wanted.last_fetched_epoch}",
        )
    if end_offset < wanted.fetch_offset or epoch < wanted.last_fetched_epoch:
        return FetchEpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None


def describe(
    partition: int,
    log: PartitionLog,
    *,
    records: RecordsSlice | bytes = b"",
    diverging_epoch: FetchEpochEndOffset = FetchEpochEndOffset(),  # noqa: B008 # frozen
) -> FetchPartitionData:
    return FetchPartitionData(
        partition_index=partition,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        diverging_epoch=diverging_epoch,
        records=records,
    )
