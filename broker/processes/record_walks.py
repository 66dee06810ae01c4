"""Walks of batches that would block the event loop for too long.

A walk that exceeds the limits AT_ONCE (storage/record_walk.py) runs in a process. A thread would
not help: a walk in Python holds the interpreter's lock, and so do the copies between the calls of
the codecs. There are two processes, one for SHORT walks and one for LONG ones. Each serves its
batches in the order of arrival. A batch that exceeds the limits of the first goes to the second.
So a batch that unpacks to 100 MiB delays only other large batches, and walks need the memory of
one large batch.

The broker has one such service for batches that are produced, and one for those that are read:
down-conversion (fetching/down_conversion.py) and searches by time (storage/offset_lookup.py).

A connection's next request is served only after its batch is stored, so the batches of one
producer on one connection keep their order. Batches of other connections may be stored in between.

Waiting batches are kept in memory, together at most `queued.max.request.bytes`. Above that they are
refused with REQUEST_TIMED_OUT, which producers retry. A walk goes on when its client disconnects:
its request was received whole, and Kafka stores such records too.

A process needs 20 MB. It starts with its first batch and ends after IDLE_SECONDS without one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar, cast

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.record_walk import LONG, SHORT, RecordsRefusedError, WalkLimits

from .channel import ChannelClosedError
from .child_process import WALK_COMMAND, ChildProcess, start_process
from .messages import Refused, TooLong, Walked, WalkEnding, WalkFailed, WalkTask

logger = logging.getLogger(__name__)

IDLE_SECONDS = 30.0

T = TypeVar("T")


class _QueuedWalk(NamedTuple):
    """A walk of a batch, and the future that gets its result."""

    walk: Callable[..., object]
    batch: bytes
    ending: asyncio.Future[WalkEnding]


class RecordWalks:
    """Both processes and their queues. `close` must be called.

    `max_waiting_bytes` is the limit for all waiting batches together; None: no limit.
    """

    def __init__(
        self,
        max_waiting_bytes: Callable[[], int | None],
        *,
        command: Sequence[str] = WALK_COMMAND,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._max_waiting_bytes = max_waiting_bytes
        self._waiting_bytes = 0
        self._is_stopping = False
        self._lanes = [_Lane(limits, command, idle_seconds) for limits in (SHORT, LONG)]

    @property
    def pids(self) -> list[int]:
        """The running processes."""
        return [lane.pid for lane in self._lanes if lane.pid is not None]

    async def run(self, walk: Callable[..., T], batch: bytes) -> T:
        """Return the result of `walk(batch, limits=...)`. A process must be able to import `walk`.

        Raises ApiError.
        """
        if self._is_stopping:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the broker stops")
        size_bytes, limit = len(batch), self._max_waiting_bytes()
        if limit is not None and self._waiting_bytes and self._waiting_bytes + size_bytes > limit:
            raise ApiError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"{self._waiting_bytes} bytes of batches wait to be checked already",
            )
        self._waiting_bytes += size_bytes
        try:
            for lane in self._lanes:
                ending = await lane.walk(walk, batch)
                if not isinstance(ending, TooLong):
                    break
        finally:
            self._waiting_bytes -= size_bytes
        return cast(T, _result_of(ending))

    def release_all(self) -> None:
        """Refuse waiting and later batches because the broker stops; their clients retry."""
        self._is_stopping = True
        for lane in self._lanes:
            lane.release_all()

    async def close(self) -> None:
        """End the processes."""
        self.release_all()
        for lane in self._lanes:
            await lane.close()


def _result_of(ending: WalkEnding) -> object:
    if isinstance(ending, Walked):
        return ending.result
    if isinstance(ending, Refused):
        if ending.record_errors:
            raise RecordsRefusedError(ending.code, ending.message, ending.record_errors)
        raise ApiError(ending.code, ending.message)
    logger.error("a batch could not be checked: %s", ending.reason)
    raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the batch was not checked: {ending.reason}")


class _Lane:
    """One process and the queue of its walks."""

    def __init__(self, limits: WalkLimits, command: Sequence[str], idle_seconds: float) -> None:
        self._limits = limits
        self._command = command
        self._idle_seconds = idle_seconds
        self._queue: asyncio.Queue[_QueuedWalk] = asyncio.Queue()
        self._waiting: set[asyncio.Future[WalkEnding]] = set()
        self._worker: ChildProcess | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        return None if self._worker is None else self._worker.pid

    async def walk(self, walk: Callable[..., object], batch: bytes) -> WalkEnding:
        ending: asyncio.Future[WalkEnding] = asyncio.get_running_loop().create_future()
        self._waiting.add(ending)
        self._queue.put_nowait(_QueuedWalk(walk, batch, ending))
        if self._serving is None:
            self._serving = asyncio.ensure_future(self._serve())
        try:
            return await ending
        finally:
            self._waiting.discard(ending)

    async def _serve(self) -> None:
        """Run the queued walks one after another, until there is none for `idle_seconds`."""
        try:
            while True:
                async with asyncio.timeout(self._idle_seconds):
                    queued = await self._queue.get()
                if not queued.ending.done():
                    outcome = await self._outcome_of(queued)
                    if not queued.ending.done():
                        queued.ending.set_result(outcome)
        except TimeoutError:
            await self._end_worker()
        self._serving = None
        if not self._queue.empty():  # a walk was queued while the process was being ended
            self._serving = asyncio.ensure_future(self._serve())

    async def _outcome_of(self, queued: _QueuedWalk) -> WalkEnding:
        task = WalkTask(queued.walk, self._limits, len(queued.batch))
        try:
            if self._worker is None:
                self._worker = ChildProcess(*await start_process(self._command))
            self._worker.send(task, queued.batch)
            outcome: WalkEnding = await self._worker.channel.receive()
        except (ChannelClosedError, OSError) as error:
            how = str(error) if self._worker is None else await self._worker.describe_end()
            await self._end_worker()
            return WalkFailed(f"the walking process {how}")
        except Exception as error:  # noqa: BLE001  of one walk: those that wait go on
            await self._end_worker()
            return WalkFailed(f"{type(error).__name__}: {error}")
        return outcome

    async def _end_worker(self) -> None:
        if self._worker is not None:
            await self._worker.end()
            self._worker = None

    def release_all(self) -> None:
        for ending in self._waiting:
            if not ending.done():
                ending.set_result(Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the broker stops"))

    async def close(self) -> None:
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.wait([self._serving])
        await self._end_worker()
