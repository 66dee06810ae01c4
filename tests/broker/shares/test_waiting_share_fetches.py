"""A ShareFetch that waits is woken by what happens after the attempt that found too little."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from odradek.broker.handlers import share_fetch
from odradek.broker.shares.sessions import ShareSessions
from odradek.broker.shares.waiting import WaitingRead
from odradek.coordinator.runtime.steps import no_step
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from tests.support.requests import build

MINUTE_MS = 60_000
LIMIT_SECONDS = 10


class Led:
    """As much of a share-partition, and of its log, as is waited for."""

    def __init__(self) -> None:
        self.waiting: set[Callable[[], None]] = set()
        self.on_append: set[Callable[[object], None]] = set()
        self.log = self


class Read:
    """A read that finds something from the second attempt on."""

    def __init__(self, led: Led) -> None:
        self.step = no_step
        self.on_open: Callable[[Led], object]
        self._led = led
        self._has_tried = False

    def attempt(self, _now: Now, *, is_last: bool) -> dict[Any, Any] | None:
        assert not is_last, "the time is not up"
        self.on_open(self._led)
        if self._has_tried:
            return {}
        self._has_tried = True
        return None


class ColdReads:
    """Reads after which something happens before the caller is told of them."""

    def __init__(self, happens: Callable[[], None]) -> None:
        self._happens = happens

    async def look_up(self, work: Callable[[], Any]) -> Any:
        found = work()
        asyncio.get_running_loop().call_soon(self._happens)
        return found


def waiting_read(read: Read, happens: Callable[[], None]) -> WaitingRead:
    return WaitingRead(
        read,  # type: ignore[arg-type] # as much of it as is needed
        asyncio.get_running_loop(),
        lambda: Now(wall_ms=0, timer_ms=0),
        ColdReads(happens),  # type: ignore[arg-type] # likewise
        MINUTE_MS,
    )


async def test_a_record_that_comes_as_a_cold_read_ends_wakes_the_fetch() -> None:
    led = Led()

    def append() -> None:
        for wake in tuple(led.on_append):
            wake(led)

    waiting = waiting_read(Read(led), append)
    assert await asyncio.wait_for(waiting, LIMIT_SECONDS) == {}
    assert not led.on_append
    assert not led.waiting


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
