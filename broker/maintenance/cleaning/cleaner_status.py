"""What can be seen of the log cleaner: for metrics, for tools, and for whoever asks why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from odradek.config.topic_config import TopicConfig
    from odradek.storage.checkpoints import TopicPartition
    from odradek.storage.cleaning.plan import LogToClean
    from odradek.storage.cleaning.task import CleanerStats

MB = 1 << 20


class RoundUnderWay(NamedTuple):
    """A log that is being cleaned, since when, and how many bytes were read and written so far."""

    partition: TopicPartition
    began_ms: int
    moved_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRound:
    """A log was cleaned from one offset up to another. Kafka: LogCleaner.recordStats."""

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
            "records stay"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerStatus:
    """The log cleaner now. Kafka's metrics of LogCleaner and LogCleanerManager can be read off.

    `uncleanable`: partitions set aside until a restart, with the reason, by log directory.
    `max_dirty_ratio` is of the last look, `looked_at_ms` is when
    that was (None: not yet).
    """

    is_enabled: bool
    looked_at_ms: int | None
    max_dirty_ratio: float
    cleaning: Sequence[RoundUnderWay]
    uncleanable: Mapping[Path, Mapping[TopicPartition, str]]
    last_error: str | None
    last_round: FinishedRound | None
    worker_pids: Sequence[int]


def why_not_due(to_clean: LogToClean, config: TopicConfig) -> str:
    """Why a log is not cleaned now, or that it will be, in one line."""
    begin, end = to_clean.first_dirty_offset, to_clean.first_uncleanable_offset
    where = f"offsets {begin} to {end} can be cleaned, {to_clean.cleanable_ratio:.0%} of the bytes"
    if not to_clean.cleanable_bytes:
        lag_ms = config.min_compaction_lag_ms
        young = f", records younger than min.compaction.lag.ms ({lag_ms})" if lag_ms else ""
        return (
            f"nothing behind offset {begin} can be cleaned yet: not the active segment, no open "
            f"transaction{young}"
        )
    ratio = config.min_cleanable_dirty_ratio
    if to_clean.is_due(ratio):
        return f"{where}: it is due"
    return f"{where}, which is not over min.cleanable.dirty.ratio ({ratio})"
