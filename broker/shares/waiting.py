"""A ShareFetch that waits until there is enough to acquire, or its time is up.

It is woken by an append to one of its logs, and by records of its share-partitions that become
available again, from the turn of the attempt that found too little. Then it tries once more, in the
next turn of the event loop.

A read of many share-partitions, in slices, is woken by each from the turn in which it was opened.

Kafka: DelayedShareFetch in its purgatory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any

from odradek.broker.disk.cold_reads import ColdReads
from odradek.coordinator.runtime.steps import stepping
from odradek.coordinator.runtime.timers import Now
from odradek.storage.files import WouldWaitError

from .led_partition import LedPartition
from .share_read import Answers, ShareRead


def read_or_wait(
    read: ShareRead,
    max_wait_ms: int,
    loop: asyncio.AbstractEventLoop,
    clock: Callable[[], Now],
    cold_reads: ColdReads,
) -> Answers | WaitingRead:
    """Return the answers if there is enough now, else a future of them."""
    missing = None
    try:
        with cold_reads.first_attempt:
            answers = read.attempt(clock(), is_last=max_wait_ms <= 0)
        if answers is not None:
            return answers
    except WouldWaitError as error:
        missing = error
    waiting = WaitingRead(read, loop, clock, cold_reads)
    waiting.start(max_wait_ms, missing)
    return waiting


class SlicedRead(Awaitable[Answers]):
    """A read in slices of many share-partitions, and the answers in the end."""

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


class WaitingRead(asyncio.Future[Answers]):
    """A read that waits, and then is the answers."""

    __slots__ = ("_clock", "_cold_reads", "_is_last", "_led", "_read", "_soon", "_timer", "_work")

    def __init__(
        self,
        read: ShareRead,
        loop: asyncio.AbstractEventLoop,
        clock: Callable[[], Now],
        cold_reads: ColdReads,
    ) -> None:
        super().__init__(loop=loop)
        self._read = read
        self._clock = clock
        self._cold_reads = cold_reads
        self._is_last = False
        self._led: list[LedPartition] = []  # what wakes it
        self._soon: asyncio.Handle | None = None
        self._work: asyncio.Task[Answers | None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self, max_wait_ms: int, missing: WouldWaitError | None) -> None:
        """Begin to wait, in the turn of the first attempt; or read what it lacked from the disk."""
        self._timer = self.get_loop().call_later(max(max_wait_ms, 0) / 1000, self.release)
        if missing is None:
            self._subscribe()
        else:
            self._read_cold(missing)

    def release(self) -> None:
        """Answer with what there is."""
        self._is_last = True
        self._wake()

    def cancel(self, msg: object = None) -> bool:
        """Stop waiting, because the client is gone."""
        self._unsubscribe()
        if self._timer is not None:
            self._timer.cancel()
        if self._work is not None:
            self._work.cancel()
        return super().cancel(msg)

    # -- what wakes it -----------------------------------------------------------------------------

    def _subscribe(self) -> None:
        """Wait for the share-partitions, which the attempt has opened in this turn."""
        self._unsubscribe()
        self._led = self._read.open_all()
        for one in self._led:
            one.waiting.add(self._wake)
            one.log.on_append.add(self._appended)

    def _unsubscribe(self) -> None:
        for one in self._led:
            one.waiting.discard(self._wake)
            one.log.on_append.discard(self._appended)

    def _appended(self, _log: object) -> None:
        self._wake()

    def _wake(self) -> None:
        """Try again soon: whoever calls this may be in the middle of its work."""
        if self._soon is None and not self.done():
            self._soon = self.get_loop().call_soon(self._try)

    # -- attempts ----------------------------------------------------------------------------------

    def _try(self) -> None:
        self._soon = None
        if self.done() or self._work is not None:
            return
        try:
            with self._cold_reads.first_attempt:
                answers = self._attempt()
        except WouldWaitError as missing:
            self._read_cold(missing)
        except Exception as error:  # noqa: BLE001 # the connection reports it
            self._end(None, error)
        else:
            self._end(answers)

    def _attempt(self) -> Answers | None:
        answers = self._read.attempt(self._clock(), is_last=self._is_last)
        if answers is None:
            self._subscribe()
        return answers

    def _read_cold(self, missing: WouldWaitError) -> None:
        work = self._cold_reads.look_up(self._attempt, missing)
        self._work = self.get_loop().create_task(work)
        self._work.add_done_callback(self._read_ended)

    def _read_ended(self, work: asyncio.Task[Answers | None]) -> None:
        self._work = None
        if not self.done() and not work.cancelled():
            error = work.exception()
            self._end(None if error else work.result(), error)

    def _end(self, answers: Answers | None, error: BaseException | None = None) -> None:
        """End with answers or an error; without both, wait for more."""
        if answers is None and error is None:
            if self._is_last:
                self._wake()
            return
        self._unsubscribe()
        if self._timer is not None:
            self._timer.cancel()
        if error is not None:
            self.set_exception(error)
        elif answers is not None:
            self.set_result(answers)
