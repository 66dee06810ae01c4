"""Periodic tasks: what the broker does at fixed intervals, and the settings of the intervals.

A task runs on the event loop and does its disk work in the disk threads. When one fails, the error
is logged and the task runs again after its interval. All stop before the broker stops.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from msgspec import Struct

from odradek.broker.broker import Broker
from odradek.storage.deletions import remove_paths

logger = logging.getLogger("odradek.periodic_tasks")

REMOVE_DELETED_EVERY_MS = 1_000
CHECK_SPACE_EVERY_MS = 1_000
COLLECT_GARBAGE_EVERY_MS = 1_000
RELEASE_FILES_EVERY_MS = 30_000
CHECK_SNAPSHOT_EVERY_MS = 1_000
CLEAN_METADATA_EVERY_MS = 60_000
CHECK_CERTIFICATES_EVERY_MS = 5_000
WARN_OF_EXPIRY_EVERY_MS = 24 * 3_600_000
REFRESH_KEYS_EVERY_MS = 1_000
EXPIRE_TELEMETRY_EVERY_MS = 10_000
# An interval of a year or more means "never": Kafka's way to turn a periodic task off.
NEVER_MS = 365 * 24 * 3_600_000


# The name, the interval, when it runs first (0: after the interval), and the function.
_Task = tuple[str, int, int, Callable[[], object]]


class PeriodicTask(Struct, frozen=True, kw_only=True):
    """A function to call at an interval; if `run` returns an awaitable, it is awaited."""

    name: str
    every_ms: int
    first_after_ms: int
    run: Callable[[], object]


class PeriodicTasks:
    """Runs each task at its interval, from the moment this object is made until `close`."""

    def __init__(self, tasks: list[PeriodicTask]) -> None:
        self._tasks = tasks
        self._running = [asyncio.ensure_future(self._repeat(task)) for task in tasks]

    async def _repeat(self, task: PeriodicTask) -> None:
        await asyncio.sleep(task.first_after_ms / 1000)
        while True:
            await _run(task)
            await asyncio.sleep(task.every_ms / 1000)

    async def run_now(self) -> None:
        """Run every task once, without waiting for its interval."""
        for task in self._tasks:
            await _run(task)

    async def close(self) -> None:
        """Stop all tasks; one that is running is cancelled at its next await."""
        for running in self._running:
            running.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)


async def _run(task: PeriodicTask) -> None:
    try:
        result = task.run()
        if isinstance(result, Awaitable):
            await result
    except asyncio.CancelledError:
        raise
    except Exception:
        # The root of a background task: the next run may succeed.
        logger.exception("%s failed", task.name)


def periodic_tasks_of(broker: Broker) -> list[PeriodicTask]:
    """List every periodic task of the broker, except those whose interval means "never"."""
    return [
        PeriodicTask(name=name, every_ms=every_ms, first_after_ms=first_ms or every_ms, run=run)
        for name, every_ms, first_ms, run in (*_tasks_of_logs(broker), *_tasks_of_metadata(broker))
        if every_ms < NEVER_MS
    ]


def _tasks_of_metadata(broker: Broker) -> list[_Task]:
    return [
        ("writing metadata snapshots", CHECK_SNAPSHOT_EVERY_MS, 0,
         broker.metadata_log.snapshots.write_if_due),
        ("cleaning the metadata log", CLEAN_METADATA_EVERY_MS, 0,
         broker.metadata_log.snapshots.clean),
        ("removing expired delegation tokens",
         broker.config.delegation_token_expiry_check_interval_ms, 0, broker.remove_expired_tokens),
        ("loading what coordinators could not read", CHECK_SPACE_EVERY_MS, 0,
         broker.coordinators.logs.retry_loads),
        ("forgetting clients of telemetry", EXPIRE_TELEMETRY_EVERY_MS, 0,
         broker.telemetry.remove_expired),
    ]  # fmt: skip


def _tasks_of_logs(broker: Broker) -> list[_Task]:
    config = broker.config
    initial_ms = config.log_initial_task_delay_ms
    manager = broker.log_manager
    disk, cleaner = broker.disk, broker.maintenance.cleaner

    async def remove_deleted() -> None:
        while due := manager.deletions.take_due():
            failed = await disk.run(remove_paths, broker.log_manager.files, due)
            manager.deletions.note(due, failed)

    async def expire_producers() -> None:
        for log in manager.logs():
            # Their last batch is compared with the wall clock.
            for _ in log.producers.remove_expired_in_parts(broker.clock.now_ms()):
                await asyncio.sleep(0)
            for _ in log.producers.remove_expired_verifications(broker.clock.timer_ms()):
                await asyncio.sleep(0)
            await asyncio.sleep(0)

    async def release_files() -> None:
        for _ in iter(manager.release_inactive_segments, False):
            await asyncio.sleep(0)

    tasks: list[_Task] = [
        ("retention", config.log_retention_check_interval_ms, initial_ms, cleaner.apply_retention),
        ("flushing", config.log_flush_scheduler_interval_ms, initial_ms,
         broker.log_syncs.flush_due_by_time),
        ("writing recovery points", config.log_flush_offset_checkpoint_interval_ms, initial_ms,
         lambda: disk.run(manager.write_recovery_points)),
        ("writing log start offsets", config.log_flush_start_offset_checkpoint_interval_ms,
         initial_ms, lambda: disk.run(manager.write_log_starts)),
        ("writing high watermarks", config.replica_high_watermark_checkpoint_interval_ms, 0,
         lambda: disk.run(manager.write_high_watermarks)),
        ("expiring producer ids", config.producer_id_expiration_check_interval_ms, 0,
         expire_producers),
        ("removing deleted files", REMOVE_DELETED_EVERY_MS, 0, remove_deleted),
        ("checking free space", CHECK_SPACE_EVERY_MS, 0, broker.disk_space.check_directories),
        ("fetching the keys of token issuers", REFRESH_KEYS_EVERY_MS, 0,
         lambda: broker.security.logins.refresh_keys(disk)),
        ("collecting garbage", COLLECT_GARBAGE_EVERY_MS, 0,
         broker.turns.collections.collect_if_due),
        ("releasing files", RELEASE_FILES_EVERY_MS, 0, release_files),
    ]  # fmt: skip
    if broker.security.tls is not None:
        tasks += [
            ("checking certificates for changes", CHECK_CERTIFICATES_EVERY_MS, 0,
             broker.security.tls.check_files),
            ("checking certificates for expiry", WARN_OF_EXPIRY_EVERY_MS, 0,
             broker.security.tls.warn_of_expiry),
        ]  # fmt: skip
    return tasks
