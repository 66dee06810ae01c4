"""The input and the result of loading a log."""

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from odradek.config.topic_config import TopicConfig
from odradek.storage.deletions import Deletions
from odradek.storage.files import Files
from odradek.storage.leader_epochs import LeaderEpochs
from odradek.storage.producer_state import ProducerStates
from odradek.storage.segment_list import SegmentList

from .producer_recovery import RecentBatches


class LogSource(Struct, frozen=True, kw_only=True):
    """A log to load: its directory, its checkpointed offsets, and how it was closed.

    `is_whole`: it is never compacted, so a segment that does not begin where the one before ends
    shows that a power cut has taken what was between them.
    """

    files: Files
    directory: Path
    config: TopicConfig
    now_ms: int
    had_clean_shutdown: bool
    is_whole: bool = False
    recovered: RecentBatches | None = None  # set if another process has recovered the log
    recovery_point: int
    log_start_offset: int  # in the checkpoint; 0 without one
    producer_id_expiration_ms: int
    deletions: Deletions
    report: Callable[[str], None]

    def new_producers(self) -> ProducerStates:
        """Create an empty producer state."""
        expiration_ms = self.producer_id_expiration_ms
        return ProducerStates(self.files, self.directory, expiration_ms=expiration_ms)


class LoadedLog(Struct, frozen=True, kw_only=True):
    """The parts of a PartitionLog."""

    segments: SegmentList
    log_start_offset: int
    recovery_point: int
    log_end_offset: int
    epochs: LeaderEpochs
    producers: ProducerStates
    is_directory_synced: bool  # whether the name of its directory is
