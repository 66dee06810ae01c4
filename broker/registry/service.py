"""The registry's requests, one change at a time.

A change is: replay what is new, decide, append, replay, reply. Its reply is given when its records
are in the log, and synced if flush.messages demands it. What is quick is read on the event loop at
any time. What is long (parsing and comparing schemas, going through all subjects) runs in a thread.
No record is replayed meanwhile, because both kinds of work hold the same lock.

A request whose client goes away is served to its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from odradek.broker.common.background_tasks import BackgroundTasks
from odradek.coordinator.registry.errors import ErrorCode as Code
from odradek.coordinator.registry.errors import RegistryError
from odradek.coordinator.registry.registration import Decision
from odradek.coordinator.registry.registry import Registry
from odradek.protocol.errors import ApiError, ErrorCode

from .schema_log import SchemaLog

T = TypeVar("T")
IsLong = Callable[[Registry], bool]

_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
_MANY_SUBJECTS = 300


def never(_: Registry) -> bool:
    """Of a request that is always quick."""
    return False


def has_many_subjects(registry: Registry) -> bool:
    """Whether a request that goes through all subjects takes long."""
    return len(registry.state.versions) > _MANY_SUBJECTS


class RegistryService:
    """All methods raise RegistryError."""

    def __init__(self, log: SchemaLog, background: BackgroundTasks) -> None:
        self._log = log
        self._background = background
        self._lock = asyncio.Lock()

    async def load(self) -> None:
        """Replay all records."""
        await self._alone(self._log.follow)

    async def read(self, ask: Callable[[Registry], T], is_long: IsLong = never) -> T:
        """Return what `ask` returns."""
        if not self._is_current():
            await self._alone(self._log.follow)
        if is_long(self._log.registry):
            return await self._alone(lambda: self._read_in_thread(ask))
        return ask(self._log.registry)

    async def change(
        self, decide: Callable[[Registry], Decision[T]], is_long: IsLong = never
    ) -> Decision[T]:
        """Store what `decide` decides, and return it."""
        return await self._alone(lambda: self._change(decide, is_long))

    def _is_current(self) -> bool:
        """Whether requests may be answered now. While there is a change, what is known counts."""
        try:
            return (self._log.is_whole and self._lock.locked()) or self._log.is_current
        except ApiError as error:
            raise _store_error(error) from error

    # -- with the lock -----------------------------------------------------------------------------

    async def _alone(self, work: Callable[[], Awaitable[T]]) -> T:
        return await asyncio.shield(self._background.start(self._locked(work)))

    async def _locked(self, work: Callable[[], Awaitable[T]]) -> T:
        async with self._lock:
            try:
                return await work()
            except ApiError as error:
                raise _store_error(error) from error

    async def _read_in_thread(self, ask: Callable[[Registry], T]) -> T:
        await self._log.follow()
        return await asyncio.to_thread(ask, self._log.registry)

    async def _change(
        self, decide: Callable[[Registry], Decision[T]], is_long: IsLong
    ) -> Decision[T]:
        while True:
            await self._log.follow()
            registry = self._log.registry
            if is_long(registry):
                decision = await asyncio.to_thread(decide, registry)
            else:
                decision = decide(registry)
            if self._log.is_current:
                break  # else others have written meanwhile
        if decision.records:
            await self._log.append(decision.records)
        return decision


def _store_error(error: ApiError) -> RegistryError:
    if error.code in _TOO_LARGE:
        return RegistryError(
            Code.SCHEMA_TOO_LARGE, "Register operation failed because schema is too large"
        )
    return RegistryError(Code.STORE_ERROR, f"{error.code.name}: {error.message or ''}")
