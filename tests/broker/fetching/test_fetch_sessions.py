"""Fetch sessions (KIP-227): which partitions are answered, which requests are refused."""

from collections.abc import Iterable
from typing import Any

from odradek.broker.fetching.fetch_sessions import (
    EVICTION_MS,
    SPARE_PARTITIONS,
    FetchSessions,
    PartitionKey,
    next_epoch,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import (
    FetchPartition,
    FetchPartitionData,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from odradek.protocol.schema import SplicedRecords

VERSION = 12
Answers = dict[PartitionKey, FetchPartitionData]


def make_sessions(max_sessions: int = 10, partition_count: int = 3) -> FetchSessions:
    ids = iter(range(1, 1000))
    names = {b"id": "t"}
    return FetchSessions(max_sessions, lambda: next(ids), lambda: partition_count, names.get)


def fetch(
    partitions: Iterable[int] = (),
    *,
    session_id: int = 0,
    epoch: int = 0,
    forget: Iterable[int] = (),
    offset: int = 0,
) -> FetchRequest:
    wanted = [
        FetchPartition(partition=p, fetch_offset=offset, partition_max_bytes=100)
        for p in partitions
    ]
    gone = list(forget)
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic(topic="t", partitions=wanted)] if wanted else [],
        forgotten_topics_data=[ForgottenTopic(topic="t", partitions=gone)] if gone else [],
    )


def answers(*partitions: int, records: int = 0, high_watermark: int = 5, error: int = 0) -> Answers:
    return {
        ("t", p): FetchPartitionData(
            partition_index=p,
            error_code=error,
            high_watermark=high_watermark,
            log_start_offset=0,
            records=SplicedRecords(records) if records else b"",
        )
        for p in partitions
    }


def open_session(sessions: FetchSessions, *partitions: int, now_ms: int = 0) -> int:
    plan = sessions.plan(fetch(partitions), VERSION, now_ms)
    error, session_id, answered = plan.conclude(answers(*partitions))
    assert error is ErrorCode.NONE
    assert len(answered) == len(partitions)
    return session_id


def test_a_full_fetch_opens_a_session_and_answers_for_every_partition() -> None:
    sessions = make_sessions()
    assert open_session(sessions, 0, 1) == 1
    assert len(sessions) == 1


def test_epoch_minus_one_fetches_without_a_session_and_ends_the_one_named() -> None:
    sessions = make_sessions()
    session_id = open_session(sessions, 0)
    plan = sessions.plan(fetch([0], session_id=session_id, epoch=-1), VERSION, 0)
    assert plan.conclude(answers(0))[1] == 0
    assert len(sessions) == 0


def test_an_incremental_fetch_reads_all_partitions_but_answers_only_changed_ones() -> None:
    sessions = make_sessions()
    session_id = open_session(sessions, 0, 1)
    plan = sessions.plan(fetch(session_id=session_id, epoch=1), VERSION, 0)
    assert list(plan.wanted) == [("t", 0), ("t", 1)]
    error, answered_id, answered = plan.conclude(answers(0) | answers(1, records=10))
    assert (error, answered_id, list(answered)) == (ErrorCode.NONE, session_id, [("t", 1)])


def test_a_new_high_watermark_is_answered_once() -> None:
    sessions = make_sessions()
    session_id = open_session(sessions, 0)
    first = sessions.plan(fetch(session_id=session_id, epoch=1), VERSION, 0)
    assert list(first.conclude(answers(0, high_watermark=6))[2]) == [("t", 0)]
    second = sessions.plan(fetch(session_id=session_id, epoch=2), VERSION, 0)
    assert second.conclude(answers(0, high_watermark=6))[2] == {}


def test_an_error_is_answered_each_time_and_so_is_its_end() -> None:
    sessions = make_sessions()
    session_id = open_session(sessions, 0)
    for epoch in (1, 2):
        plan = sessions.plan(fetch(session_id=session_id, epoch=epoch), VERSION, 0)
        assert plan.conclude(answers(0, error=ErrorCode.KAFKA_STORAGE_ERROR))[2]
    plan = sessions.plan(fetch(session_id=session_id, epoch=3), VERSION, 0)
    assert plan.conclude(answers(0))[2]


def test_what_would_be_sent_is_told_before_and_changes_nothing() -> None:
    sessions = make_sessions()
    session_id = open_session(sessions, 0, 1, 2)
    plan = sessions.plan(fetch(session_id=session_id, epoch=1), VERSION, 0)
    found = answers(0) | answers(1, records=10) | answers(2, high_watermark=6)
    for _ in range(2):
        assert list(plan.changed(found)) == [("t", 1), ("t", 2)]
    assert list(plan.conclude(found)[2]) == [("t", 1), ("t", 2)]
    sessions.plan(fetch(session_id=session_id, epoch=2), VERSION, 0)
    assert plan.changed(found) == {}


def test_without_a_session_every_answer_would_be_sent() -> None:
    assert make_sessions().plan(fetch([0]), VERSION, 0).changed(answers(0)) == answers(0)


def test_a_partition_with_records_moves_to_the_end_of_the_session() -> None:
    sessions = make_sessions()
    session_id = open_session(sessions, 0, 1, 2)
    plan = sessions.plan(fetch(session_id=session_id, epoch=1), VERSION, 0)
    plan.conclude(answers(0, records=10) | answers(1, 2))
    plan = sessions.plan(fetch(session_id=session_id, epoch=2), VERSION, 0)
    assert [partition for _, partition in plan.wanted] == [1, 2, 0]


def test_partitions_are_added_changed_and_forgotten() -> None:
    sessions = make_sessions()
    session_id = open_session(sessions, 0, 1)
    request = fetch([1, 2], session_id=session_id, epoch=1, forget=[0], offset=7)
    plan = sessions.plan(request, VERSION, 0)
    assert {key[1]: wanted.fetch_offset for key, wanted in plan.wanted.items()} == {1: 7, 2: 7}


def test_the_names_of_forgotten_topics_are_not_kept() -> None:
    sessions = FetchSessions(10, lambda: 1, lambda: 3, bytes.decode)

    def fetch_by_id(*topics: bytes, epoch: int, forget: bytes = b"") -> FetchRequest:
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100)
        return FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            session_id=1 if epoch else 0,
            session_epoch=epoch,
            topics=[FetchTopic(topic_id=each, partitions=[partition]) for each in topics],
            forgotten_topics_data=[ForgottenTopic(topic_id=forget, partitions=[0])],
        )

    first = sessions.plan(fetch_by_id(b"a", b"b", epoch=0), 13, 0)
    first.conclude({(topic, 0): answers(0)["t", 0] for topic in (b"a", b"b")})
    plan = sessions.plan(fetch_by_id(b"c", epoch=1, forget=b"a"), 13, 0)
    assert plan.names == {b"b": "b", b"c": "c"}


def test_a_session_that_forgets_everything_ends() -> None:
    sessions = make_sessions()
    session_id = open_session(sessions, 0)
    plan = sessions.plan(fetch(session_id=session_id, epoch=1, forget=[0]), VERSION, 0)
    assert plan.conclude({}) == (ErrorCode.NONE, 0, {})
    assert len(sessions) == 0


def test_an_unknown_session_is_refused() -> None:
    plan = make_sessions().plan(fetch(session_id=99, epoch=1), VERSION, 0)
    assert plan.wanted == {}
    assert plan.conclude({})[0] is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_wrong_epoch_is_refused() -> None:
    sessions = make_sessions()
    session_id = open_session(sessions, 0)
    plan = sessions.plan(fetch(session_id=session_id, epoch=5), VERSION, 0)
    assert plan.conclude({})[0] is ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_a_change_between_names_and_topic_ids_is_refused() -> None:
    sessions = make_sessions()
    session_id = open_session(sessions, 0)
    plan = sessions.plan(fetch(session_id=session_id, epoch=1), 13, 0)
    assert plan.conclude({})[0] is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_second_request_of_the_session_makes_the_first_one_fail() -> None:
    sessions = make_sessions()
    session_id = open_session(sessions, 0)
    first = sessions.plan(fetch(session_id=session_id, epoch=1), VERSION, 0)
    sessions.plan(fetch(session_id=session_id, epoch=2), VERSION, 0)
    assert first.conclude(answers(0, records=1))[0] is ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_when_all_slots_are_taken_by_fresh_sessions_the_client_gets_none() -> None:
    sessions = make_sessions(max_sessions=1)
    open_session(sessions, 0)
    assert open_session(sessions, 1, 2, now_ms=10) == 0


def test_a_session_that_was_not_used_for_two_minutes_is_replaced() -> None:
    sessions = make_sessions(max_sessions=1)
    open_session(sessions, 0)
    assert open_session(sessions, 1, now_ms=EVICTION_MS + 1) == 2


def test_an_old_but_used_session_is_replaced_only_by_a_larger_one() -> None:
    sessions = make_sessions(max_sessions=1)
    session_id = open_session(sessions, 0, 1)
    sessions.plan(fetch(session_id=session_id, epoch=1), VERSION, EVICTION_MS)
    now_ms = EVICTION_MS + 1
    assert open_session(sessions, 0, 1, now_ms=now_ms) == 0
    assert open_session(sessions, 0, 1, 2, now_ms=now_ms) == 2


class Watched(dict[int, Any]):
    """Sessions; counts how many of them are looked at."""

    looked_at = 0

    def values(self) -> Any:
        for session in super().values():
            self.looked_at += 1
            yield session


def test_clients_that_get_no_session_do_not_search_all_of_them_each_time() -> None:
    count = 50
    sessions = make_sessions(max_sessions=count)
    watched = sessions._sessions = Watched()
    for _ in range(count):
        open_session(sessions, 0, 1)
    for session_id in range(1, count + 1):
        sessions.plan(fetch(session_id=session_id, epoch=1), VERSION, EVICTION_MS)
    for now_ms in (EVICTION_MS - 1, EVICTION_MS + 1):
        watched.looked_at = 0
        for _ in range(count):
            assert open_session(sessions, 2, now_ms=now_ms) == 0
        assert watched.looked_at <= 2 * count + count


def test_a_search_for_a_session_to_replace_is_not_outdated() -> None:
    sessions = make_sessions(max_sessions=2)
    old = open_session(sessions, 0, 1)
    young = open_session(sessions, 0, now_ms=10)
    assert open_session(sessions, 0, 1, now_ms=11) == 0
    sessions.plan(fetch(session_id=old, epoch=1), VERSION, EVICTION_MS)
    sessions.plan(fetch(session_id=young, epoch=1), VERSION, EVICTION_MS)
    assert open_session(sessions, 0, 1, now_ms=EVICTION_MS + 10) == 0, "the smaller one is young"
    assert open_session(sessions, 0, 1, now_ms=EVICTION_MS + 11), "it is old enough"
    assert sessions.size_of(young) == 0
    assert open_session(sessions, 0, 1, now_ms=EVICTION_MS + 12) == 0
    shrunk = fetch(session_id=old, epoch=2, forget=[0])
    assert sessions.plan(shrunk, VERSION, EVICTION_MS + 13).wanted
    assert open_session(sessions, 0, 1, now_ms=EVICTION_MS + 14), "it is smaller now"
    assert sessions.size_of(old) == 0


def test_a_session_has_no_more_partitions_than_the_broker_and_a_few() -> None:
    sessions = make_sessions(partition_count=50)
    largest = SPARE_PARTITIONS + 50
    session_id = open_session(sessions, *range(largest))
    assert session_id
    assert open_session(sessions, *range(largest + 1)) == 0
    assert len(sessions) == 1
    same = sessions.plan(fetch(range(largest), session_id=session_id, epoch=1), VERSION, 0)
    assert len(same.wanted) == largest
    replaced = fetch([largest], session_id=session_id, epoch=2, forget=[0])
    assert len(sessions.plan(replaced, VERSION, 0).wanted) == largest
    one_more = sessions.plan(fetch([0], session_id=session_id, epoch=3), VERSION, 0)
    assert one_more.conclude({})[0] is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(sessions) == 0


def test_a_topic_name_that_is_too_long_is_not_kept() -> None:
    sessions = make_sessions()
    request = fetch([0])
    request.topics[0] = FetchTopic(topic="t" * 250, partitions=request.topics[0].partitions)
    plan = sessions.plan(request, VERSION, 0)
    key = ("t" * 250, 0)
    assert plan.conclude({key: answers(0)["t", 0]})[1] == 0


def test_epochs_wrap_to_one() -> None:
    assert next_epoch(0) == 1
    assert next_epoch(0x7FFFFFFF) == 1
    assert next_epoch(-1) == -1
