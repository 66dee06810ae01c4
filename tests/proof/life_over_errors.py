"""One act of a life during which a call of the disk fails: what may follow, and what may not.

Afterwards, a step may be refused only if a partition that it needs is offline, or was never made.
No partition is offline but those of the data directory in which the call has failed. If that is the
one with the metadata log, the broker stops; if it cannot start, it says so with one line. Nothing
that it does not expect is raised anywhere.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from copy import deepcopy
from pathlib import Path

from odradek.broker.startup.preflight import RefusedToStartError
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.data_directory import DirectoryError
from tests.support.broker_in_loop import until

from .failing import FailingFiles
from .life import FIRST, Act, Ledger, Life, RefusedError

LIMIT_SECONDS = 60.0


class Unexpected(logging.Handler):
    """Errors that somebody has logged with a traceback: nobody expected them."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.lines.append(f"logged: {record.getMessage()}: {record.exc_info[1]!r}")

    def __enter__(self) -> "Unexpected":
        logging.getLogger().addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger().removeHandler(self)


class LifeOverErrors(Life):
    """An act that goes on after errors. `wrong`: what should not have followed."""

    def __init__(self, root: Path, files: FailingFiles, ledger: Ledger) -> None:
        super().__init__(root, files)
        self.disk = files
        self.ledger = deepcopy(ledger)
        self.wrong: list[str] = []
        self.end: str | None = None
        """Why the broker has ended before the act is over."""

    async def play(self, act: Act) -> None:
        with Unexpected() as unexpected:
            try:
                await super().play(act)
            except (DirectoryError, RefusedToStartError) as error:
                self.end = f"it does not start: {error}"
                if self.disk.failed is None:
                    self.wrong.append(self.end)
            except Exception as error:  # noqa: BLE001 # whatever it is: it should not have been
                self.wrong.append(f"raised: {error!r}")
        self.wrong = list(dict.fromkeys(self.wrong + unexpected.lines))

    async def take(self, step: Callable[[], Awaitable[None]]) -> None:
        if self.end is not None:
            return
        has_failed = self.disk.failed is not None
        if has_failed:
            await self.broker.disk_space.check_directories()  # as each second
            self.broker.coordinators.logs.retry_loads()
            await until(lambda: not self.broker.log_manager.waiting())
        try:
            async with asyncio.timeout(LIMIT_SECONDS):
                await step()
        except TimeoutError:
            self.wrong.append("a step does not end")
        except (RefusedError, ApiError, OSError) as error:
            if self.disk.failed is None:
                raise
            if has_failed and not self._is_offline(error):
                self.wrong.append(f"refused although nothing is offline: {error!r}")
        self._check_offline()
        fatal = self.broker.directory_failures.fatal
        if fatal.done():
            self.end = fatal.result()

    def _is_offline(self, error: Exception) -> bool:
        """Whether a partition that a step needs is offline, or not there; or is still there."""
        if isinstance(error, ApiError) and error.code is ErrorCode.TOPIC_ALREADY_EXISTS:
            return True  # the step before was to delete it, and was refused
        if not isinstance(error, RefusedError) or not error.needs:
            return bool(self.broker.log_manager.offline)
        for topic, partition in error.needs:
            try:
                if not self.broker.log_manager.get(topic, partition).is_online:
                    return True
            except ApiError:
                return True
        return False

    def _check_offline(self) -> None:
        manager = self.broker.log_manager
        may_be = self.disk.failed_directory
        if may_be is None and manager.offline:  # a call for the directory that has all of them
            may_be = next(iter(manager.offline))
        offline = set(manager.offline)
        offline.update(log.directory.parent for log in manager.logs() if not log.is_online)
        if offline - {may_be}:
            self.wrong.append(f"offline: {offline}: {manager.offline}")
        if self.broker.directory_failures.fatal.done() and self.root / FIRST not in offline:
            self.wrong.append("the broker ends for a directory without the metadata log")
