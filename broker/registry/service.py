"""The registry's requests: what is read, and one change after another.

A change is: replay what is new, decide, append, replay, reply. Its reply is given when its records
are in the log, and synced if flush.messages demands it. Decisions are quick, except:

- Long schemas are parsed and compared in a process of the broker (processes/record_walks.py), and
  then it is decided again. Other changes are made meanwhile.
- What goes through all subjects, or follows many references, is served in slices. No record is
  replayed meanwhile.

A request whose client goes away is served to its end if it has the lock. If it waits for it, it
ends: so no more requests wait than the server has connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import TypeVar

from odradek.broker.common.background_tasks import BackgroundTasks
from odradek.broker.processes.record_walks import RecordWalks
from odradek.broker.turns.slices import SliceRunner, Slices
from odradek.coordinator.registry.errors import ErrorCode as Code
from odradek.coordinator.registry.errors import RegistryError
from odradek.coordinator.registry.registration import Decision
from odradek.coordinator.registry.registry import Registry
from odradek.coordinator.registry.schema_work import Done, NotDoneError, Work
from odradek.coordinator.runtime.steps import Step, TakesLongError
from odradek.protocol.errors import ApiError, ErrorCode

from .remote_work import in_process
from .schema_log import SchemaLog

T = TypeVar("T")
Ask = Callable[[Registry], T]
AskAll = Callable[[Registry, Step], T]

# References that a decision follows at once: less than a millisecond.
MAX_REFERENCES_AT_ONCE = 200
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


class RegistryService:
    """All methods raise RegistryError. `client` is whose long schemas are parsed by turns."""

    def __init__(
        self,
        log: SchemaLog,
        background: BackgroundTasks,
        walks: RecordWalks,
        slices: SliceRunner,
    ) -> None:
        self._log = log
        self._background = background
        self._walks = walks
        self._slices = slices
        self._lock = asyncio.Lock()

    async def load(self) -> None:
        """Replay all records."""
        await self._alone(self._log.follow)

    async def read(self, ask: Ask[T], client: Hashable = None) -> T:
        """Return what `ask` returns."""

        async def alone(done: Done) -> T:
            await self._log.follow()
            return await self._in_slices(_for_all(ask), done)

        async def now(done: Done) -> T:
            if not self._is_current():
                await self._alone(self._log.follow)
            try:
                return self._at_once(ask, done)
            except TakesLongError:
                return await self._alone(partial(alone, done))

        return await self._with_work(now, client)

    async def read_all(self, ask: AskAll[T]) -> T:
        """Return what `ask` returns, which goes through all subjects."""

        async def now() -> T:
            await self._log.follow()
            return await self._in_slices(ask)

        return await self._alone(now)

    async def change(self, decide: Ask[Decision[T]], client: Hashable = None) -> Decision[T]:
        """Store what `decide` decides, and return it."""

        async def now(done: Done) -> Decision[T]:
            try:
                return self._at_once(decide, done)
            except TakesLongError:
                return await self._in_slices(_for_all(decide), done)

        def change(done: Done) -> Awaitable[Decision[T]]:
            return self._alone(partial(self._changed, partial(now, done)))

        return await self._with_work(change, client)

    async def change_all(self, decide: AskAll[Decision[T]]) -> Decision[T]:
        """Like `change`; `decide` goes through all subjects."""

        return await self._alone(partial(self._changed, partial(self._in_slices, decide)))

    def _is_current(self) -> bool:
        """Whether requests may be answered now, without reading the log.

        While somebody has the lock, who reads is answered by what is known: it would wait for each
        change otherwise.
        """
        try:
            return (self._log.is_whole and self._lock.locked()) or self._log.is_current
        except ApiError as error:
            raise _store_error(error) from error

    # -- long work ---------------------------------------------------------------------------------

    async def _with_work(self, decide: Callable[[Done], Awaitable[T]], client: Hashable) -> T:
        """Decide, and have done what that needs, until it needs nothing more."""
        done = Done()
        while True:
            try:
                return await decide(done)
            except NotDoneError as error:
                done.results[error.work] = await self._do(error.work, client)

    async def _do(self, work: Work[object], client: Hashable) -> object:
        try:
            return await in_process(work, self._walks, self._slices, client)
        except ApiError as error:
            raise _store_error(error) from error

    def _at_once(self, ask: Ask[T], done: Done) -> T:
        """Raises TakesLongError if it follows many references."""
        return ask(self._log.registry.knowing(done, _few_steps()))

    async def _in_slices(self, ask: AskAll[T], done: Done | None = None) -> T:
        registry = self._log.registry

        async def work(slices: Slices) -> T:
            return ask(registry.knowing(done or Done(), slices.step), slices.step)

        return await self._slices.run(work)

    # -- with the lock -----------------------------------------------------------------------------

    async def _alone(self, work: Callable[[], Awaitable[T]]) -> T:
        await self._lock.acquire()
        outcome = await asyncio.shield(self._background.start(self._locked(work)))
        if isinstance(outcome, RegistryError | NotDoneError):
            raise outcome
        return outcome

    async def _locked(self, work: Callable[[], Awaitable[T]]) -> T | RegistryError | NotDoneError:
        """Work, then release the lock.

        A refusal is returned, because it is no fault if its client has gone away.
        """
        try:
            return await work()
        except ApiError as error:
            return _store_error(error)
        except (RegistryError, NotDoneError) as error:
            return error
        finally:
            self._lock.release()

    async def _changed(self, decide: Callable[[], Awaitable[Decision[T]]]) -> Decision[T]:
        """Decide, until nobody else has written between the decision and the append."""
        while True:
            await self._log.follow()
            decision = await decide()
            if await self._log.append(decision.records):
                self._log.registry.state.note_equivalence(decision.equivalence)
                return decision


def _few_steps() -> Step:
    """Return a step that may be taken so many times. Then it raises TakesLongError."""
    left = iter(range(MAX_REFERENCES_AT_ONCE))

    def step() -> None:
        if next(left, None) is None:
            raise TakesLongError

    return step


def _for_all(ask: Ask[T]) -> AskAll[T]:
    return lambda registry, _step: ask(registry)


def _store_error(error: ApiError) -> RegistryError:
    if error.code in _TOO_LARGE:
        return RegistryError(
            Code.SCHEMA_TOO_LARGE, "Register operation failed because schema is too large"
        )
    return RegistryError(Code.STORE_ERROR, f"{error.code.name}: {error.message or ''}")
