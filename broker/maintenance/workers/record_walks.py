"""Walks of batches that would hold the event loop for too long.

What costs more than AT_ONCE allows (storage/record_walk.py) goes to a process: to a thread would
not do, for a walk in Python holds the interpreter's lock, and so do the copies between the calls
of the codecs. There are two processes, one for SHORT walks and one for LONG ones. Each takes its
batches in the order of their arrival; a batch that is too much for the first goes to the second.
So a batch that unpacks to 100 MiB holds back only others of its kind, and the memory that walks
take is that of one large batch.

A connection's next request is not served before its batch is stored, so the order of what one
producer sends on one connection stays. Batches of other connections may be stored in between.

The batches that wait are held in memory, together at most `queued.max.request.bytes`; above that
they are refused with REQUEST_TIMED_OUT, which producers retry. A walk goes on when its client
disconnects: its request was received whole, and Kafka stores such records too.

A process takes 20 MB. It is started with its first batch and ended when it was idle for a while.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar, cast

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.record_walk import LONG, SHORT, RecordsRefusedError, WalkLimits

from .walk_messages import Ending, Refused, TooLong, Walked, WalkFailed, WalkTask
from .worker_process import WorkerProcess, command_of, start_process

logger = logging.getLogger(__name__)

COMMAND = command_of("walk_process")
IDLE_SECONDS = 30.0


Found = TypeVar("Found")


class _Wanted(NamedTuple):
    """A walk of a batch, and who waits for how it ends."""

    walk: Callable[..., object]
    batch: bytes
    ending: asyncio.Future[Ending]


class RecordWalks:
    """Both processes. `close` must be called. `max_waiting_bytes`: of all batches; None: any."""

    def __init__(
        self,
        max_waiting_bytes: Callable[[], int | None],
        *,
        command: Sequence[str] = COMMAND,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._max_waiting_bytes = max_waiting_bytes
        self._waiting_bytes = 0
        self._lanes = [_Lane(limits, command, idle_seconds) for limits in (SHORT, LONG)]

    @property
    def pids(self) -> list[int]:
        """The processes there are."""
        return [lane.pid for lane in self._lanes if lane.pid is not None]

    async def run(self, walk: Callable[..., Found], batch: bytes) -> Found:
        """What `walk(batch, limits=...)` gives; a process must be able to import `walk`.

        Raises ApiError.
        """
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
        return cast(Found, _found(ending))

    def release_all(self) -> None:
        """The broker stops: batches that wait are refused, so that their clients retry."""
        for lane in self._lanes:
            lane.release_all()

    async def close(self) -> None:
        """End the processes."""
        self.release_all()
        for lane in self._lanes:
            await lane.close()


def _found(ending: Ending) -> object:
    if isinstance(ending, Walked):
        return ending.found
    if isinstance(ending, Refused):
        if ending.record_errors:
            raise RecordsRefusedError(ending.code, ending.message, ending.record_errors)
        raise ApiError(ending.code, ending.message)
    logger.error("a batch could not be checked: %s", ending.reason)
    raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the batch was not checked: {ending.reason}")


class _Lane:
    """One process and the walks that wait for it, in order."""

    def __init__(self, limits: WalkLimits, command: Sequence[str], idle_seconds: float) -> None:
        self._limits = limits
        self._command = command
        self._idle_seconds = idle_seconds
        self._queue: asyncio.Queue[_Wanted] = asyncio.Queue()
        self._waiting: set[asyncio.Future[Ending]] = set()
        self._worker: WorkerProcess | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        return None if self._worker is None else self._worker.pid

    async def walk(self, walk: Callable[..., object], batch: bytes) -> Ending:
        ending: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self._waiting.add(ending)
        self._queue.put_nowait(_Wanted(walk, batch, ending))
        if self._serving is None:
            self._serving = asyncio.ensure_future(self._serve())
        try:
            return await ending
        finally:
            self._waiting.discard(ending)

    async def _serve(self) -> None:
        """Give the process one walk after another, until there are none for a while."""
        try:
            while True:
                async with asyncio.timeout(self._idle_seconds):
                    wanted = await self._queue.get()
                if not wanted.ending.done():
                    said = await self._said_of(wanted)
                    if not wanted.ending.done():
                        wanted.ending.set_result(said)
        except TimeoutError:
            await self._end_worker()
        self._serving = None
        if not self._queue.empty():  # it came while the process was being ended
            self._serving = asyncio.ensure_future(self._serve())

    async def _said_of(self, wanted: _Wanted) -> Ending:
        task = WalkTask(wanted.walk, self._limits, len(wanted.batch))
        try:
            if self._worker is None:
                self._worker = WorkerProcess(await start_process(self._command))
            self._worker.send(task, wanted.batch)
            said: Ending = pickle.loads(await self._worker.hear())
        except (asyncio.IncompleteReadError, OSError) as error:
            how = str(error) if self._worker is None else await self._worker.how_it_ended()
            await self._end_worker()
            return WalkFailed(f"the walking process {how}")
        return said

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
