"""Requests are counted and timed around their handlers."""

from types import SimpleNamespace
from typing import Any

import pytest

from odradek.broker.metrics.counted_handlers import TIMED_EVERY_MS, counted
from odradek.broker.metrics.traffic import Traffic
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.heartbeat import HeartbeatResponse

NOW_MS = 1_700_000_000_000


def send(traffic: Traffic, *, now_ms: int, times: int = 1, fails: bool = False) -> None:
    def handle(context: Any, request: Any) -> HeartbeatResponse:
        if fails:
            raise OSError
        return HeartbeatResponse()

    serve = counted(traffic, ApiKey.HEARTBEAT, 4, handle)
    for _ in range(times):
        serve(SimpleNamespace(now_ms=now_ms), object())  # type: ignore[arg-type] # all it reads


def test_every_request_of_a_burst_is_counted_and_one_of_them_timed() -> None:
    traffic = Traffic()
    send(traffic, now_ms=NOW_MS, times=30)
    counts = traffic.requests[ApiKey.HEARTBEAT][4]
    assert counts.untimed == 29
    assert counts.answered.count == 30
    assert counts.answered.sum_s > 0


def test_requests_that_are_further_apart_are_all_timed() -> None:
    traffic = Traffic()
    for number in range(5):
        send(traffic, now_ms=NOW_MS + number * TIMED_EVERY_MS)
    assert traffic.requests[ApiKey.HEARTBEAT][4].untimed == 0
    assert traffic.requests[ApiKey.HEARTBEAT][4].answered.count == 5


def test_reading_the_times_ends_what_a_clock_that_was_set_back_has_stopped() -> None:
    traffic = Traffic()
    counts = traffic.requests.setdefault(ApiKey.HEARTBEAT, {})
    send(traffic, now_ms=NOW_MS)
    send(traffic, now_ms=NOW_MS - 3_600_000)
    assert counts[4].untimed == 1
    assert counts[4].answered.count == 2
    send(traffic, now_ms=NOW_MS - 3_600_000)
    assert counts[4].untimed == 0


def test_a_request_that_fails_is_counted_without_a_time() -> None:
    traffic = Traffic()
    with pytest.raises(OSError):  # noqa: PT011 # the handler's own, without a text
        send(traffic, now_ms=NOW_MS, fails=True)
    counts = traffic.requests[ApiKey.HEARTBEAT][4]
    assert (counts.answered.count, counts.unanswered) == (0, 1)


def test_a_response_that_the_handler_has_encoded_is_timed_at_once() -> None:
    traffic = Traffic()
    serve = counted(traffic, ApiKey.PRODUCE, 9, lambda _context, _request: bytearray(b"encoded"))
    assert serve(SimpleNamespace(now_ms=NOW_MS), object()) == b"encoded"  # type: ignore[arg-type]
    assert traffic.requests[ApiKey.PRODUCE][9].answered.count == 1
