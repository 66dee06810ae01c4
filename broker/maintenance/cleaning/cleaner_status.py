"""The log cleaner's status, for metrics, tools and explanations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from odradek.config.topic_config import TopicConfig
from odradek.storage.cleaning.plan import LogToClean
from odradek.storage.cleaning.task import CleanerStats
from odradek.storage.log import PartitionLog
from odradek.storage.topic_partition import TopicPartition

MB = 1 << 20


class CurrentRound(NamedTuple):
    """A log that is being cleaned, and the bytes read and written so far."""

    partition: TopicPartition
    moved_bytes: int


class FinishedRound(Struct, frozen=True, kw_only=True):
    """A round that cleaned offsets [first_offset, end_offset). Kafka: LogCleaner.recordStats."""

    name: str
    first_offset: int
    end_offset: int
    seconds: float
    stats: CleanerStats

    def __str__(self) -> str:
        stats = self.stats
        return (
            f"{self.name}: cleaned offsets {self.first_offset} to {self.end_offset} in "
            f"{self.seconds:.1f} s: {stats.bytes_read / MB:.1f} MB became "
            f"{stats.bytes_written / MB:.1f}, {stats.messages_written} of {stats.messages_read} "
            "records were kept"
        )


class CleanerStatus(Struct, frozen=True, kw_only=True):
    """The log cleaner's status: the values of Kafka's LogCleaner and LogCleanerManager metrics.

    `uncleanable`: partitions that are not cleaned until a restart, with the reason, by log
    directory. `max_dirty_ratio` and the `dirtiest` logs were seen at `checked_at_ms`, the last
    check of all logs (None: no check yet).
    """

    is_enabled: bool
    checked_at_ms: int | None
    max_dirty_ratio: float
    dirtiest: Sequence[tuple[PartitionLog, LogToClean]]
    cleaning: Sequence[CurrentRound]
    uncleanable: Mapping[Path, Mapping[TopicPartition, str]]
    last_error: str | None
    last_round: FinishedRound | None
    worker_pids: Sequence[int]


def explain_due(to_clean: LogToClean, config: TopicConfig) -> str:
    """Say in one line whether a log is due for cleaning, and why."""
    begin, end = to_clean.first_dirty_offset, to_clean.first_uncleanable_offset
    where = f"offsets {begin} to {end} can be cleaned, {to_clean.cleanable_ratio:.0%} of the bytes"
    if not to_clean.cleanable_bytes:
        lag_ms = config.min_compaction_lag_ms
        young = f", records younger than min.compaction.lag.ms ({lag_ms})" if lag_ms else ""
        return (
            f"nothing after offset {begin} can be cleaned yet: the active segment, open "
            f"transactions{young} are excluded"
        )
    ratio = config.min_cleanable_dirty_ratio
    if to_clean.is_due(ratio):
        return f"{where}: the log is due"
    return f"{where}, which is not over min.cleanable.dirty.ratio ({ratio})"
