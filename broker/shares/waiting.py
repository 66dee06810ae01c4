"""A ShareFetch that waits until there is enough to acquire, or its time is up.

It is woken by an append to one of its logs, and by records of its share-partitions that become
available again, from the turn in which an attempt has opened them. Then it tries once more, in a
later turn of the event loop, because a caller that wakes it may be in the middle of its work.

Hundreds of members may wait for the same record. They try in a queue of their own, for a
millisecond a turn, and only while there is something to acquire where they were woken: one of them
gets the record, and the others go on waiting.

A ShareFetch that may be answered at once makes its first attempt before, and subscribes to nothing
(`read_now`). One in slices makes each attempt in slices.

Kafka: DelayedShareFetch in its purgatory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from typing import Any

from odradek.broker.disk.cold_reads import ColdReads
from odradek.broker.turns.turn_queue import TurnQueue
from odradek.coordinator.runtime.steps import FEW, no_step, stepping
from odradek.coordinator.runtime.timers import Now
from odradek.storage.files import WouldWaitError
from odradek.storage.log import PartitionLog

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
        turns: TurnQueue,
        clock: Callable[[], Now],
        cold_reads: ColdReads,
        max_wait_ms: int,
    ) -> None:
        self._read = read
        self._loop = loop
        self._turns = turns
        self._clock = clock
        self._cold_reads = cold_reads
        self._max_wait_ms = max_wait_ms
        self._is_last = max_wait_ms <= 0
        self._led: dict[PartitionLog, LedPartition] = {}  # what wakes it
        self._news: set[LedPartition] = set()  # what has woken it since the last attempt
        self._is_queued = False
        # Its result are the answers, or None: they need an attempt that may wait.
        self._woken: asyncio.Future[Answers | None] | None = None

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
        self._queue()

    def __await__(self) -> Generator[Any, Any, Answers]:
        return self._answers().__await__()

    async def _answers(self) -> Answers:
        timer = self._loop.call_later(max(self._max_wait_ms, 0) / 1000, self.release)
        if not self._is_last:
            self._read.on_open = self._subscribe
        try:
            while True:
                answers = await self._cold_reads.look_up(self._attempt)
                if answers is None:
                    self._woken = self._loop.create_future()
                    if self._news or self._is_last:  # since the attempt
                        self._queue()
                    answers = await self._woken
                    self._woken = None
                if answers is not None:
                    return answers
        finally:
            timer.cancel()
            for led in stepping(iter(self._led.values()), self._read.step):
                led.waiting.discard(self._wake)
                led.log.on_append.discard(self._appended)

    def _attempt(self) -> Answers | None:
        self._news.clear()
        return self._read.attempt(self._clock(), is_last=self._is_last)

    def _subscribe(self, led: LedPartition) -> None:
        before = self._led.get(led.log)
        if before is led:
            return
        if before is not None:  # it was closed
            before.waiting.discard(self._wake)
        self._led[led.log] = led
        led.waiting.add(self._wake)
        led.log.on_append.add(self._appended)

    def _appended(self, log: PartitionLog) -> None:
        self._wake(self._led[log])

    def _wake(self, led: LedPartition) -> None:
        self._news.add(led)
        self._queue()

    def _queue(self) -> None:
        if self._woken is not None and not self._is_queued:
            self._is_queued = True
            self._turns.wait(self._try_again)

    def _try_again(self) -> None:
        """Make an attempt in this turn, unless it would find nothing."""
        self._is_queued = False
        if self._woken is None or self._woken.done():
            return
        if not self._is_last and not self._may_find():
            self._news.clear()
            return
        answers = None
        if self._read.step is no_step:
            try:
                with self._cold_reads.first_attempt:
                    answers = self._attempt()
            except Exception:  # noqa: BLE001 # the next attempt waits for the disk, or raises it
                self._woken.set_result(None)
                return
            if answers is None:
                return
        self._woken.set_result(answers)

    def _may_find(self) -> bool:
        return len(self._news) > FEW or any(map(self._read.may_find, self._news))
