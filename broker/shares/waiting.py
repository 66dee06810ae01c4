"""A ShareFetch that waits until there is enough to acquire, or its time is up.

It is woken by an append to one of its logs, and by records of its share-partitions that become
available again, from the turn in which an attempt has opened them. Then it tries once more, in a
later turn of the event loop, because a caller that wakes it may be in the middle of its work.

A ShareFetch that may be answered at once makes its first attempt before, and subscribes to nothing
(`read_now`).

Kafka: DelayedShareFetch in its purgatory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from typing import Any

from odradek.broker.disk.cold_reads import ColdReads
from odradek.coordinator.runtime.steps import stepping
from odradek.coordinator.runtime.timers import Now
from odradek.storage.files import WouldWaitError

from .led_partition import LedPartition
from .share_read import Answers, ShareRead


class Delay:
    """A delay of an answer, which `release` ends."""

    def __init__(self) -> None:
        self._is_over = asyncio.Event()

    async def wait(self, delay_ms: int) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_over.wait(), delay_ms / 1000)

    def release(self) -> None:
        """End it, because the broker stops."""
        self._is_over.set()


class WaitingRead(Awaitable[Answers]):
    """A read that waits, and the answers in the end."""

    def __init__(
        self,
        read: ShareRead,
        loop: asyncio.AbstractEventLoop,
        clock: Callable[[], Now],
        cold_reads: ColdReads,
        max_wait_ms: int,
    ) -> None:
        self._read = read
        self._loop = loop
        self._clock = clock
        self._cold_reads = cold_reads
        self._max_wait_ms = max_wait_ms
        self._is_last = max_wait_ms <= 0
        self._led: set[LedPartition] = set()  # what wakes it
        self._has_news = False
        self._wakes: asyncio.Future[None] | None = None

    def read_now(self) -> Answers | None:
        """Return the answers if there is enough now, and in memory."""
        try:
            with self._cold_reads.first_attempt:
                return self._attempt()
        except WouldWaitError:
            return None

    def release(self) -> None:
        """Answer with what there is."""
        self._is_last = True
        self._wake()

    def __await__(self) -> Generator[Any, Any, Answers]:
        return self._answers().__await__()

    async def _answers(self) -> Answers:
        timer = self._loop.call_later(max(self._max_wait_ms, 0) / 1000, self.release)
        if not self._is_last:
            self._read.on_open = self._subscribe
        try:
            while True:
                self._has_news = False
                answers = await self._cold_reads.look_up(self._attempt)
                if answers is not None:
                    return answers
                if not self._has_news:
                    self._wakes = self._loop.create_future()
                    await self._wakes
                    self._wakes = None
        finally:
            timer.cancel()
            for led in stepping(iter(self._led), self._read.step):
                led.waiting.discard(self._wake)
                led.log.on_append.discard(self._appended)

    def _attempt(self) -> Answers | None:
        return self._read.attempt(self._clock(), is_last=self._is_last)

    def _subscribe(self, led: LedPartition) -> None:
        if led not in self._led:
            self._led.add(led)
            led.waiting.add(self._wake)
            led.log.on_append.add(self._appended)

    def _appended(self, _log: object) -> None:
        self._wake()

    def _wake(self) -> None:
        self._has_news = True
        if self._wakes is not None and not self._wakes.done():
            self._wakes.set_result(None)
