"""ShareFetch (key 78, v1-2).

A member of a share group acquires records, and acknowledges those that it has got before (KIP-932).
The records are locked for the member. The response is sent when min_bytes can be read or
max_wait_ms has passed. Which partitions are fetched is kept in a session (shares/sessions.py).
v2 has an exact limit of records (KIP-1206), and can renew locks instead of fetching (KIP-1222).

A request of many partitions, also of a session, is served in slices. It changes a copy of its
session's partitions, which takes their place in the turn in which the epoch is counted."""

from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress

from odradek.broker.fetching.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    has_bytes,
    is_too_large,
)
from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.named_leaders import named, note_leader_error
from odradek.broker.requests.share_requests import (
    FIRST_VERSION_WITH_RENEWAL,
    Acknowledged,
    acknowledge_all,
    check_member,
    check_place,
    check_small,
)
from odradek.broker.shares.sessions import Place, SessionKey, ShareSession
from odradek.broker.shares.share_read import (
    Answers,
    ShareFetchCall,
    ShareRead,
    answered_partition,
    partition_with_error,
)
from odradek.broker.shares.waiting import Delay, WaitingRead
from odradek.coordinator.modern_groups.heartbeat_fields import invalid_request
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.compiler import MAX_SMALL_ITEMS, NotSmallError
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.share_fetch import (
    ShareFetchPartitionData,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareFetchTopicResponse,
)
from odradek.protocol.schema import replace
from odradek.storage.log import RecordsSlice

RECORD_LIMIT = 1


def handle(
    context: RequestContext, request: ShareFetchRequest
) -> ShareFetchResponse | Awaitable[ShareFetchResponse]:
    shares, member_of = context.broker.coordinators.shares, (request.group_id, request.member_id)
    if context.slices is None and (
        shares.sessions.size_of(*member_of) > MAX_SMALL_ITEMS or shares.is_releasing(*member_of)
    ):
        raise NotSmallError
    check_small(context, request.group_id, request.topics)
    is_renewal = context.api_version >= FIRST_VERSION_WITH_RENEWAL and request.is_renew_ack
    try:
        member = check_member(context, request.group_id, request.member_id)
        if is_renewal:
            check_renewal(request)
        session = session_of(context, request, member)
    except ApiError as error:
        refused = ShareFetchResponse(error_code=error.code, error_message=error.message)
        if error.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            return answer_later(context, request.max_wait_ms, refused)
        return refused
    acknowledged: Acknowledged = {}
    if has_acknowledgements(context, request):
        acknowledged = acknowledge_all(context, member, request.topics, is_renewal=is_renewal)
    fetch = Fetch(context, request, member, session, acknowledged)
    return fetch.respond({}) if is_renewal else fetch.run()


async def answer_later(
    context: RequestContext, delay_ms: int, refused: ShareFetchResponse
) -> ShareFetchResponse:
    """Answer a member that would ask again at once when it would have got an empty answer."""
    delay = Delay()
    context.broker.coordinators.waiting_share_fetches.add(delay)
    try:
        await delay.wait(delay_ms)
    finally:
        context.broker.coordinators.waiting_share_fetches.discard(delay)
    return refused


def check_renewal(request: ShareFetchRequest) -> None:
    """A request that renews locks must not fetch. Raises ApiError INVALID_REQUEST."""
    asked = (request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms)
    if any(asked):
        raise invalid_request(
            "max_bytes, min_bytes, max_records and max_wait_ms must be 0 to renew locks"
        )


def has_acknowledgements(context: RequestContext, request: ShareFetchRequest) -> bool:
    return any(
        partition.acknowledgement_batches
        for topic in context.sliced(request.topics)
        for partition in context.sliced(topic.partitions)
    )


def named_places(context: RequestContext, request: ShareFetchRequest) -> list[Place]:
    """The partitions that a request names, each once."""
    places = (
        (topic.topic_id, partition.partition_index)
        for topic in context.sliced(request.topics)
        for partition in context.sliced(topic.partitions)
    )
    return list(dict.fromkeys(places))


def check_size(context: RequestContext, size: int) -> None:
    """Check the number of partitions of a session. Raises ApiError SHARE_SESSION_LIMIT_REACHED.

    See fetching/fetch_sessions.py. Kafka has no such limit.
    """
    if is_too_large(size, context.broker.metadata.topics.partition_count):
        raise ApiError(
            ErrorCode.SHARE_SESSION_LIMIT_REACHED, f"{size} partitions are more than there are"
        )


def session_of(
    context: RequestContext, request: ShareFetchRequest, member: SessionKey
) -> ShareSession | None:
    """The session of a request, after its changes; None for the request that opens or ends it."""
    shares, sessions = (
        context.broker.coordinators.shares,
        context.broker.coordinators.shares.sessions,
    )
    named = named_places(context, request)
    if request.share_session_epoch == FINAL_EPOCH:
        sessions.find(member)
        return None
    if request.share_session_epoch == INITIAL_EPOCH:
        if has_acknowledgements(context, request):
            raise invalid_request("nothing is acknowledged at epoch 0")
        check_size(context, len(named))
        shares.finish_release(member, context.step)
        sessions.open(member, named, context.session)
        return None
    session = sessions.check_epoch(member, request.share_session_epoch)
    partitions = session.partitions
    if named or request.forgotten_topics_data:
        partitions = partitions.copy()
        for place in context.sliced(named):
            partitions.setdefault(place, True)
    largest = len(partitions)
    for topic in context.sliced(request.forgotten_topics_data):
        for partition in context.sliced(topic.partitions):
            partitions.pop((topic.topic_id, partition), None)
    if sessions.find(member) is not session:  # another request has opened it again
        raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH, "the session has been replaced")
    sessions.advance(member, request.share_session_epoch)
    if largest > len(session.partitions):
        check_size(context, largest)
    session.partitions = partitions
    return session


class Fetch:
    """The fetching part of a request, and its response."""

    def __init__(
        self,
        context: RequestContext,
        request: ShareFetchRequest,
        member: SessionKey,
        session: ShareSession | None,
        acknowledged: Acknowledged,
    ) -> None:
        self._context = context
        self._request = request
        self._member = member
        self._session = session
        self._epoch = None if session is None else session.epoch
        self._acknowledged = acknowledged
        self._refused: Answers = {}

    def run(self) -> ShareFetchResponse | Awaitable[ShareFetchResponse]:
        context, broker = self._context, self._context.broker
        read = ShareRead(
            broker.coordinators.shares, broker.log_manager.files, self._call(), context.step
        )
        waiting = WaitingRead(
            read,
            broker.loop,
            broker.turns.share_fetches,
            broker.clock.now,
            broker.fetching.cold_reads,
            self._request.max_wait_ms,
        )
        answers = waiting.read_now() if context.slices is None else None
        return self._respond_later(waiting) if answers is None else self.respond(answers)

    async def _respond_later(self, waiting: WaitingRead) -> ShareFetchResponse:
        self._context.broker.coordinators.waiting_share_fetches.add(waiting)
        try:
            return self.respond(await waiting)
        finally:
            self._context.broker.coordinators.waiting_share_fetches.discard(waiting)

    def _call(self) -> ShareFetchCall:
        """What is to be read. Partitions that cannot be are refused."""
        context, request = self._context, self._request
        limit = context.broker.config.fetch_max_bytes
        max_bytes = min(request.max_bytes, limit)
        if context.meter is not None:
            max_bytes = context.meter.largest_fetch_bytes(max_bytes)
        return ShareFetchCall(
            *self._member,
            places=self._readable(),
            min_bytes=min(request.min_bytes, max_bytes),
            max_bytes=max_bytes,
            max_records=request.max_records,
            batch_size=max(request.batch_size, 1),
            has_record_limit=request.share_acquire_mode == RECORD_LIMIT,
        )

    def _readable(self) -> Sequence[Place]:
        """The partitions to read. They begin with another one at each request."""
        epoch = self._request.share_session_epoch
        if epoch == FINAL_EPOCH:
            return ()
        session = self._session
        places = (
            named_places(self._context, self._request)
            if session is None
            else list(session.partitions)
        )
        readable = []
        for place in self._context.sliced(places):
            try:
                check_place(self._context, place)
                readable.append(place)
            except ApiError as error:
                self._refused[place] = partition_with_error(place[1], error)
        if readable and epoch > 0:
            first = epoch % len(readable)
            readable = [*readable[first:], *readable[:first]]
        return readable

    # -- the response ------------------------------------------------------------------------------

    def respond(self, answers: Answers) -> ShareFetchResponse:
        context, shares = self._context, self._context.broker.coordinators.shares
        error = ErrorCode.NONE
        try:
            answers.update(self._refused)
            answers = self._changed(answers)
        except ApiError as refusal:
            answers, error = {}, refusal.code
        if context.meter is not None:
            size = sum(size_of(answer) for answer in context.sliced(iter(answers.values())))
            context.meter.charge_fetch(size)
        self._count(answers)
        response = ShareFetchResponse(
            error_code=error,
            acquisition_lock_timeout_ms=shares.lock_duration_ms(self._member.group_id),
            responses=by_topic(context, self._with_acknowledged(answers)),
        )
        if self._request.share_session_epoch == FINAL_EPOCH:
            with suppress(ApiError):  # it has ended between two slices
                shares.release_session(self._member)
        return named(context, response, ApiKey.SHARE_FETCH)

    def _changed(self, answers: Answers) -> Answers:
        """The answers that are sent in a session: those with records or errors, and new ones.

        Raises ApiError INVALID_SHARE_SESSION_EPOCH if another request came in between.
        """
        session = self._session
        if session is None:
            return answers
        if session.epoch != self._epoch:
            text = f"the session expects epoch {session.epoch}"
            raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH, text)
        changed = {}
        for place, answer in self._context.sliced(iter(answers.items())):
            must_answer = session.partitions.get(place)
            if must_answer is None:
                continue  # forgotten meanwhile
            if must_answer or answer.error_code or has_bytes(answer.records):
                changed[place] = answer
                session.partitions[place] = bool(answer.error_code)
            if has_bytes(answer.records):
                # It moves to the end, so that full partitions do not starve those after them.
                session.partitions[place] = session.partitions.pop(place)
        return changed

    def _with_acknowledged(self, answers: Answers) -> Answers:
        """The results of acknowledgements, in the answers of their partitions or as new ones."""
        for place, error in self._context.sliced(iter(self._acknowledged.items())):
            answer = answers.get(place) or answered_partition(place[1], b"", [])
            if error is not None:
                answer = replace(
                    answer,
                    acknowledge_error_code=error.code,
                    acknowledge_error_message=error.message,
                )
            answers[place] = answer
        return answers

    def _count(self, answers: Answers) -> None:
        traffic = self._context.broker.traffic
        if traffic is not None:
            for (topic_id, _), answer in self._context.sliced(iter(answers.items())):
                traffic.by_key[topic_id].bytes_out += size_of(answer)


def size_of(answer: ShareFetchPartitionData) -> int:
    records = answer.records
    return records.size_bytes if isinstance(records, RecordsSlice) else 0


def by_topic(
    context: RequestContext, answers: Mapping[Place, ShareFetchPartitionData]
) -> list[ShareFetchTopicResponse]:
    topics: dict[bytes, ShareFetchTopicResponse] = {}
    for (topic_id, _), answer in context.sliced(iter(answers.items())):
        topic = topics.setdefault(
            topic_id, ShareFetchTopicResponse(topic_id=topic_id, partitions=[])
        )
        note_leader_error(context, answer.error_code)
        topic.partitions.append(answer)
    return list(topics.values())
