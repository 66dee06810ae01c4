"""A Fetch waits until enough bytes are appended, its time is up, or the broker stops."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace

from odradek.broker.fetching.fetch_waiters import FetchWaiters


class FakeLog:
    """A log that the test grows and rolls; it calls its waiters."""

    def __init__(self) -> None:
        self.on_append: set[Callable] = set()
        self.segments = SimpleNamespace(active=SimpleNamespace(size_bytes=100))
        self.is_online = True
        self.high_watermark = self.log_end_offset = 0
        self.transaction_start: int | None = None

    @property
    def last_stable_offset(self) -> int:
        is_open = self.transaction_start is not None
        return self.transaction_start if is_open else self.log_end_offset

    def grow(self, size_bytes: int) -> None:
        self.segments.active.size_bytes += size_bytes
        self.high_watermark = self.log_end_offset = self.log_end_offset + 1
        self.notify()

    def begin_transaction(self, size_bytes: int) -> None:
        self.transaction_start = self.log_end_offset
        self.grow(size_bytes)

    def end_transaction(self, marker_bytes: int = 78) -> None:
        self.transaction_start = None
        self.grow(marker_bytes)

    def roll(self) -> None:
        self.segments.active = SimpleNamespace(size_bytes=10)
        self.notify()

    def notify(self) -> None:
        for callback in tuple(self.on_append):
            callback(self)


async def begin(
    logs: list[FakeLog], missing_bytes: int, max_wait_ms: int = 60_000, *, committed: bool = False
):
    waiters = FetchWaiters(asyncio.get_running_loop())
    waiting = waiters.wait(logs, missing_bytes, max_wait_ms, committed=committed)
    assert not await has_ended(waiting)
    return waiters, waiting


async def has_ended(waiting: asyncio.Future) -> bool:
    for _ in range(3):
        await asyncio.sleep(0)
    return waiting.done()


async def test_it_ends_when_its_logs_together_have_grown_enough() -> None:
    one, other = FakeLog(), FakeLog()
    _, waiting = await begin([one, other], 100)
    one.grow(60)
    assert not await has_ended(waiting)
    other.grow(40)
    assert await has_ended(waiting)
    assert waiting.result() is True
    assert not one.on_append
    assert not other.on_append


class SlowClock:
    """The running loop with timers that the test calls."""

    def __init__(self) -> None:
        self.timers: list[tuple[float, Callable]] = []
        self.get_debug = asyncio.get_running_loop().get_debug
        self.call_soon = asyncio.get_running_loop().call_soon

    def call_later(self, delay_s: float, callback: Callable) -> SimpleNamespace:
        self.timers.append((delay_s, callback))
        return SimpleNamespace(cancel=lambda: None)


async def test_it_ends_when_its_time_is_up() -> None:
    clock, log = SlowClock(), FakeLog()
    waiting = FetchWaiters(clock).wait([log], 100, 1500)
    log.grow(99)
    assert not await has_ended(waiting)
    [(delay_s, time_is_up)] = clock.timers
    assert delay_s == 1.5
    time_is_up()
    assert await has_ended(waiting)
    assert waiting.result() is False
    assert not log.on_append


async def test_it_reads_again_when_a_log_rolls() -> None:
    log = FakeLog()
    _, waiting = await begin([log], 1000)
    log.roll()
    assert await has_ended(waiting)


async def test_it_reads_again_when_a_log_goes_offline() -> None:
    log = FakeLog()
    _, waiting = await begin([log], 1000)
    log.is_online = False
    log.notify()
    assert await has_ended(waiting)


async def test_all_end_when_the_broker_stops() -> None:
    waiters, waiting = await begin([FakeLog()], 1000)
    waiters.release_all()
    assert await has_ended(waiting)


async def test_a_cancelled_wait_unsubscribes_from_its_logs() -> None:
    log = FakeLog()
    _, waiting = await begin([log], 1000)
    waiting.cancel()
    assert await has_ended(waiting)
    assert not log.on_append


async def test_bytes_appended_in_the_turn_of_the_call_count() -> None:
    log = FakeLog()
    waiters = FetchWaiters(asyncio.get_running_loop())
    waiting = waiters.wait([log], 100, 60_000)
    log.grow(99)
    assert not waiting.done()
    log.grow(1)
    assert waiting.done()


async def test_bytes_of_an_open_transaction_do_not_count_for_committed_reads() -> None:
    log = FakeLog()
    log.begin_transaction(50)
    _, waiting = await begin([log], 100, committed=True)
    log.grow(1000)
    assert not await has_ended(waiting)
    log.end_transaction()
    assert await has_ended(waiting)


async def test_committed_reads_count_the_bytes_outside_transactions() -> None:
    log = FakeLog()
    _, waiting = await begin([log], 100, committed=True)
    log.grow(60)
    assert not await has_ended(waiting)
    log.grow(40)
    assert await has_ended(waiting)


async def test_uncommitted_reads_count_the_bytes_of_open_transactions() -> None:
    log = FakeLog()
    log.begin_transaction(50)
    _, waiting = await begin([log], 100)
    log.grow(100)
    assert await has_ended(waiting)
