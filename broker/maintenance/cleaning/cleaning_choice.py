"""Chooses the logs to clean, the dirtiest first. Kafka: grabFilthiestCompactedLog."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from heapq import heappop, heappush
from operator import itemgetter

from odradek.broker.disk.cold_reads import ColdReads
from odradek.storage.cleaning.cleaner_checkpoints import CleanerCheckpoints
from odradek.storage.cleaning.plan import LogToClean, assess
from odradek.storage.files import WouldWaitError
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager

from .cleaner_state import CleanerState

logger = logging.getLogger("odradek.cleaner")

LOGS_PER_TURN = 50  # logs checked before other tasks of the event loop run
MAX_NAMED = 100


class CleaningChoice:
    """Checks all logs. `checked_at_ms`: when it did last, by the timer clock.

    `max_dirty_ratio` and `dirtiest`, the MAX_NAMED dirtiest logs, are what it saw then.
    """

    def __init__(
        self,
        manager: LogManager,
        checkpoints: CleanerCheckpoints,
        state: CleanerState,
        cold_reads: ColdReads,
        now_ms: Callable[[], int],
        timer_ms: Callable[[], int],
    ) -> None:
        self.checked_at_ms: int | None = None
        self.max_dirty_ratio = 0.0
        self.dirtiest: Sequence[tuple[PartitionLog, LogToClean]] = ()
        self._manager = manager
        self._checkpoints = checkpoints
        self._state = state
        self._cold_reads = cold_reads
        self._now_ms = now_ms
        self._timer_ms = timer_ms

    async def due(
        self, is_free: Callable[[PartitionLog], bool], *, however_clean: bool = False
    ) -> list[tuple[PartitionLog, LogToClean]]:
        """List the free logs that are due, with their state at the time they were checked.

        `however_clean`: all logs with a dirty segment are due.

        Other tasks ran in between, so the caller must check `is_cleanable` again. A round covers
        what was in the log when it was checked.
        """
        now_ms, checked_at_ms = self._now_ms(), self._timer_ms()
        dirty: list[tuple[float, PartitionLog, LogToClean]] = []
        max_dirty_ratio = 0.0
        dirtiest: list[tuple[float, int, PartitionLog, LogToClean]] = []  # a heap
        for number, log in enumerate(self._manager.logs()):
            if number % LOGS_PER_TURN == LOGS_PER_TURN - 1:
                await asyncio.sleep(0)
            to_clean = await self._cold_reads.look_up(partial(self._assess, log, is_free, now_ms))
            if to_clean is not None and to_clean.total_bytes:
                heappush(dirtiest, (to_clean.cleanable_ratio, -number, log, to_clean))
                if len(dirtiest) > MAX_NAMED:
                    heappop(dirtiest)
                max_dirty_ratio = max(max_dirty_ratio, to_clean.cleanable_ratio)
                if to_clean.is_due(0.0 if however_clean else log.config.min_cleanable_dirty_ratio):
                    dirty.append((to_clean.cleanable_ratio, log, to_clean))
        self.checked_at_ms, self.max_dirty_ratio = checked_at_ms, max_dirty_ratio
        self.dirtiest = [(log, to_clean) for *_, log, to_clean in sorted(dirtiest, reverse=True)]
        dirty.sort(key=itemgetter(0), reverse=True)
        return [(log, to_clean) for _, log, to_clean in dirty]

    def is_cleanable(self, log: PartitionLog) -> bool:
        """Whether the log may be cleaned at all, however dirty it is."""
        return (
            log.config.compact
            and log.is_online
            and len(log.segments) > 1
            and not self._manager.is_moving(log.key)
            and not self._state.must_wait(log.key)
            and self._manager.find(*log.key) is log
        )

    def _assess(
        self, log: PartitionLog, is_free: Callable[[PartitionLog], bool], now_ms: int
    ) -> LogToClean | None:
        if not (self.is_cleanable(log) and is_free(log)):
            return None
        try:
            to_clean = assess(log, self._checkpoints.get(log.key), now_ms)
        except OSError as error:
            self._state.disk_failed(log, error)
            return None
        except WouldWaitError:
            raise
        except Exception as error:
            # Damaged segments: the other logs must still be cleaned.
            logger.debug("%s", log.name, exc_info=True)
            self._state.mark_uncleanable(log, f"it cannot be read: {error!r}")
            return None
        if to_clean.checkpoint_is_invalid:
            self._checkpoints.put(log.key, to_clean.first_dirty_offset)
        return to_clean
