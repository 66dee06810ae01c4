"""Fetch (key 1, v0-18; advertised from 4).

The response is sent when min_bytes are readable or max_wait_ms has passed. Batches are sent as they
are stored, except to clients of Kafka 0.8 to 0.10 (v0-3), which get message sets. Apache Kafka
serves v4 and above, and so these are advertised.
v3 returns the first batch even if it exceeds the limits (KIP-74) · v4 adds read_committed, which
returns nothing after the last stable offset, and lists the aborted transactions (KIP-98) · v6 can
return KAFKA_STORAGE_ERROR · v7 adds sessions (KIP-227) · v9 adds leader epochs (KIP-320) · v12 adds
diverging epochs (KIP-595) · v13 names topics by id (KIP-516).
v11 tells consumers which replica to read (KIP-392), which only a played cluster does.
A request with a replica id is of a follower. No other node has a replica, so it gets an error for
each partition.

A Fetch of many partitions, also of a session, is served in slices."""

import asyncio
from collections.abc import Awaitable, Collection, Coroutine, Iterable
from functools import partial
from typing import Any, cast

from odradek.broker.common.traffic import Traffic
from odradek.broker.fetching.down_conversion import (
    LAST_VERSION_WITH_HARD_LIMIT,
    LAST_VERSION_WITH_MESSAGE_SETS,
    MAX_BYTES,
    TOO_LARGE,
)
from odradek.broker.fetching.fetch_sessions import FetchPlan, PartitionKey, split_key
from odradek.broker.fetching.fetch_waiters import LogWatch
from odradek.broker.fetching.preferred_replica import PreferredReplicaError
from odradek.broker.quotas.request_meter import RequestMeter
from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.named_leaders import named, note_leader_error
from odradek.broker.security.authorizer import refusal
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.compiler import MAX_SMALL_ITEMS, NotSmallError
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.fetch import (
    FetchAbortedTransaction,
    FetchEpochEndOffset,
    FetchPartition,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
    FetchTopicResponse,
)
from odradek.protocol.schema import Splices, codec_for, replace
from odradek.storage.files import WouldWaitError, combine
from odradek.storage.log import PartitionLog, RecordsSlice
from odradek.storage.txn_index import AbortedTransaction

UNKNOWN_OFFSET = -1
READ_COMMITTED = 1
FUTURE_REPLICA = -3  # the id of a log that moves to another directory: it gets all records
ISOLATION_LEVELS = (0, READ_COMMITTED)
NOTHING_TO_READ = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
# The errors of partitions that are not there (FetchPlan.refused). Kafka:
# KafkaApis.handleFetchRequest, `erroneous`.
NOT_FOUND = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
FIRST_VERSION_BY_ID = 13
LAST_VERSION_WITHOUT_STORAGE_ERROR = 5

Answers = dict[PartitionKey, FetchPartitionData]


def handle(
    context: RequestContext, request: FetchRequest
) -> FetchResponse | Awaitable[FetchResponse]:
    broker = context.broker
    sessions = broker.fetching.sessions
    if (
        context.slices is None
        and request.session_id
        and sessions.size_of(request.session_id) > MAX_SMALL_ITEMS
    ):
        raise NotSmallError
    if context.meter is not None:
        request = within_quota(context, context.meter, request)
    if request.min_bytes > 1 or request.max_bytes < 1:
        max_bytes = min(request.max_bytes, broker.config.fetch_max_bytes)
        if request.min_bytes > max_bytes:
            request = replace(request, min_bytes=max_bytes)
    now_ms = broker.loop.time() * 1000
    plan = sessions.plan(request, context.api_version, now_ms, context.step)
    if not plan.wanted:
        return respond(context, plan, {})
    if request.isolation_level not in ISOLATION_LEVELS:
        return unknown_isolation_level(context, request)
    plan.is_of_follower = is_follower(request)
    plan.refused_topics = refused_topics(context, plan)
    if context.slices is not None:
        return fetch_in_slices(context, request, plan)
    if (
        request.min_bytes > 0
        and request.max_wait_ms > 0
        and not plan.refused_topics
        and not plan.is_of_follower
    ):
        logs = logs_at_end(context, plan)
        if logs is not None:
            return WaitingFetch(context, request, plan, request.min_bytes, logs)
    try:
        with broker.fetching.cold_reads.first_attempt:
            answers, readable_bytes = read_all(context, request, plan, plan.wanted)
    except WouldWaitError as missing:
        return read_cold_and_respond(context, request, plan, missing)
    return respond_or_wait(context, request, plan, answers, readable_bytes)


def unknown_isolation_level(context: RequestContext, request: FetchRequest) -> FetchResponse:
    """Kafka's answer: an unexpected error, for each partition that is named."""
    error = ApiError(
        ErrorCode.UNKNOWN_SERVER_ERROR, f"isolation level {request.isolation_level} is not known"
    )
    by_name = request.topics if context.api_version < FIRST_VERSION_BY_ID else []
    return FetchResponse(
        error_code=error.code,
        session_id=request.session_id,
        responses=[
            FetchTopicResponse(
                topic=topic.topic,
                partitions=[
                    partition_with_error(context, wanted, error)
                    for wanted in context.sliced(topic.partitions)
                ],
            )
            for topic in context.sliced(by_name)
        ],
    )


def refused_topics(context: RequestContext, plan: FetchPlan) -> Collection[str | bytes]:
    """The topics that the client may not read, as the request names them.

    A consumer needs READ on each topic, a follower CLUSTER_ACTION on the cluster. An unknown topic
    id is left out, because it gets UNKNOWN_TOPIC_ID.
    """
    if not context.broker.security.authorizer.has_rules:
        return ()
    topics = dict.fromkeys(topic for topic, _ in context.sliced(iter(plan.wanted)))
    if plan.is_of_follower:
        return () if context.authorize_cluster(AclOperation.CLUSTER_ACTION) else topics
    return {topic for topic in context.sliced(topics) if not may_read(context, topic)}


def is_follower(request: FetchRequest) -> bool:
    return request.replica_id >= 0 or request.replica_state.replica_id >= 0


def may_read(context: RequestContext, topic: str | bytes) -> bool:
    if isinstance(topic, bytes):
        known = context.broker.metadata.topics.by_id.get(topic)
        if known is None:
            return True
        topic = known.name
    return context.authorize(AclOperation.READ, ResourceType.TOPIC, topic)


async def read_cold_and_respond(
    context: RequestContext, request: FetchRequest, plan: FetchPlan, missing: WouldWaitError
) -> FetchResponse:
    read = partial(read_all, context, request, plan, plan.wanted)
    answers, readable_bytes = await context.broker.fetching.cold_reads.look_up(read, missing)
    response = respond_or_wait(context, request, plan, answers, readable_bytes)
    return response if isinstance(response, FetchResponse) else await response


def respond_or_wait(
    context: RequestContext,
    request: FetchRequest,
    plan: FetchPlan,
    answers: Answers,
    readable_bytes: int,
) -> FetchResponse | Awaitable[FetchResponse]:
    """Respond or begin to wait. Must be called in the same turn of the event loop as the reads."""
    must_wait = readable_bytes < request.min_bytes and request.max_wait_ms > 0
    if must_wait and not has_urgent(context, plan, answers):
        missing_bytes = request.min_bytes - readable_bytes
        return WaitingFetch(context, request, plan, missing_bytes, find_logs(context, plan))
    if context.api_version <= LAST_VERSION_WITH_MESSAGE_SETS:
        return convert_and_respond(context, plan, answers)
    return respond(context, plan, answers)


def logs_at_end(context: RequestContext, plan: FetchPlan) -> list[PartitionLog] | None:
    """The logs to wait for if all are to be read from their ends; None if `read_all` must decide.

    This is what consumers ask that keep up. Nothing is read then, and nothing else is answered.
    """
    logs = []
    try:
        for key, wanted in plan.wanted.items():
            log = find_log(context, key)
            if (
                wanted.fetch_offset != log.log_end_offset
                or not log.is_online
                or wanted.current_leader_epoch not in (-1, log.leader_epoch)
                or wanted.last_fetched_epoch >= 0
            ):
                return None
            logs.append(log)
    except ApiError:
        return None
    return logs


def find_logs(context: RequestContext, plan: FetchPlan) -> list[PartitionLog]:
    """The logs to wait for."""
    return [find_log(context, key) for key in plan.wanted if key not in plan.refused]


class WaitingFetch(asyncio.Future[FetchResponse]):
    """A Fetch that waits for records, and then is the response. There is no task, unless a read has
    to wait for the disk: at the end of a log many consumers wait for each record.
    """

    __slots__ = ("_context", "_plan", "_request", "_until_s", "_work")

    def __init__(
        self,
        context: RequestContext,
        request: FetchRequest,
        plan: FetchPlan,
        missing_bytes: int,
        logs: list[PartitionLog],
    ) -> None:
        """Begin to wait. Must be called in the turn of the reads: later, a log may be deleted."""
        super().__init__(loop=context.broker.loop)
        self._context = context
        self._request = request
        self._plan = plan
        self._until_s = context.broker.loop.time() + request.max_wait_ms / 1000
        self._work: asyncio.Future[Any]  # what it waits for: records, or the disk
        self._wait(logs, missing_bytes, request.max_wait_ms)

    def _wait(self, logs: list[PartitionLog], missing_bytes: int, left_ms: float) -> None:
        self._work = self._context.broker.fetching.waiters.wait(
            logs, missing_bytes, left_ms, committed=reads_committed(self._request)
        )
        self._work.add_done_callback(self._released)

    def cancel(self, msg: object = None) -> bool:
        """Stop waiting, because the client is gone."""
        self._work.cancel()
        return super().cancel(msg)

    def _released(self, waiting: asyncio.Future[bool]) -> None:
        """Read again, because there is news or the time is up."""
        if self.done():  # the client is gone
            return
        meter = self._context.meter
        if meter is not None:
            meter.resume()
        try:
            with self._context.broker.fetching.cold_reads.first_attempt:
                answers, readable_bytes = self._read_all()
            self._respond_or_wait(waiting.result(), answers, readable_bytes)
        except WouldWaitError as missing:
            self._start(self._read_cold(waiting.result(), missing))
        except Exception as error:  # noqa: BLE001 # the connection reports it
            self.set_exception(error)
        finally:
            if meter is not None:
                meter.pause()

    def _read_all(self) -> tuple[Answers, int]:
        plan = self._plan
        return read_all(self._context, self._request, plan, plan.wanted, has_waited=True)

    def _respond_or_wait(self, has_news: bool, answers: Answers, readable_bytes: int) -> None:
        context, request = self._context, self._request
        must_wait = has_news and needs_more(request, readable_bytes)
        if must_wait and not has_urgent(context, self._plan, answers):
            left_ms = (self._until_s - context.broker.loop.time()) * 1000
            if left_ms > 0:
                missing_bytes = request.min_bytes - readable_bytes
                self._wait(find_logs(context, self._plan), missing_bytes, left_ms)
                return
        if context.api_version <= LAST_VERSION_WITH_MESSAGE_SETS:
            self._start(self._convert(answers))
        else:
            self.set_result(respond(context, self._plan, answers))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        meter = self._context.meter
        self._work = asyncio.ensure_future(work if meter is None else meter.timed(work))
        self._work.add_done_callback(self._worked)

    def _worked(self, work: asyncio.Future[None]) -> None:
        error = None if work.cancelled() else work.exception()
        if error is not None and not self.done():
            self.set_exception(error)

    async def _read_cold(self, has_news: bool, missing: WouldWaitError) -> None:
        answers, readable_bytes = await self._context.broker.fetching.cold_reads.look_up(
            self._read_all, missing
        )
        self._respond_or_wait(has_news, answers, readable_bytes)

    async def _convert(self, answers: Answers) -> None:
        self.set_result(await convert_and_respond(self._context, self._plan, answers))


async def fetch_in_slices(
    context: RequestContext, request: FetchRequest, plan: FetchPlan
) -> FetchResponse:
    """Read and wait as the small requests do. Between two slices records may be appended.

    So each log is watched from the turn on in which it is read. After records have come, only their
    logs are read again, if there was nothing else to answer.
    """
    broker = context.broker
    may_wait = request.min_bytes > 0 and request.max_wait_ms > 0
    until_s = broker.loop.time() + request.max_wait_ms / 1000
    watch = broker.fetching.waiters.watch(committed=reads_committed(request))
    keys: Collection[PartitionKey] = plan.wanted
    has_waited = has_news = False
    try:
        while True:
            read = partial(
                read_all,
                context,
                request,
                plan,
                keys,
                has_waited=has_waited,
                watch=watch if may_wait else None,
            )
            answers, readable_bytes = await broker.fetching.cold_reads.look_up(read)
            missing_bytes = request.min_bytes - readable_bytes
            left_ms = (until_s - broker.loop.time()) * 1000
            if has_waited:
                must_wait = has_news and needs_more(request, readable_bytes) and left_ms > 0
            else:
                must_wait = may_wait and missing_bytes > 0
            if not must_wait or has_urgent(context, plan, answers):
                break
            has_news = await watch.wait(missing_bytes, left_ms)
            has_waited = True
            # Without answers, the logs that have not changed have nothing to answer now either.
            keys = watch.changed() if has_news and not answers else plan.wanted
    finally:
        watch.close(context.step)
    if context.api_version <= LAST_VERSION_WITH_MESSAGE_SETS:
        return await convert_and_respond(context, plan, answers)
    return respond(context, plan, answers)


def needs_more(request: FetchRequest, readable_bytes: int) -> bool:
    """Whether a Fetch that was woken waits on.

    The new records may follow an open transaction, or wait for their fsync.
    """
    return not readable_bytes or (reads_committed(request) and readable_bytes < request.min_bytes)


def reads_committed(request: FetchRequest) -> bool:
    return request.isolation_level == READ_COMMITTED and FUTURE_REPLICA not in (
        request.replica_id,
        request.replica_state.replica_id,
    )


async def convert_and_respond(
    context: RequestContext, plan: FetchPlan, answers: Answers
) -> FetchResponse:
    convert = context.broker.fetching.down_converter.convert
    for key in context.sliced(list(answers)):
        answer, wanted = answers[key], plan.wanted[key]
        if not answer.records:
            continue
        try:
            log = find_log(context, key)  # it may have been deleted since it was read
            answers[key] = await convert(
                answer, log, wanted.fetch_offset, context.api_version, context.session.client
            )
        except ApiError as error:
            # As in Kafka, the records are null if they cannot be converted.
            answers[key] = partition_with_error(context, wanted, error, records=None)
    return respond(context, plan, answers)


def respond(context: RequestContext, plan: FetchPlan, answers: Answers) -> FetchResponse:
    if context.meter is not None:
        throttle_ms = context.meter.throttle_fetch(response_bytes(context, plan.changed(answers)))
        if throttle_ms:
            error, session_id = plan.postpone()
            return FetchResponse(
                throttle_time_ms=throttle_ms, error_code=error, session_id=session_id, responses=[]
            )
    error, session_id, sent = plan.conclude(answers)
    topics = by_topic(sent, context.broker.traffic, context.step)
    response = FetchResponse(error_code=error, session_id=session_id, responses=topics)
    return named(context, response, ApiKey.FETCH, is_of_follower=plan.is_of_follower)


def by_topic(
    answers: Answers, traffic: Traffic | None = None, step: Step = no_step
) -> list[FetchTopicResponse]:
    """Group the answers for a response. They are counted in `traffic`."""
    topics: dict[str | bytes, FetchTopicResponse] = {}
    for key, answer in stepping(iter(answers.items()), step):
        name, topic_id, _ = split_key(key)
        topic = topics.get(key[0])
        if topic is None:
            topic = FetchTopicResponse(topic=name, topic_id=topic_id, partitions=[])
            topics[key[0]] = topic
        topic.partitions.append(answer)
        if traffic is not None:  # here, because another loop would take twice as long
            if isinstance(answer.records, RecordsSlice):
                traffic.by_key[key[0]].bytes_out += answer.records.size_bytes
            elif answer.error_code:
                traffic.by_key[key[0]].failed_fetch += 1
            elif answer.records:  # converted for an old client
                traffic.by_key[key[0]].bytes_out += len(cast(bytes, answer.records))
    return list(topics.values())


def response_bytes(context: RequestContext, answers: Answers) -> int:
    """The size of a response with these answers, as quotas count it."""
    head = bytearray()
    slices: Splices = []
    topics = by_topic(answers, step=context.step)
    response = FetchResponse(error_code=ErrorCode.NONE, session_id=0, responses=topics)
    codec = codec_for(FetchResponse, context.api_version)
    if context.slices is None:
        codec.write(response, head, slices)
    else:
        steps = context.slices
        codec.write_in_steps(response, head, slices, lambda _items: steps.step())
    return len(head) + sum(records.size_bytes for _, records in context.sliced(slices))


def within_quota(
    context: RequestContext, meter: RequestMeter, request: FetchRequest
) -> FetchRequest:
    """The request, asking for no more bytes than the client's quota can ever allow.

    There is no quota for followers.
    """
    if is_follower(request):
        meter.exempt()
        return request
    max_bytes = min(request.max_bytes, context.broker.config.fetch_max_bytes)
    largest_bytes = meter.largest_fetch_bytes(max_bytes)
    return replace(request, max_bytes=largest_bytes)


def has_urgent(context: RequestContext, plan: FetchPlan, answers: Answers) -> bool:
    """Whether an answer must be sent without waiting for records: an error or a divergence.

    Or whether no partition can be read.
    """
    refused = plan.refused
    if len(refused) == len(plan.wanted):
        return True
    for key, answer in context.sliced(iter(answers.items())):  # a generator would take longer
        if (
            (answer.error_code != ErrorCode.NONE and key not in refused)
            or answer.diverging_epoch.end_offset >= 0
            or answer.records is TOO_LARGE
            or answer.preferred_read_replica >= 0
        ):
            return True
    return False


def read_all(
    context: RequestContext,
    request: FetchRequest,
    plan: FetchPlan,
    keys: Iterable[PartitionKey],
    *,
    has_waited: bool = False,
    watch: LogWatch | None = None,
) -> tuple[Answers, int]:
    """Read partitions of the plan in order, within the request's and the broker's limit of bytes.

    Returns the bytes that count for `min_bytes`, too, which may be more than were read.
    Partitions of a session that have nothing new are left out. If the request has waited, all of
    its partitions were there before. The logs are added to `watch`, until enough is read.

    The first partition with records gives at least one batch, even if it exceeds the limits:
    otherwise a consumer could not get past a large batch (KIP-74). Inside an attempt
    (cold_reads.py), WouldWaitError is raised with all that must be read from disk first.
    """
    left_bytes = min(request.max_bytes, context.broker.config.fetch_max_bytes)
    committed = reads_committed(request)
    answers: Answers = {}
    missing: list[WouldWaitError] = []
    total_bytes = readable_bytes = 0
    for key in context.sliced(iter(keys)):
        wanted = plan.wanted[key]
        if key[0] in plan.refused_topics:
            answers[key] = plan.refused[key] = partition_with_error(
                context, wanted, refusal(ResourceType.TOPIC)
            )
            continue
        try:
            log = find_log(context, key)
            if watch is not None and readable_bytes < request.min_bytes:
                watch.add(key, log)
            answer = read_partition(
                context,
                plan,
                key,
                log,
                wanted,
                max_bytes=min(wanted.partition_max_bytes, left_bytes),
                is_first=total_bytes == 0,
                committed=committed,
            )
            records = None if answer is None else answer.records
            if isinstance(records, RecordsSlice):
                size = records.size_bytes
                total_bytes += size
                left_bytes = max(0, left_bytes - size)
                if 0 < total_bytes < request.min_bytes > readable_bytes:
                    offset, limit = wanted.fetch_offset, wanted.partition_max_bytes
                    size = log.readable_bytes(records, offset, limit, committed=committed)
                readable_bytes += size
        except ApiError as error:
            answer = unreadable_partition(context, plan, key, error, has_waited=has_waited)
        except WouldWaitError as error:
            missing.append(error.with_traceback(None))
            continue
        if answer is not None:
            answers[key] = answer
    if missing:
        raise combine(missing)
    return answers, readable_bytes


def read_partition(
    context: RequestContext,
    plan: FetchPlan,
    key: PartitionKey,
    log: PartitionLog,
    wanted: FetchPartition,
    *,
    max_bytes: int,
    is_first: bool,
    committed: bool,
) -> FetchPartitionData | None:
    """The answer for a partition, or None if it would equal what its session has sent.

    Raises ApiError.
    """
    context.broker.check_leader_epoch(log, wanted.current_leader_epoch)
    if plan.is_of_follower:
        return refuse_replica(context, wanted, log)
    diverging = diverging_epoch(log, wanted)
    if diverging is not None:
        return describe(wanted.partition, log, diverging_epoch=diverging)
    if plan.has_sent_end(key, wanted.fetch_offset, log):
        return None
    if committed:
        offset = wanted.fetch_offset
        read = log.read_committed(offset, max_bytes, at_least_one_batch=is_first)
        return describe(wanted.partition, log, records=read.records, aborted=read.aborted)
    if context.api_version <= LAST_VERSION_WITH_MESSAGE_SETS:
        records = read_for_old_client(context, log, wanted, max_bytes, is_first=is_first)
    else:
        records = log.read(wanted.fetch_offset, max_bytes, at_least_one_batch=is_first)
    return describe(wanted.partition, log, records=records)


def unreadable_partition(
    context: RequestContext,
    plan: FetchPlan,
    key: PartitionKey,
    error: ApiError,
    *,
    has_waited: bool,
) -> FetchPartitionData:
    """The answer for a partition that cannot be read, or not here."""
    if isinstance(error, PreferredReplicaError):
        return read_elsewhere(context, plan.wanted[key], error)
    if key in plan.refused:
        return plan.refused[key]
    if error.code is ErrorCode.UNKNOWN_TOPIC_ID and (has_waited or key[0] in plan.names):
        error = deleted_since(context, plan, key)
    answer = partition_with_error(context, plan.wanted[key], error, was_found=has_waited)
    if not has_waited and error.code in NOT_FOUND:
        plan.refused[key] = answer
    return answer


def read_elsewhere(
    context: RequestContext, wanted: FetchPartition, error: PreferredReplicaError
) -> FetchPartitionData:
    """The answer that sends a consumer to another replica, if that has what it asks for."""
    log = error.log
    if log.log_start_offset <= wanted.fetch_offset <= log.log_end_offset:
        return replace(describe(wanted.partition, log), preferred_read_replica=error.node_id)
    text = f"{wanted.fetch_offset} is not in {log}"
    return partition_with_error(context, wanted, ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, text))


def deleted_since(context: RequestContext, plan: FetchPlan, key: PartitionKey) -> ApiError:
    """The error of a topic id that was known when the session or the wait began."""
    assert isinstance(key[0], bytes)
    name = plan.names.get(key[0])
    if name is not None and name in context.broker.metadata.topics:
        return ApiError(ErrorCode.INCONSISTENT_TOPIC_ID, f"topic {name} has another id now")
    return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic was deleted")


def refuse_replica(
    context: RequestContext, wanted: FetchPartition, log: PartitionLog
) -> FetchPartitionData:
    """The answer to a follower. Kafka: Partition.followerReplicaOrThrow.

    If the request has a leader epoch, the replica is unknown in that epoch. If not, the follower
    learns who the leader is.
    """
    text = f"{log.name} has no replica but the leader's"
    if wanted.current_leader_epoch >= 0:
        return partition_with_error(context, wanted, ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH, text))
    return partition_with_error(context, wanted, ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, text))


def partition_with_error(
    context: RequestContext,
    wanted: FetchPartition,
    error: ApiError,
    *,
    records: bytes | None = b"",
    was_found: bool = False,
) -> FetchPartitionData:
    # As in Kafka, the list is empty if the partition was not found when the request came.
    not_found = error.code in NOTHING_TO_READ and not was_found
    note_leader_error(context, error.code)
    return FetchPartitionData(
        partition_index=wanted.partition,
        error_code=known_code(context, error.code),
        high_watermark=UNKNOWN_OFFSET,
        aborted_transactions=[] if not_found else None,
        records=records,
    )


def read_for_old_client(
    context: RequestContext,
    log: PartitionLog,
    wanted: FetchPartition,
    max_bytes: int,
    *,
    is_first: bool,
) -> RecordsSlice | bytes:
    """A slice to convert, or TOO_LARGE if not even one batch fits into the requested bytes."""
    is_limit_hard = context.api_version <= LAST_VERSION_WITH_HARD_LIMIT
    records = log.read(wanted.fetch_offset, min(max_bytes, MAX_BYTES), at_least_one_batch=True)
    if records.size_bytes <= max_bytes or (is_first and not is_limit_hard):
        return records
    return TOO_LARGE if is_limit_hard and max_bytes > 0 else b""


def known_code(context: RequestContext, code: ErrorCode) -> ErrorCode:
    """The code, or a retriable one for a client that does not know KAFKA_STORAGE_ERROR."""
    if (
        code is ErrorCode.KAFKA_STORAGE_ERROR
        and context.api_version <= LAST_VERSION_WITHOUT_STORAGE_ERROR
    ):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return code


def find_log(context: RequestContext, key: PartitionKey) -> PartitionLog:
    topic, partition = key
    if isinstance(topic, bytes):
        topic = context.broker.topic_name(topic)
    return context.broker.log_manager.get(topic, partition)


def diverging_epoch(log: PartitionLog, wanted: FetchPartition) -> FetchEpochEndOffset | None:
    """The point where the client's log diverges from this one, or None (KIP-595)."""
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
    aborted: list[AbortedTransaction] | None = None,
    diverging_epoch: FetchEpochEndOffset = FetchEpochEndOffset(),  # noqa: B008 # frozen
) -> FetchPartitionData:
    return FetchPartitionData(
        partition_index=partition,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        diverging_epoch=diverging_epoch,
        aborted_transactions=None
        if aborted is None
        else [aborted_transaction(transaction) for transaction in aborted],
        records=records,
    )


def aborted_transaction(transaction: AbortedTransaction) -> FetchAbortedTransaction:
    return FetchAbortedTransaction(
        producer_id=transaction.producer_id, first_offset=transaction.first_offset
    )
