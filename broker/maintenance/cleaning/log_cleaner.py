"""The log cleaner as a service: which log is cleaned when, and what becomes of it if that fails.

Every log.cleaner.backoff.ms, and whenever a round is done, it looks at all compacted logs; those
that are due are cleaned, the dirtiest first, in processes of their own (CleanerPool): cleaning
walks records in Python, which would cost the loop its latency. Compacted logs also get their
retention here, never while they are cleaned; `paused` keeps both away from logs that somebody
deletes or moves.

A log whose round failed is set aside until a restart, and the others go on: see CleanerBooks.

Kafka: LogCleaner, LogCleanerManager. There a log that is set aside gets no retention either.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from odradek.broker.maintenance.workers.cleaner_messages import CleaningFailed, Ending, SplitUp
from odradek.protocol.errors import ApiError
from odradek.storage.cleaning.plan import LogToClean, assess
from odradek.storage.cleaning.task import CleaningResult

from .cleaner_state import CleanerBooks
from .cleaner_status import CleanerStatus, FinishedRound, RoundUnderWay, why_not_due
from .cleaner_worker import WorkerLostError
from .cleaning_choice import CleaningChoice
from .cleaning_round import PATIENCE_SECONDS, CleaningRound, RoundCancelledError

if TYPE_CHECKING:
    from odradek.broker.disk.disk_executor import DiskExecutor
    from odradek.broker.maintenance.retention_check import RetentionCheck
    from odradek.config.broker_config import BrokerConfig
    from odradek.storage.checkpoints import TopicPartition
    from odradek.storage.cleaning.cleaner_checkpoints import CleanerCheckpoints
    from odradek.storage.directories.data_directory import DataDirectory
    from odradek.storage.log import PartitionLog
    from odradek.storage.log_manager import LogManager

    from .cleaner_pool import CleanerPool

logger = logging.getLogger("odradek.cleaner")

SHORTEST_PAUSE_SECONDS = 0.01


class LogCleaner:
    """Runs from `start` to `close`. Everything happens on the loop but the cleaning itself."""

    def __init__(
        self,
        *,
        manager: LogManager,
        retention: RetentionCheck,
        checkpoints: CleanerCheckpoints,
        pool: CleanerPool,
        disk: DiskExecutor,
        config: Callable[[], BrokerConfig],
        now_ms: Callable[[], int],
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._manager = manager
        self.retention = retention
        self._checkpoints = checkpoints
        self._pool = pool
        self._disk = disk
        self._config = config
        self._now_ms = now_ms
        self._patience_seconds = patience_seconds
        self._main: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._saving = asyncio.Lock()
        self._rounds: dict[TopicPartition, tuple[CleaningRound, asyncio.Task[None]]] = {}
        self._paused: Counter[TopicPartition] = Counter()
        self._books = CleanerBooks(manager, checkpoints, config, now_ms)
        self._choice = CleaningChoice(
            manager, checkpoints, self._books, retention.cold_reads, now_ms
        )

    # -- life -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to clean, unless log.cleaner.enable is false."""
        if self._config().log_cleaner_enable:
            self._main = asyncio.ensure_future(self._run())
        else:
            logger.warning("log.cleaner.enable is false: compacted topics only grow")

    async def close(self) -> None:
        """Call off what is under way, and end the processes."""
        if self._main is not None:
            self._main.cancel()
            await asyncio.wait([self._main])
        await self.call_off(list(self._rounds))
        await self.retention.close()
        await self._pool.close()

    def update_config(self, _: BrokerConfig) -> None:
        """The broker's settings have changed."""
        self._pool.update()
        self._wake.set()

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._look()
            except Exception:
                # The root of a background task: the next look may succeed.
                logger.exception("looking for logs to clean failed")
            pause_seconds = self._config().log_cleaner_backoff_ms / 1000
            try:
                async with asyncio.timeout(max(pause_seconds, SHORTEST_PAUSE_SECONDS)):
                    await self._wake.wait()
            except TimeoutError:
                continue

    # -- who else needs the logs ------------------------------------------------------------------

    @asynccontextmanager
    async def paused(self, partitions: Iterable[TopicPartition]) -> AsyncIterator[None]:
        """Inside, these logs are not cleaned and get no retention from here.

        Behind it, those that are gone are forgotten, on the disk too.
        """
        keys = list(partitions)
        self._paused.update(keys)
        try:
            await self.call_off(keys)
            yield
        finally:
            self._paused.subtract(keys)
            self._paused += Counter()  # without those at zero
            self._books.forget_gone()
            await self.save()

    async def call_off(self, partitions: Iterable[TopicPartition]) -> None:
        """End rounds under way of these logs; returns when nothing of them is left to be seen.

        And when no retention renames files of theirs.
        """
        keys = list(partitions)
        found = [self._rounds[key] for key in keys if key in self._rounds]
        for round_, _ in found:
            round_.cancel()
        if found:
            await asyncio.wait([task for _, task in found])
        await self.retention.wait_for(keys)

    def leaves_to_retention(self, log: PartitionLog) -> bool:
        """Whether the broker's own check (log.retention.check.interval.ms) may delete from it."""
        return not log.config.compact and self._is_free(log)

    def _gets_retention_here(self, log: PartitionLog) -> bool:
        return log.config.compact and self._is_free(log)

    def _is_free(self, log: PartitionLog) -> bool:
        key = log.key
        is_taken = key in self._rounds or key in self._paused
        return not is_taken and not self.retention.removes_from(key)

    def directory_failed(self, directory: DataDirectory) -> None:
        """Its logs are offline: rounds in it have no sense any more."""
        for round_, _ in self._rounds.values():
            if self._manager.directory_of(round_.log) is directory:
                round_.cancel()

    def log_recovered(self, log: PartitionLog) -> None:
        """A log was opened after the start."""
        self._checkpoints.check(log)

    async def _look(self) -> None:
        self._books.forget_gone()
        await self.retention.run(self._gets_retention_here)
        for log, to_clean in await self._choice.due(self._is_free):
            if len(self._rounds) >= self._pool.most:
                break
            if self._choice.may_be(log) and self._is_free(log):
                self._begin(log, to_clean)
        await self.save()

    # -- a round ----------------------------------------------------------------------------------

    def _begin(self, log: PartitionLog, to_clean: LogToClean) -> None:
        round_ = CleaningRound(
            log,
            to_clean,
            manager=self._manager,
            disk=self._disk,
            now_ms=self._now_ms,
            patience_seconds=self._patience_seconds,
        )
        task = asyncio.ensure_future(self._see_through(log.key, round_))
        self._rounds[log.key] = round_, task

    async def _see_through(self, key: TopicPartition, round_: CleaningRound) -> None:
        has_worked = False
        try:
            has_worked = await self._carry_out(round_)
        except RoundCancelledError:
            logger.debug("%s: the round was called off", round_.log.name)
        except ApiError as error:
            self._books.last_error = error.message  # the log has said so
        except Exception as error:
            # The root of a background task: only this log is lost to us.
            logger.exception("%s: cleaning failed", round_.log.name)
            self._books.set_aside(round_.log, repr(error))
        finally:
            del self._rounds[key]
            if has_worked:
                self._wake.set()

    async def _carry_out(self, round_: CleaningRound) -> bool:
        """Whether the log is cleaner than before."""
        try:
            worker = await self._pool.take()
        except WorkerLostError as error:
            self._books.try_later(round_.log, str(error))
            return False
        ending: Ending | None = None
        try:
            ending = await round_.run(worker)
        except WorkerLostError as error:
            self._books.set_aside(round_.log, str(error))
        finally:
            if ending is None:
                await worker.end()
            self._pool.give_back(worker, is_idle=ending is not None)
            if not isinstance(ending, CleaningResult):
                await round_.tidy_up()
        return ending is not None and await self._has_ended(round_, ending)

    async def _has_ended(self, round_: CleaningRound, ending: Ending) -> bool:
        log = round_.log
        match ending:
            case CleaningResult():
                return await self._was_cleaned(round_, ending)
            case SplitUp(reason):
                logger.info("%s: a segment was split: %s", log.name, reason)
                return True
            case CleaningFailed(reason, None, traceback):
                self._books.set_aside(log, reason)
                if traceback is not None:
                    logger.error("%s", traceback)
            case CleaningFailed(_, OSError() as error, _):
                self._books.disk_failed(log, error)
        return False

    async def _was_cleaned(self, round_: CleaningRound, result: CleaningResult) -> bool:
        log, first = round_.log, round_.to_clean.first_dirty_offset
        finished = FinishedRound(
            name=log.name,
            first_offset=first,
            end_offset=result.end_offset,
            seconds=(self._now_ms() - round_.began_ms) / 1000,
            stats=result.stats,
        )
        self._books.finished(finished, result.unreadable)
        self._checkpoints.put(log.key, result.end_offset)
        await self.save()
        if result.end_offset <= first:
            self._books.try_later(log, f"the last round came no further than offset {first}")
        return result.end_offset > first

    async def save(self) -> None:
        """Write the checkpoints that are no longer true."""
        async with self._saving:
            for directory, offsets in self._checkpoints.unsaved():
                try:
                    await self._disk.run(self._checkpoints.save, directory, offsets)
                except OSError as error:
                    self._manager.on_directory_error(directory, error)

    # -- what can be seen -------------------------------------------------------------------------

    def status(self) -> CleanerStatus:
        """The cleaner now."""
        books, choice = self._books, self._choice
        return CleanerStatus(
            is_enabled=self._main is not None,
            looked_at_ms=choice.looked_at_ms,
            max_dirty_ratio=choice.max_dirty_ratio,
            cleaning=[
                RoundUnderWay(key, round_.began_ms, round_.moved_bytes)
                for key, (round_, _) in self._rounds.items()
            ],
            uncleanable=books.uncleanable_by_directory(),
            last_error=books.last_error,
            last_round=books.last_round,
            worker_pids=self._pool.pids,
        )

    def why_not_cleaned(self, topic: str, partition: int) -> str:
        """Why a log is not cleaned now, in one line. Raises ApiError where there is none."""
        log, key = self._manager.get(topic, partition), (topic, partition)
        set_aside = self._books.uncleanable
        for holds, reason in (
            (self._main is None, "the log cleaner does not run: log.cleaner.enable is false"),
            (not log.config.compact, "its cleanup.policy has no compact"),
            (not log.is_online, "its log directory is offline"),
            (key in self._rounds, "it is being cleaned"),
            (key in self._paused, "it is being deleted"),
            (self._manager.is_moving(key), "it is being moved to another log directory"),
            (key in set_aside, f"it is set aside: {set_aside.get(key)}"),
        ):
            if holds:
                return reason
        return why_not_due(assess(log, self._checkpoints.get(key), self._now_ms()), log.config)
