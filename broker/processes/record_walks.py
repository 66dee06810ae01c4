"""Walks of batches that would block the event loop for too long.

A walk that exceeds the limits AT_ONCE (storage/record_walk.py) runs in a process. A thread would
not help: a walk in Python holds the interpreter's lock, and so do the copies between the calls of
the codecs. There is a lane for SHORT walks, with one process, and one for LONG walks, with two. A
batch that exceeds the limits of the first goes to the second. So a batch that unpacks to 100 MiB
delays only other large batches, and walks need the memory of two large batches.

In each lane the clients take turns, and those of one client keep their order. One client has at
most one process of a lane, because a LONG walk may take a minute. So clients that send such batches
on many connections hold up themselves, and others only if there are two of them.

The broker has one such service for batches that are produced, and one for those that are read:
down-conversion (fetching/down_conversion.py) and searches by time (storage/offset_lookup.py).

A connection's next request is served only after its batch is stored, so the batches of one
producer on one connection keep their order. Batches of other connections may be stored in between.

Waiting batches are kept in memory, together at most `queued.max.request.bytes`, and half of that
for one client. Above that they are refused with REQUEST_TIMED_OUT, which producers retry. A walk
goes on when its client disconnects: its request was received whole, and Kafka stores such records
too.

A process needs 20 MB. It starts with its first batch and ends after IDLE_SECONDS without one.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
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
    """A walk of a client's batch, and the future that gets its result."""

    client: Hashable
    walk: Callable[..., object]
    batch: bytes
    ending: asyncio.Future[WalkEnding]


class RecordWalks:
    """Both lanes with their processes. `close` must be called.

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
        self._waiting_bytes: Counter[Hashable] = Counter()  # by client
        self._is_stopping = False
        self._lanes = [
            _Lane(limits, process_count, command, idle_seconds)
            for limits, process_count in ((SHORT, 1), (LONG, 2))
        ]

    @property
    def pids(self) -> list[int]:
        """The running processes."""
        return [pid for lane in self._lanes for pid in lane.pids]

    async def run(self, walk: Callable[..., T], batch: bytes, client: Hashable) -> T:
        """Return the result of `walk(batch, limits=...)`. A process must be able to import `walk`.

        Raises ApiError.
        """
        self._check_waiting_bytes(len(batch), client)
        self._waiting_bytes[client] += len(batch)
        try:
            for lane in self._lanes:
                if self._is_stopping:
                    raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the broker stops")
                ending = await lane.walk(walk, batch, client)
                if not isinstance(ending, TooLong):
                    break
        finally:
            self._waiting_bytes[client] -= len(batch)
            self._waiting_bytes += Counter()  # drops those that have none
        return cast(T, _result_of(ending))

    def _check_waiting_bytes(self, size_bytes: int, client: Hashable) -> None:
        """Refuse a batch that is too much beside those that wait, of this client or of all."""
        limit = self._max_waiting_bytes()
        if limit is None:
            return
        waiting = (self._waiting_bytes.total(), limit), (self._waiting_bytes[client], limit // 2)
        for waiting_bytes, most in waiting:
            if waiting_bytes and waiting_bytes + size_bytes > most:
                text = f"{waiting_bytes} bytes of batches wait to be checked already"
                raise ApiError(ErrorCode.REQUEST_TIMED_OUT, text)

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


class _Turns:
    """The queued walks. The clients take turns, each with one walk at a time."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[Hashable, deque[_QueuedWalk]] = OrderedDict()
        self._served: set[Hashable] = set()
        self._changed = asyncio.Event()

    def put(self, queued: _QueuedWalk) -> None:
        self._waiting.setdefault(queued.client, deque()).append(queued)
        self._changed.set()

    def ready_clients(self) -> int:
        """How many clients wait, and have no walk under way."""
        return len(self._waiting.keys() - self._served)

    async def next(self) -> _QueuedWalk:
        """Take the next walk of a client that has none under way. Call `end` after it."""
        while True:
            for client, walks in self._waiting.items():
                if client in self._served:
                    continue
                queued = walks.popleft()
                if walks:
                    self._waiting.move_to_end(client)
                else:
                    del self._waiting[client]
                self._served.add(client)
                return queued
            self._changed.clear()
            await self._changed.wait()

    def end(self, client: Hashable) -> None:
        """Note that a client's walk has ended."""
        self._served.discard(client)
        self._changed.set()


class _Lane:
    """Processes with the same limits, and the walks that wait for them."""

    def __init__(
        self,
        limits: WalkLimits,
        process_count: int,
        command: Sequence[str],
        idle_seconds: float,
    ) -> None:
        self._limits = limits
        self._process_count = process_count
        self._command = command
        self._idle_seconds = idle_seconds
        self._turns = _Turns()
        self._waiting: set[asyncio.Future[WalkEnding]] = set()
        self._servers: dict[_Server, asyncio.Task[None]] = {}

    @property
    def pids(self) -> list[int]:
        return [server.pid for server in self._servers if server.pid is not None]

    async def walk(self, walk: Callable[..., object], batch: bytes, client: Hashable) -> WalkEnding:
        ending: asyncio.Future[WalkEnding] = asyncio.get_running_loop().create_future()
        self._waiting.add(ending)
        self._turns.put(_QueuedWalk(client, walk, batch, ending))
        self._start_servers()
        try:
            return await ending
        finally:
            self._waiting.discard(ending)

    def _start_servers(self) -> None:
        """Start processes for clients that no idle one is left for, if there may be more."""
        idle = sum(not server.is_busy for server in self._servers)
        wanted = min(self._turns.ready_clients() - idle, self._process_count - len(self._servers))
        for _ in range(wanted):
            server = _Server(self._limits, self._command)
            self._servers[server] = asyncio.ensure_future(self._serve(server))

    async def _serve(self, server: _Server) -> None:
        """Run walks in a process, one after another, until there is none for `idle_seconds`."""
        try:
            while True:
                async with asyncio.timeout(self._idle_seconds):
                    queued = await self._turns.next()
                server.is_busy = True
                try:
                    if not queued.ending.done():
                        outcome = await server.outcome_of(queued)
                        if not queued.ending.done():
                            queued.ending.set_result(outcome)
                finally:
                    server.is_busy = False
                    self._turns.end(queued.client)
        except TimeoutError:
            await server.close()
        del self._servers[server]
        self._start_servers()  # a walk may have been queued while the process was being ended

    def release_all(self) -> None:
        for ending in self._waiting:
            if not ending.done():
                ending.set_result(Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the broker stops"))

    async def close(self) -> None:
        servers = list(self._servers.items())
        for _, task in servers:
            task.cancel()
        for server, task in servers:
            await asyncio.wait([task])
            await server.close()


class _Server:
    """One process, which is started with its first walk."""

    def __init__(self, limits: WalkLimits, command: Sequence[str]) -> None:
        self.is_busy = False
        self._limits = limits
        self._command = command
        self._worker: ChildProcess | None = None

    @property
    def pid(self) -> int | None:
        return None if self._worker is None else self._worker.pid

    async def outcome_of(self, queued: _QueuedWalk) -> WalkEnding:
        """Run a walk; returns how it ended."""
        task = WalkTask(queued.walk, self._limits, len(queued.batch))
        try:
            if self._worker is None:
                self._worker = ChildProcess(*await start_process(self._command))
            self._worker.send(task, queued.batch)
            outcome: WalkEnding = await self._worker.channel.receive()
        except (ChannelClosedError, OSError) as error:
            how = str(error) if self._worker is None else await self._worker.describe_end()
            await self.close()
            return WalkFailed(f"the walking process {how}")
        except Exception as error:  # noqa: BLE001  of one walk: those that wait go on
            await self.close()
            return WalkFailed(f"{type(error).__name__}: {error}")
        return outcome

    async def close(self) -> None:
        """End the process."""
        if self._worker is not None:
            await self._worker.end()
            self._worker = None
