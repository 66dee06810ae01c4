"""Dispatcher counts requests, and times some of them."""

from types import SimpleNamespace
from typing import Any

import pytest

from odradek.broker.common.clock import Clock
from odradek.broker.common.traffic import TIMED_EVERY_MS, RequestTraffic, Traffic
from odradek.broker.handlers import fetch
from odradek.broker.producing.single_batch import SingleBatches
from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import Dispatcher
from odradek.coordinator.metadata.topics import Topics
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.compiler import NotSmallError
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.fetch import FetchPartitionData
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.records.cluster_metadata import TopicRecord
from tests.support.wire import request_frame

NOW_MS = 1_700_000_000_000
REQUEST = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
TOPIC_ID = bytes(range(16))
FRAME = memoryview(request_frame(REQUEST, 4, 1, "counted"))[4:]


class Rig:
    """A dispatcher whose only handler returns `answer`, or raises it."""

    def __init__(self, answer: object) -> None:
        self._answer = answer
        self._now_ms = NOW_MS
        broker: Any = SimpleNamespace(
            traffic=Traffic(Topics()),
            clock=Clock(lambda: self._now_ms),
            quotas=SimpleNamespace(is_active=False),
            log_syncs=SimpleNamespace(due={}, coordinators={}, lost_count=0),
        )
        self._dispatcher = Dispatcher(broker, {ApiKey.HEARTBEAT: self._handle}, SingleBatches())
        self._traffic: Traffic = broker.traffic

    def _handle(self, context: RequestContext, request: HeartbeatRequest) -> object:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    async def answer(self) -> HeartbeatResponse:
        """Serve a request whose response is still to come."""
        session: Any = SimpleNamespace(guard=None, api_versions=None)
        answer: Any = self._dispatcher.dispatch(session, FRAME)
        response: HeartbeatResponse = await answer.pending
        return response

    def send(self, *, now_ms: int = NOW_MS, times: int = 1) -> None:
        """Serve requests that arrive at `now_ms`."""
        self._now_ms = now_ms
        session: Any = SimpleNamespace(guard=None, api_versions=None)
        for _ in range(times):
            self._dispatcher.dispatch(session, FRAME)

    @property
    def counts(self) -> RequestTraffic:
        return self._traffic.requests[ApiKey.HEARTBEAT][4]


def test_every_request_of_a_burst_is_counted_and_one_of_them_timed() -> None:
    rig = Rig(HeartbeatResponse())
    rig.send(times=30)
    assert rig.counts.untimed == 29
    assert rig.counts.answered.count == 30
    assert rig.counts.answered.sum_s > 0


def test_requests_that_are_further_apart_are_all_timed() -> None:
    rig = Rig(HeartbeatResponse())
    for number in range(5):
        rig.send(now_ms=NOW_MS + number * TIMED_EVERY_MS)
    assert rig.counts.untimed == 0
    assert rig.counts.answered.count == 5


@pytest.mark.parametrize("step_ms", [-3_600_000, 660_000])
def test_a_wall_clock_that_jumps_does_not_stop_the_timing(step_ms: int) -> None:
    rig = Rig(HeartbeatResponse())
    rig.send()
    rig.send(now_ms=NOW_MS + step_ms)
    assert rig.counts.untimed == 0
    rig.send(now_ms=NOW_MS + step_ms)
    assert rig.counts.untimed == 1
    rig.send(now_ms=NOW_MS + step_ms + TIMED_EVERY_MS)
    assert rig.counts.untimed == 0
    assert rig.counts.answered.count == 4


def test_a_request_that_fails_is_counted_without_a_time() -> None:
    rig = Rig(OSError("the handler's own"))
    with pytest.raises(OSError, match="the handler's own"):
        rig.send()
    assert (rig.counts.answered.count, rig.counts.unanswered) == (0, 1)


async def test_an_error_of_a_timed_handler_that_had_to_wait_is_answered() -> None:
    async def fails_later() -> HeartbeatResponse:
        raise ApiError(ErrorCode.INVALID_RECORD, "it was read")

    rig = Rig(fails_later())
    assert (await rig.answer()).error_code == ErrorCode.INVALID_RECORD
    assert (rig.counts.answered.count, rig.counts.unanswered) == (0, 1)


def test_a_request_that_is_to_be_served_in_slices_is_not_counted_before() -> None:
    rig = Rig(NotSmallError())
    for _ in range(2):  # timed, and untimed
        with pytest.raises(AttributeError):  # this broker has no slices
            rig.send()
    assert (rig.counts.untimed, rig.counts.unanswered) == (0, 0)


def test_a_response_that_the_handler_has_encoded_is_timed_at_once() -> None:
    rig = Rig(bytearray(b"encoded"))
    rig.send()
    assert rig.counts.untimed == 0
    assert rig.counts.answered.count == 1


def test_a_fetch_counts_converted_batches_and_errors_by_topic() -> None:
    topics = Topics()
    topics.replay_topic(TopicRecord(name="t", topic_id=TOPIC_ID))
    traffic = Traffic(topics)
    empty = FetchPartitionData(partition_index=1, high_watermark=0, records=b"")
    failed = FetchPartitionData(partition_index=0, high_watermark=-1, error_code=3)
    answers: fetch.Answers = {
        ("t", 0): FetchPartitionData(partition_index=0, high_watermark=3, records=b"converted"),
        ("t", 1): empty,
        (TOPIC_ID, 2): failed,
        ("unknown", 0): failed,
        (b"an unknown topic", 0): failed,
    }
    for _ in range(2):
        fetch.by_topic(answers, traffic)
    assert (traffic.topics["t"].bytes_out, traffic.topics["t"].failed_fetch) == (18, 2)
    assert traffic.without_topic.failed_fetch == 4
    assert set(traffic.by_key) == {"t", TOPIC_ID}, "unknown names must not take memory"
