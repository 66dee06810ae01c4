"""Recovery of one log in another process: the task, and the function that runs it.

The process leaves the log's files as after a clean stop, except that they are not synced. It may be
killed at any time: until a clean stop, every start recovers again.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from odradek.config.topic_config import TopicConfig
from odradek.storage.deletions import Deletions
from odradek.storage.files import Files

from .log_source import LogSource
from .producer_recovery import RecentBatches, recent_batches
from .recovery import load_log


class RecoveryTask(NamedTuple):
    """A log to recover. Can be pickled."""

    directory: Path
    config: TopicConfig
    recovery_point: int
    log_start_offset: int
    producer_id_expiration_ms: int
    now_ms: int


def recover(task: RecoveryTask, files: Files, report: Callable[[str], None]) -> RecentBatches:
    """Recover the log's files. Returns the recent batches, which opening the log needs.

    Raises OSError, CorruptRecordError.
    """
    source = LogSource(
        files=files,
        directory=task.directory,
        config=task.config,
        now_ms=task.now_ms,
        had_clean_shutdown=False,
        recovery_point=task.recovery_point,
        log_start_offset=task.log_start_offset,
        producer_id_expiration_ms=task.producer_id_expiration_ms,
        # The next open removes the files that are no longer needed.
        deletions=Deletions(lambda: 0),
        report=report,
    )
    producers = load_log(source).producers
    producers.take_snapshot()  # so that the next open need not read the batches
    return recent_batches(producers)
