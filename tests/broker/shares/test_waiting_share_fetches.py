"""A ShareFetch that waits is woken by what happens after the attempt that found too little."""

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from odradek.broker.handlers import share_fetch
from odradek.broker.shares.sessions import ShareSessions
from odradek.broker.shares.share_read import Answers, ShareFetchCall, ShareRead
from odradek.broker.shares.waiting import WaitingRead
from odradek.broker.turns.turn_queue import TurnQueue
from odradek.broker.turns.turns import SHARE_FETCHES_S
from odradek.coordinator.runtime.steps import no_step
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from tests.support.log_box import put
from tests.support.requests import build
from tests.support.share_rig import ShareRig
from tests.support.share_states import TOPIC_ID

MINUTE_MS = 60_000
SHORT_WAIT_MS = 20
MEMBERS = 20
LIMIT_SECONDS = 100


class Led:
    """As much of a share-partition, and of its log, as is waited for."""

    def __init__(self) -> None:
        self.waiting: set[Callable[[Led], None]] = set()
        self.on_append: set[Callable[[object], None]] = set()
        self.log = self


class Read:
    """A read that finds something from the second attempt on.

    `on_attempt` is called with each attempt.
    """

    def __init__(self, led: Led, on_attempt: Callable[[], object] = no_step) -> None:
        self.step = no_step
        self._on_attempt = on_attempt
        self.on_open: Callable[[Led], object]
        self._led = led
        self._has_tried = False

    def attempt(self, _now: Now, *, is_last: bool) -> dict[Any, Any] | None:
        assert not is_last, "the time is not up"
        self._on_attempt()
        self.on_open(self._led)
        if self._has_tried:
            return {}
        self._has_tried = True
        return None

    def may_find(self, _led: Led) -> bool:
        return True


class ColdReads:
    """Reads after which something happens before the caller is told of them."""

    first_attempt = nullcontext()

    def __init__(self, happens: Callable[[], None]) -> None:
        self._happens = happens

    async def look_up(self, work: Callable[[], Any]) -> Any:
        found = work()
        asyncio.get_running_loop().call_soon(self._happens)
        return found


def waiting_read(
    read: Read | ShareRead,
    happens: Callable[[], None] = lambda: None,
    turns: TurnQueue | None = None,
    max_wait_ms: int = MINUTE_MS,
) -> WaitingRead:
    loop = asyncio.get_running_loop()
    return WaitingRead(
        read,  # type: ignore[arg-type] # as much of it as is needed
        loop,
        turns or TurnQueue(loop, SHARE_FETCHES_S),
        lambda: Now(wall_ms=0, timer_ms=0),
        ColdReads(happens),  # type: ignore[arg-type] # likewise
        max_wait_ms,
    )


async def turns_until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 # each turn of the loop counts
        await asyncio.sleep(0)


async def test_a_record_that_comes_as_a_cold_read_ends_wakes_the_fetch() -> None:
    led = Led()

    def append() -> None:
        for wake in tuple(led.on_append):
            wake(led)

    waiting = waiting_read(Read(led), append)
    assert await asyncio.wait_for(waiting, LIMIT_SECONDS) == {}
    assert not led.on_append
    assert not led.waiting


async def test_fetches_that_an_append_wakes_try_in_turns() -> None:
    led, turn, turns_of_attempts = Led(), 0, list[int]()
    queue = TurnQueue(asyncio.get_running_loop(), 0.0)  # has time for one
    waiting = [
        asyncio.ensure_future(
            waiting_read(Read(led, on_attempt=lambda: turns_of_attempts.append(turn)), turns=queue)
        )
        for _ in range(MEMBERS)
    ]
    await turns_until(lambda: len(led.on_append) == MEMBERS)
    turns_of_attempts.clear()
    for wake in tuple(led.on_append):
        wake(led)
    while not all(each.done() for each in waiting):
        turn += 1
        await asyncio.sleep(0)
    assert len(set(turns_of_attempts)) == MEMBERS


async def test_a_record_is_looked_for_by_one_of_those_that_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig, attempts = ShareRig(tmp_path, partitions=1), 0
    queue = TurnQueue(asyncio.get_running_loop(), SHARE_FETCHES_S)
    attempt = ShareRead.attempt

    def counted(read: ShareRead, now: Now, *, is_last: bool) -> Answers | None:
        nonlocal attempts
        attempts += 1
        return attempt(read, now, is_last=is_last)

    monkeypatch.setattr(ShareRead, "attempt", counted)
    calls = [
        ShareFetchCall(rig.key().group_id, str(member), [(TOPIC_ID, 0)], 1, 1 << 20, 1, 1, False)
        for member in range(MEMBERS)
    ]
    waiting = [
        asyncio.ensure_future(waiting_read(ShareRead(rig.shares, rig.files, call), turns=queue))
        for call in calls
    ]
    await turns_until(lambda: len(rig.logs[0].on_append) == MEMBERS)

    async def attempts_for_a_record() -> int:
        nonlocal attempts
        attempts, before = 0, sum(each.done() for each in waiting)
        put(rig.logs[0], b"tea")
        await turns_until(
            lambda: sum(each.done() for each in waiting) > before and not queue._waiting
        )
        return attempts

    assert [await attempts_for_a_record() for _ in range(2)] == [1, 1]
    for each in waiting:
        each.cancel()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    got = [result for result in results if isinstance(result, dict)]
    assert sorted(answer[TOPIC_ID, 0].acquired_records[0].first_offset for answer in got) == [0, 1]


async def test_a_fetch_whose_state_cannot_be_read_is_answered_without_an_error_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig, attempts = ShareRig(tmp_path, partitions=1), 0

    def refuse(*_: object) -> None:
        nonlocal attempts
        attempts += 1
        raise ApiError(ErrorCode.NOT_COORDINATOR, "its shard is not served")

    monkeypatch.setattr(rig.states.coordinator, "read", refuse)
    call = ShareFetchCall(rig.key().group_id, "m", [(TOPIC_ID, 0)], 1, 1 << 20, 1, 1, False)
    read = ShareRead(rig.shares, rig.files, call)
    loop = asyncio.get_running_loop()
    begun_s = loop.time()
    waiting = waiting_read(read, max_wait_ms=SHORT_WAIT_MS)
    assert waiting.read_now() is None
    assert await asyncio.wait_for(waiting, LIMIT_SECONDS) == {}
    assert loop.time() - begun_s > SHORT_WAIT_MS / 2000  # timers are rounded
    assert attempts == 3, "at once, when it begins to wait, and at the end"


async def test_a_stop_of_the_broker_answers_a_refusal_that_is_delayed() -> None:
    shares = SimpleNamespace(sessions=ShareSessions(0), finish_release=lambda _key, _step: None)
    coordinators = SimpleNamespace(
        serves_share_groups=True, shares=shares, waiting_share_fetches=set[Any]()
    )
    topics = SimpleNamespace(partition_count=1)
    context = SimpleNamespace(
        broker=SimpleNamespace(coordinators=coordinators, metadata=SimpleNamespace(topics=topics)),
        slices=object(),
        api_version=2,
        session=object(),
        step=no_step,
        sliced=lambda items: items,
        check_group=lambda _operation, _group_id: None,
    )
    request = build(ShareFetchRequest, 2, group_id="g", member_id="m", max_wait_ms=MINUTE_MS)
    answer = share_fetch.handle(context, request)  # type: ignore[arg-type] # as much of it as is needed
    assert not isinstance(answer, ShareFetchResponse)
    waiting = asyncio.ensure_future(answer)
    await asyncio.sleep(0)
    [delay] = coordinators.waiting_share_fetches
    delay.release()
    refused = await asyncio.wait_for(waiting, LIMIT_SECONDS)
    assert refused.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert not coordinators.waiting_share_fetches
