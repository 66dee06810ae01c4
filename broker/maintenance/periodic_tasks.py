"""The list of what the broker does by the clock, with the keys of server.properties that say when.

What only looks at memory runs on the loop; what waits for a disk goes to the disk threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.storage.deletions import remove_paths

from .housekeeping import Chore

if TYPE_CHECKING:
    from odradek.broker.broker import Broker

REMOVE_DELETED_EVERY_MS = 1_000
LOOK_FOR_SPACE_EVERY_MS = 1_000
RELEASE_FILES_EVERY_MS = 30_000
LOOK_FOR_SNAPSHOT_EVERY_MS = 1_000
CLEAN_METADATA_EVERY_MS = 60_000
MAX_CLOSED_SEGMENTS_OPEN = 1_000
# An interval that no process lives to see: Kafka's way to say "never".
NEVER_MS = 365 * 24 * 3_600_000


def chores_of(broker: Broker) -> list[Chore]:
    """Every chore, each in its rhythm; those whose rhythm is "never" are left out."""
    config = broker.config
    initial_ms = config.log_initial_task_delay_ms
    manager, now_ms = broker.log_manager, broker.now_ms
    disk, cleaner = broker.disk, broker.log_cleaner

    async def remove_deleted() -> None:
        due = manager.deletions.take_due(now_ms())
        failed = await disk.run(remove_paths, broker.files, due)
        manager.deletions.note(due, failed, now_ms())

    async def write_recovery_points() -> None:
        await disk.run(manager.write_recovery_points)

    async def write_log_starts() -> None:
        await disk.run(manager.write_log_starts)

    async def write_high_watermarks() -> None:
        await disk.run(manager.write_high_watermarks)

    wanted = [
        ("retention", config.log_retention_check_interval_ms, initial_ms,
         lambda: cleaner.retention.run(cleaner.leaves_to_retention)),
        ("flushing", config.log_flush_scheduler_interval_ms, initial_ms,
         broker.log_syncs.flush_by_the_clock),
        ("writing recovery points", config.log_flush_offset_checkpoint_interval_ms, initial_ms,
         write_recovery_points),
        ("writing log start offsets", config.log_flush_start_offset_checkpoint_interval_ms,
         initial_ms, write_log_starts),
        ("writing high watermarks", config.replica_high_watermark_checkpoint_interval_ms, 0,
         write_high_watermarks),
        ("expiring producer ids", config.producer_id_expiration_check_interval_ms, 0,
         lambda: manager.expire_producers(now_ms())),
        ("writing metadata snapshots", LOOK_FOR_SNAPSHOT_EVERY_MS, 0,
         broker.metadata_snapshots.write_if_due),
        ("cleaning the metadata log", CLEAN_METADATA_EVERY_MS, 0, broker.metadata_snapshots.clean),
        ("removing deleted files", REMOVE_DELETED_EVERY_MS, 0, remove_deleted),
        ("looking for free space", LOOK_FOR_SPACE_EVERY_MS, 0, broker.disk_space.look),
        ("releasing files", RELEASE_FILES_EVERY_MS, RELEASE_FILES_EVERY_MS,
         lambda: manager.release_closed_segments(MAX_CLOSED_SEGMENTS_OPEN)),
    ]  # fmt: skip
    return [
        Chore(name=name, every_ms=every_ms, first_after_ms=first_ms or every_ms, run=run)
        for name, every_ms, first_ms, run in wanted
        if every_ms < NEVER_MS
    ]
