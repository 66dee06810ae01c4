"""Recovery of one log in another process: what it is told, and what it does.

The process leaves the log's files as a start finds them after a clean stop, but for what is not
synced. It may be killed at any time, for the next start knows of an unclean stop still.
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
    """A log to recover; it can be told to another process."""

    directory: Path
    config: TopicConfig
    recovery_point: int
    log_start_offset: int
    producer_id_expiration_ms: int
    now_ms: int


def recover(task: RecoveryTask, files: Files, report: Callable[[str], None]) -> RecentBatches:
    """Recover the log, and leave its files so that it can be opened with what this gives.

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
        deletions=Deletions(),  # whoever opens it next removes what is no longer needed
        report=report,
    )
    return recent_batches(load_log(source).producers)
