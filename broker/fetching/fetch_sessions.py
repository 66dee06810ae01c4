"""Incremental fetch sessions (KIP-227): the broker remembers which partitions a consumer fetches.

A consumer of 500 partitions then names only the partitions that it adds, changes or drops. The
answer has only partitions with new records, an error, or another high watermark or log start
offset. A session has an id and an epoch that both sides count. A request with the wrong epoch is
refused, and the client sends a full request again (epoch 0). Epoch -1 ends the session.

A session by topic id also remembers the names of its topics: one that is deleted gets
UNKNOWN_TOPIC_OR_PARTITION, and INCONSISTENT_TOPIC_ID when its name has another id.

The number of sessions is limited (`max.incremental.fetch.session.cache.slots`). A new session
replaces the least recently used one if that was not used for two minutes. Otherwise it replaces the
smallest session that is older than two minutes and smaller than the new one. If there is none,
the client goes on without a session.

A session may have as many partitions as the broker, and a few that are not there, because their
topics are being created or deleted. Kafka has no limit. A client that names more goes on without a
session, and a session that would grow beyond ends.

A request of many partitions is served in slices, and another one of its session may come between
two of them. A request changes a copy of the session's partitions, which takes their place in the
turn in which the epoch is counted. So it changes all of them or, if the other was quicker, none.
Kafka: FetchSession, FetchContext, FetchSessionCacheShard.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from math import inf

from msgspec import Struct

from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchPartitionData, FetchRequest
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.schema import SplicedRecords
from odradek.storage.log import PartitionLog
from odradek.storage.topic_names import MAX_TOPIC_NAME_LENGTH

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EVICTION_MS = 120_000
# How many partitions of a session need not exist.
SPARE_PARTITIONS = 100

# A partition as the client names it: by topic id since v13, by name before.
PartitionKey = tuple[str | bytes, int]


def next_epoch(epoch: int) -> int:
    """The next epoch: they count up to 2**31 - 1, then from 1 again."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == 0x7FFFFFFF else epoch + 1


class CachedPartition(Struct, gc=False):
    """What the client asked of a partition, and the offsets of the last answer."""

    wanted: FetchPartition
    high_watermark: int = -1
    log_start_offset: int = -1

    def differs(self, answer: FetchPartitionData) -> bool:
        """Whether an answer has anything new, so that it must be sent."""
        return (
            has_records(answer)
            or self.high_watermark != answer.high_watermark
            or self.log_start_offset != answer.log_start_offset
            or answer.error_code != ErrorCode.NONE
            or answer.preferred_read_replica >= 0
            or answer.diverging_epoch.end_offset >= 0
        )

    def remember(self, answer: FetchPartitionData) -> None:
        """Remember an answer that is sent."""
        # No log has a high watermark of -1: the first answer without the error is sent, too.
        is_error = answer.error_code != ErrorCode.NONE
        self.high_watermark = -1 if is_error else answer.high_watermark
        self.log_start_offset = answer.log_start_offset


def is_too_large(size: int, partition_count: Callable[[], int]) -> bool:
    """Whether a session of `size` partitions has too many that do not exist."""
    return size > SPARE_PARTITIONS and size > SPARE_PARTITIONS + partition_count()


def has_records(answer: FetchPartitionData) -> bool:
    """Whether the answer carries any bytes of records."""
    return has_bytes(answer.records)


def has_bytes(records: memoryview | bytes | SplicedRecords | None) -> bool:
    """Whether there are any bytes of records."""
    if isinstance(records, SplicedRecords):
        return records.size_bytes > 0
    return bool(records)


@dataclass(slots=True)
class FetchSession:
    """One client's partitions, in the order in which they are served."""

    id: int
    uses_topic_ids: bool
    partitions: dict[PartitionKey, CachedPartition]
    created_ms: float
    used_ms: float
    names: dict[bytes, str]
    epoch: int = 1


class FetchPlan:
    """The partitions that one Fetch reads, and the session that filters its answer."""

    def __init__(
        self,
        wanted: dict[PartitionKey, FetchPartition],
        *,
        session: FetchSession | None = None,
        step: Step = no_step,
        error: ErrorCode = ErrorCode.NONE,
        remember: Callable[[dict[PartitionKey, FetchPartitionData]], int] | None = None,
    ) -> None:
        """`remember` makes a new session of the answers, and returns its id."""
        self.wanted = wanted
        self.error = error
        # Topics that the client may not read, named as in `wanted`.
        self.refused_topics: Collection[str | bytes] = ()
        # The answers for partitions that could not be read when the request came, because they are
        # not there or may not be read. They do not keep the request from waiting for the others.
        self.refused: dict[PartitionKey, FetchPartitionData] = {}
        self.is_of_follower = False  # the handler sets it for a Fetch of a replica
        # The names of its topics by id, also of those that were deleted since the session began.
        self.names: Mapping[bytes, str] = session.names if session else {}
        self._session = session
        self._epoch = session.epoch if session else 0
        self._step = step
        self._remember = remember

    def has_sent_end(self, key: PartitionKey, offset: int, log: PartitionLog) -> bool:
        """Whether `offset` is the log's end, and the session has sent the log's offsets already."""
        end_offset = log.log_end_offset
        if offset != end_offset or self._session is None or not log.is_online:
            return False
        cached = self._session.partitions.get(key)
        return (
            cached is not None
            and cached.high_watermark == end_offset == log.high_watermark
            and cached.log_start_offset == log.log_start_offset
        )

    def postpone(self) -> tuple[ErrorCode, int]:
        """The error and session id of a response without partitions. The session is unchanged."""
        session = self._session
        if session is None:
            return self.error, NO_SESSION
        if session.epoch != self._epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.id
        return ErrorCode.NONE, session.id

    def changed(
        self, answers: dict[PartitionKey, FetchPartitionData]
    ) -> dict[PartitionKey, FetchPartitionData]:
        """The partitions that the response would contain. The session is unchanged."""
        session = self._session
        if session is None:
            return answers
        if session.epoch != self._epoch:
            return {}
        changed = {}
        for key, answer in stepping(iter(answers.items()), self._step):
            cached = session.partitions.get(key)
            if cached is not None and cached.differs(answer):
                changed[key] = answer
        return changed

    def conclude(
        self, answers: dict[PartitionKey, FetchPartitionData]
    ) -> tuple[ErrorCode, int, dict[PartitionKey, FetchPartitionData]]:
        """The error and session id of the response, and the partitions that it contains."""
        if self._remember is not None:
            return ErrorCode.NONE, self._remember(answers), answers
        session = self._session
        if session is None:
            return self.error, NO_SESSION, answers
        if session.epoch != self._epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.id, {}
        changed = {}
        for key, answer in stepping(iter(answers.items()), self._step):
            cached = session.partitions.get(key)
            if cached is None or not cached.differs(answer):
                continue
            cached.remember(answer)
            changed[key] = answer
            if has_records(answer):
                # It moves to the end, so that full partitions do not starve those after them.
                session.partitions[key] = session.partitions.pop(key)
        return ErrorCode.NONE, session.id, changed


class FetchSessions:
    """All sessions of the broker. `partition_count` returns how many partitions there are."""

    def __init__(
        self,
        max_sessions: int,
        new_id: Callable[[], int],
        partition_count: Callable[[], int],
        find_topic_name: Callable[[bytes], str | None],
    ) -> None:
        """`new_id` returns an id at random. `find_topic_name` returns the name of a topic id."""
        self._max_sessions = max_sessions
        self._new_id = new_id
        self._partition_count = partition_count
        self._find_topic_name = find_topic_name
        # In the order of last use: the first one was not used for the longest time.
        self._sessions: dict[int, FetchSession] = {}
        # What the last search for the smallest session has shown: until then, every session that
        # is old enough to be replaced by a larger one has at least so many partitions.
        self._least_size: float = 0
        self._least_until_ms: float = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def size_of(self, session_id: int) -> int:
        """How many partitions a session has; 0 if there is none with this id."""
        session = self._sessions.get(session_id)
        return 0 if session is None else len(session.partitions)

    def partitions_of(self, session_id: int) -> Collection[PartitionKey]:
        """The partitions of a session; none if there is no session with this id."""
        session = self._sessions.get(session_id)
        return () if session is None else session.partitions.keys()

    def resend(self, session_id: int, partitions: Iterable[PartitionKey]) -> None:
        """Send the next answer of these partitions, also if it equals the last one."""
        session = self._sessions.get(session_id)
        if session is None:
            return
        for key in partitions:
            if key in session.partitions:
                session.partitions[key].high_watermark = -1  # as after an error of the log

    def plan(
        self, request: FetchRequest, version: int, now_ms: float, step: Step = no_step
    ) -> FetchPlan:
        """The partitions that a request asks for: those of its session, if it has one.

        `now_ms` is a time of a clock that never jumps.
        """
        uses_topic_ids = version >= 13
        wanted = _wanted(request, uses_topic_ids, step)
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            if request.session_epoch == FINAL_EPOCH:
                return FetchPlan(wanted)
            return FetchPlan(
                wanted,
                remember=lambda answers: self._create(
                    wanted, answers, uses_topic_ids, now_ms, step
                ),
            )
        return self._continue(request, wanted, uses_topic_ids, now_ms, step)

    def _continue(
        self,
        request: FetchRequest,
        wanted: dict[PartitionKey, FetchPartition],
        uses_topic_ids: bool,
        now_ms: float,
        step: Step,
    ) -> FetchPlan:
        session = self._sessions.get(request.session_id)
        if session is None:
            return FetchPlan({}, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            return FetchPlan({}, error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            return FetchPlan({}, error=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        partitions = session.partitions
        if wanted or request.forgotten_topics_data:
            partitions, names = self._changed(session, request, wanted, uses_topic_ids, step)
            has_room = len(partitions) <= len(session.partitions) or self._may_keep(
                partitions, step
            )
            if session.epoch != request.session_epoch:  # of another request, between two slices
                return FetchPlan({}, error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
            if self._sessions.get(session.id) is not session:
                return FetchPlan({}, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            if not has_room:
                del self._sessions[session.id]
                return FetchPlan({}, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            if not partitions:
                del self._sessions[session.id]
                return FetchPlan({})
            if request.forgotten_topics_data:
                self._least_size = min(self._least_size, len(partitions))
            session.partitions, session.names = partitions, names
        session.epoch = next_epoch(session.epoch)
        session.used_ms = now_ms
        self._sessions[session.id] = self._sessions.pop(session.id)
        plan = FetchPlan({}, session=session, step=step)
        plan.wanted = {key: partitions[key].wanted for key in stepping(partitions, step)}
        return plan

    def _changed(
        self,
        session: FetchSession,
        request: FetchRequest,
        wanted: dict[PartitionKey, FetchPartition],
        uses_topic_ids: bool,
        step: Step,
    ) -> tuple[dict[PartitionKey, CachedPartition], dict[bytes, str]]:
        """The partitions of a session, and the names of its topics, after a request's changes."""
        partitions = session.partitions.copy()
        for key, partition in stepping(iter(wanted.items()), step):
            cached = partitions.get(key)
            if cached is None:
                partitions[key] = CachedPartition(partition)
                self._remember_name(session, key[0])
            else:
                partitions[key] = CachedPartition(
                    partition, cached.high_watermark, cached.log_start_offset
                )
        for key in _forgotten(request, uses_topic_ids, step):
            partitions.pop(key, None)
        names = session.names
        if names and request.forgotten_topics_data:
            names = {
                topic: names[topic]
                for topic, _ in stepping(partitions, step)
                if isinstance(topic, bytes) and topic in names
            }
        return partitions, names

    def _create(
        self,
        wanted: dict[PartitionKey, FetchPartition],
        answers: dict[PartitionKey, FetchPartitionData],
        uses_topic_ids: bool,
        now_ms: float,
        step: Step,
    ) -> int:
        if not self._may_keep(answers, step):
            return NO_SESSION
        session = FetchSession(NO_SESSION, uses_topic_ids, {}, now_ms, now_ms, {})
        for key, answer in stepping(iter(answers.items()), step):
            session.partitions[key] = CachedPartition(
                wanted[key], answer.high_watermark, answer.log_start_offset
            )
            self._remember_name(session, key[0])
        if len(self._sessions) >= self._max_sessions and not self._evict(len(wanted), now_ms):
            return NO_SESSION
        while session.id == NO_SESSION or session.id in self._sessions:
            session.id = self._new_id()
        self._sessions[session.id] = session
        self._least_until_ms = min(self._least_until_ms, now_ms + EVICTION_MS)
        return session.id

    def _may_keep(self, partitions: Collection[PartitionKey], step: Step) -> bool:
        """Whether a session may have these partitions."""
        if is_too_large(len(partitions), self._partition_count):
            return False
        return all(len(topic) <= MAX_TOPIC_NAME_LENGTH for topic, _ in stepping(partitions, step))

    def _remember_name(self, session: FetchSession, topic: str | bytes) -> None:
        if isinstance(topic, bytes) and topic not in session.names:
            name = self._find_topic_name(topic)
            if name is not None:
                session.names[topic] = name

    def _evict(self, size: int, now_ms: float) -> bool:
        """Drop a session in favour of one of `size` partitions. Returns whether one was dropped."""
        oldest_used = next(iter(self._sessions.values()), None)
        if oldest_used is None:
            return False
        if now_ms - oldest_used.used_ms > EVICTION_MS:
            del self._sessions[oldest_used.id]
            return True
        if size <= self._least_size and now_ms <= self._least_until_ms:
            return False
        old: list[FetchSession] = []
        young: list[FetchSession] = []
        for session in self._sessions.values():
            (old if now_ms - session.created_ms > EVICTION_MS else young).append(session)
        smallest = min(old, key=lambda item: (len(item.partitions), item.id), default=None)
        self._least_size = inf if smallest is None else len(smallest.partitions)
        self._least_until_ms = min([item.created_ms for item in young], default=inf) + EVICTION_MS
        if smallest is None or size <= self._least_size:
            return False
        del self._sessions[smallest.id]
        return True


def _wanted(
    request: FetchRequest, uses_topic_ids: bool, step: Step
) -> dict[PartitionKey, FetchPartition]:
    topics = stepping(request.topics, step)
    if uses_topic_ids:
        return {(t.topic_id, p.partition): p for t in topics for p in stepping(t.partitions, step)}
    return {(t.topic, p.partition): p for t in topics for p in stepping(t.partitions, step)}


def _forgotten(request: FetchRequest, uses_topic_ids: bool, step: Step) -> Iterable[PartitionKey]:
    for topic in stepping(request.forgotten_topics_data, step):
        name = topic.topic_id if uses_topic_ids else topic.topic
        for partition in stepping(topic.partitions, step):
            yield name, partition


def split_key(key: PartitionKey) -> tuple[str, bytes, int]:
    """The name, topic id and partition of a key. A key has a name or an id; the other is empty."""
    topic, partition = key
    if isinstance(topic, bytes):
        return "", topic, partition
    return topic, ZERO_UUID, partition
