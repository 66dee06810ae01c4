"""The log cleaner: which log is cleaned when, and what follows a failed round.

Every log.cleaner.backoff.ms, and after each round, it checks all compacted logs. Those that are due
are cleaned, the dirtiest first, in processes (CleanerPool): cleaning walks records in Python, which
would block the event loop. The cleaner also applies retention to compacted logs, never during a
round; that of the other logs runs at intervals (`apply_retention`). `paused` stops cleaning and
retention of logs that are being deleted. A log that moves is not cleaned, but keeps its retention.

A log whose round failed may become uncleanable until a restart; the others go on. See CleanerState.

Kafka: LogCleaner, LogCleanerManager. There an uncleanable log gets no retention either.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.broker.maintenance.retention_check import RetentionCheck
from odradek.broker.processes.child_process import WorkerLostError
from odradek.broker.processes.messages import CleaningEnding, CleaningFailed, SplitUp
from odradek.broker.turns.slices import SliceRunner, Slices
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.protocol.errors import ApiError
from odradek.storage.cleaning.cleaner_checkpoints import CleanerCheckpoints, Offsets
from odradek.storage.cleaning.plan import LogToClean, assess
from odradek.storage.cleaning.task import CleaningResult
from odradek.storage.data_directory import DataDirectory
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager
from odradek.storage.topic_partition import TopicPartition

from .cleaner_pool import CleanerPool
from .cleaner_state import CleanerState
from .cleaner_status import CleanerStatus, CurrentRound, FinishedRound, explain_due
from .cleaning_choice import CleaningChoice
from .cleaning_round import SILENCE_LIMIT_SECONDS, CleaningRound, RoundCancelledError

logger = logging.getLogger("odradek.cleaner")

MIN_PAUSE_SECONDS = 0.01


class LogCleaner:
    """Runs from `start` to `close`, on the event loop; only the cleaning is in processes.

    `retention_checked_ms`: when `apply_retention` ended last, by the wall clock.
    """

    def __init__(  # noqa: PLR0913 # the parts of the broker that it connects
        self,
        *,
        manager: LogManager,
        retention: RetentionCheck,
        checkpoints: CleanerCheckpoints,
        pool: CleanerPool,
        disk: DiskExecutor,
        slices: SliceRunner,
        config: Callable[[], BrokerConfig],
        now_ms: Callable[[], int],
        timer_ms: Callable[[], int],
        silence_limit_seconds: float = SILENCE_LIMIT_SECONDS,
    ) -> None:
        self._manager = manager
        self.retention = retention
        self._checkpoints = checkpoints
        self._pool = pool
        self._disk = disk
        self._slices = slices
        self._config = config
        self._now_ms = now_ms
        self._silence_limit_seconds = silence_limit_seconds
        self._main: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._saving = asyncio.Lock()
        self._rounds: dict[TopicPartition, tuple[CleaningRound, asyncio.Task[None]]] = {}
        self._paused: Counter[TopicPartition] = Counter()
        self.retention_checked_ms: int | None = None
        self._state = CleanerState(manager, checkpoints, config, timer_ms)
        self._choice = CleaningChoice(
            manager, checkpoints, self._state, retention.cold_reads, now_ms, timer_ms
        )

    # -- start and stop ---------------------------------------------------------------------------

    def start(self) -> None:
        """Start cleaning, unless log.cleaner.enable is false."""
        if self._config().log_cleaner_enable:
            self._main = asyncio.ensure_future(self._run())
        else:
            logger.warning("log.cleaner.enable is false: compacted topics only grow")

    async def close(self) -> None:
        """Cancel the current rounds and end the processes."""
        if self._main is not None:
            self._main.cancel()
            await asyncio.wait([self._main])
        await self.cancel_rounds(list(self._rounds))
        await self.retention.close()
        await self._pool.close()

    def update_config(self, _: BrokerConfig) -> None:
        """Apply changed settings of the broker."""
        self._pool.update()
        self._wake.set()

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._check_logs()
            except Exception:
                # The root of a background task: the next check may succeed.
                logger.exception("checking for logs to clean failed")
            pause_seconds = self._config().log_cleaner_backoff_ms / 1000
            try:
                async with asyncio.timeout(max(pause_seconds, MIN_PAUSE_SECONDS)):
                    await self._wake.wait()
            except TimeoutError:
                continue

    # -- other users of the logs ------------------------------------------------------------------

    @asynccontextmanager
    async def paused(
        self, partitions: Iterable[TopicPartition], step: Step = no_step
    ) -> AsyncIterator[None]:
        """Stop cleaning and retention of these logs within the context.

        After it, those that no longer exist are forgotten, in the checkpoint files too.
        """
        keys: list[TopicPartition] = []
        try:
            for key in stepping(partitions, step):
                self._paused[key] += 1
                keys.append(key)
            await self.cancel_rounds(keys)
            yield
        finally:
            for key in stepping(keys, step):
                self._paused[key] -= 1
                if not self._paused[key]:
                    del self._paused[key]
            self._state.forget_deleted(step)
            await self.save()

    async def cancel_rounds(self, partitions: Iterable[TopicPartition]) -> None:
        """Cancel the rounds of these logs. Returns when no round and no retention uses them."""
        keys = list(partitions)
        found = [self._rounds[key] for key in keys if key in self._rounds]
        for round_, _ in found:
            round_.cancel()
        if found:
            await asyncio.wait([task for _, task in found])
        await self.retention.wait_for(keys)

    async def apply_retention(self) -> None:
        """Apply retention to the logs that are not compacted: log.retention.check.interval.ms."""
        await self.retention.run(self.is_checked_at_intervals)
        self.retention_checked_ms = self._now_ms()

    def is_checked_at_intervals(self, log: PartitionLog) -> bool:
        """Whether `apply_retention` may delete from the log now."""
        return not log.config.compact and self._is_free(log)

    def _is_checked_before_cleaning(self, log: PartitionLog) -> bool:
        """Whether `_check_logs` may delete from the log now."""
        return log.config.compact and self._is_free(log)

    def _is_free(self, log: PartitionLog) -> bool:
        key = log.key
        is_taken = key in self._rounds or key in self._paused
        return not is_taken and not self.retention.removes_from(key)

    def directory_failed(self, directory: DataDirectory) -> None:
        """Cancel the rounds in a directory that went offline."""
        for round_, _ in self._rounds.values():
            if self._manager.directory_of(round_.log) is directory:
                round_.cancel()

    def log_recovered(self, log: PartitionLog) -> None:
        """Check the cleaner checkpoint of a log that was opened after the start."""
        self._checkpoints.check(log)

    def log_truncated(self, log: PartitionLog) -> None:
        """Count what is appended from now on as dirty. A round of the log ends by itself."""
        self._checkpoints.truncate(log.key, log.log_end_offset)

    async def _check_logs(self) -> None:
        await self._slices.run(self._forget_deleted)
        await self.retention.run(self._is_checked_before_cleaning)
        for log, to_clean in await self._choice.due(self._is_free):
            if len(self._rounds) >= self._pool.max_workers:
                break
            if self._choice.is_cleanable(log) and self._is_free(log):
                self._start_round(log, to_clean)
        await self.save()

    async def clean_now(self) -> None:
        """Clean the closed segments of all compacted logs, however clean they are.

        Returns when they are cleaned, or their rounds have failed.
        """
        for log, to_clean in await self._choice.due(self._is_free, however_clean=True):
            if self._choice.is_cleanable(log) and self._is_free(log):
                self._start_round(log, to_clean)
                _, task = self._rounds[log.key]
                await asyncio.wait([task])

    # -- a round ----------------------------------------------------------------------------------

    def _start_round(self, log: PartitionLog, to_clean: LogToClean) -> None:
        round_ = CleaningRound(
            log,
            to_clean,
            manager=self._manager,
            disk=self._disk,
            slices=self._slices,
            now_ms=self._now_ms,
            silence_limit_seconds=self._silence_limit_seconds,
        )
        task = asyncio.ensure_future(self._run_round(log.key, round_))
        self._rounds[log.key] = round_, task

    async def _run_round(self, key: TopicPartition, round_: CleaningRound) -> None:
        has_cleaned = False
        try:
            has_cleaned = await self._clean(round_)
        except RoundCancelledError:
            logger.debug("%s: the round was cancelled", round_.log.name)
        except ApiError as error:
            self._state.last_error = error.message  # already logged by the log
        except Exception as error:
            # The root of a background task: only this log becomes uncleanable.
            logger.exception("%s: cleaning failed", round_.log.name)
            self._state.mark_uncleanable(round_.log, repr(error))
        finally:
            del self._rounds[key]
            if has_cleaned:
                self._wake.set()

    async def _clean(self, round_: CleaningRound) -> bool:
        """Run the round in a process. Returns whether the log is cleaner than before."""
        try:
            worker = await self._pool.take()
        except WorkerLostError as error:
            self._state.retry_later(round_.log, str(error))
            return False
        ending: CleaningEnding | None = None
        try:
            ending = await round_.run(worker)
        except WorkerLostError as error:
            self._state.mark_uncleanable(round_.log, str(error))
        finally:
            if ending is None:
                await worker.end()
            self._pool.give_back(worker, is_idle=ending is not None)
            if not isinstance(ending, CleaningResult):
                await round_.tidy_up()
        return ending is not None and await self._handle_ending(round_, ending)

    async def _handle_ending(self, round_: CleaningRound, ending: CleaningEnding) -> bool:
        log = round_.log
        match ending:
            case CleaningResult():
                return await self._note_cleaned(round_, ending)
            case SplitUp(reason):
                logger.info("%s: a segment was split: %s", log.name, reason)
                return True
            case CleaningFailed(reason, None, traceback):
                self._state.mark_uncleanable(log, reason)
                if traceback is not None:
                    logger.error("%s", traceback)
            case CleaningFailed(_, OSError() as error, _):
                self._state.disk_failed(log, error)
        return False

    async def _note_cleaned(self, round_: CleaningRound, result: CleaningResult) -> bool:
        log, first = round_.log, round_.to_clean.first_dirty_offset
        finished = FinishedRound(
            name=log.name,
            first_offset=first,
            end_offset=result.end_offset,
            seconds=asyncio.get_running_loop().time() - round_.began_s,
            stats=result.stats,
        )
        self._state.note_finished(finished, result.unreadable)
        self._checkpoints.put(log.key, result.end_offset)
        await self.save()
        if result.end_offset <= first:
            self._state.retry_later(log, f"the last round made no progress after offset {first}")
        return result.end_offset > first

    async def save(self) -> None:
        """Write the checkpoint files whose content has changed."""
        async with self._saving:
            for directory, offsets in await self._slices.run(self._unsaved):
                try:
                    await self._disk.run(self._checkpoints.save, directory, offsets)
                except OSError as error:
                    self._manager.on_directory_error(directory, error)

    async def _forget_deleted(self, slices: Slices) -> None:
        self._state.forget_deleted(slices.step)

    async def _unsaved(self, slices: Slices) -> list[tuple[DataDirectory, Offsets]]:
        return self._checkpoints.unsaved(slices.step)

    # -- status -----------------------------------------------------------------------------------

    def status(self) -> CleanerStatus:
        """Return the current status."""
        state, choice = self._state, self._choice
        return CleanerStatus(
            is_enabled=self._main is not None,
            checked_at_ms=choice.checked_at_ms,
            max_dirty_ratio=choice.max_dirty_ratio,
            cleaning=[
                CurrentRound(key, round_.moved_bytes) for key, (round_, _) in self._rounds.items()
            ],
            uncleanable=state.uncleanable_by_directory(),
            dirtiest=choice.dirtiest,
            last_error=state.last_error,
            last_round=state.last_round,
            worker_pids=self._pool.pids,
        )

    def why_not_cleaned(self, topic: str, partition: int) -> str:
        """Say in one line why a log is not cleaned now. Raises ApiError: no such log."""
        log = self._manager.get(topic, partition)
        key = log.key
        uncleanable = self._state.uncleanable
        for holds, reason in (
            (self._main is None, "the log cleaner is not running: log.cleaner.enable is false"),
            (not log.config.compact, "its cleanup.policy has no compact"),
            (not log.is_online, "its log directory is offline"),
            (key in self._rounds, "it is being cleaned"),
            (key in self._paused, "it is being deleted"),
            (self._manager.is_moving(key), "it is being moved to another log directory"),
            (key in uncleanable, f"it is not cleaned until a restart: {uncleanable.get(key)}"),
        ):
            if holds:
                return reason
        return explain_due(self.assess(log), log.config)

    def assess(self, log: PartitionLog) -> LogToClean:
        """Say how dirty a log is, and what could be cleaned now. Raises OSError."""
        return assess(log, self._checkpoints.get(log.key), self._now_ms())
