"""Which logs are to be cleaned, the dirtiest first. Kafka: grabFilthiestCompactedLog."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

from odradek.storage.cleaning.plan import LogToClean, assess
from odradek.storage.files import WouldWaitError

if TYPE_CHECKING:
    from odradek.broker.disk.cold_reads import ColdReads
    from odradek.storage.cleaning.cleaner_checkpoints import CleanerCheckpoints
    from odradek.storage.log import PartitionLog
    from odradek.storage.log_manager import LogManager

    from .cleaner_state import CleanerBooks

logger = logging.getLogger("odradek.cleaner")

AT_A_TIME = 50  # logs looked at before others have a turn


class CleaningChoice:
    """`looked_at_ms` is when it looked last; `max_dirty_ratio` what it saw."""

    def __init__(
        self,
        manager: LogManager,
        checkpoints: CleanerCheckpoints,
        books: CleanerBooks,
        cold_reads: ColdReads,
        now_ms: Callable[[], int],
    ) -> None:
        self.looked_at_ms: int | None = None
        self.max_dirty_ratio = 0.0
        self._manager = manager
        self._checkpoints = checkpoints
        self._books = books
        self._cold_reads = cold_reads
        self._now_ms = now_ms

    async def due(
        self, is_free: Callable[[PartitionLog], bool]
    ) -> list[tuple[PartitionLog, LogToClean]]:
        """The free logs that are due. Others had a turn meanwhile: ask again whether one `may_be`.

        How a log could be cleaned is as it was at the look; what is added since waits.
        """
        now_ms = self._now_ms()
        dirty: list[tuple[float, PartitionLog, LogToClean]] = []
        max_dirty_ratio = 0.0
        for number, log in enumerate(self._manager.logs()):
            if number % AT_A_TIME == AT_A_TIME - 1:
                await asyncio.sleep(0)
            to_clean = await self._cold_reads.look_up(partial(self._look_at, log, is_free, now_ms))
            if to_clean is not None and to_clean.total_bytes:
                max_dirty_ratio = max(max_dirty_ratio, to_clean.cleanable_ratio)
                if to_clean.is_due(log.config.min_cleanable_dirty_ratio):
                    dirty.append((to_clean.cleanable_ratio, log, to_clean))
        self.looked_at_ms, self.max_dirty_ratio = now_ms, max_dirty_ratio
        dirty.sort(key=itemgetter(0), reverse=True)
        return [(log, to_clean) for _, log, to_clean in dirty]

    def may_be(self, log: PartitionLog) -> bool:
        """Whether the log is one to be cleaned at all."""
        return (
            log.config.compact
            and log.is_online
            and len(log.segments) > 1
            and not self._manager.is_moving(log.key)
            and not self._books.must_wait(log.key)
            and self._manager.find(*log.key) is log
        )

    def _look_at(
        self, log: PartitionLog, is_free: Callable[[PartitionLog], bool], now_ms: int
    ) -> LogToClean | None:
        if not (self.may_be(log) and is_free(log)):
            return None
        try:
            to_clean = assess(log, self._checkpoints.get(log.key), now_ms)
        except OSError as error:
            self._books.disk_failed(log, error)
            return None
        except WouldWaitError:
            raise
        except Exception as error:
            # What lies in its segments makes no sense; the others must not suffer for it.
            logger.debug("%s", log.name, exc_info=True)
            self._books.set_aside(log, f"it cannot be looked at: {error!r}")
            return None
        if to_clean.checkpoint_is_invalid:
            self._checkpoints.put(log.key, to_clean.first_dirty_offset)
        return to_clean
