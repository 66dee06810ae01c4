"""The task of a cleaning process and its results. Everything can be pickled.

    broker                                 cleaning process
    assess, task_for  --CleaningTask-->    Cleaner.clean
    swap              <--CleanedGroup--    once per group, in the order of their offsets
    checkpoint        <--CleaningResult--

Kafka: LogToClean, CleanerStats; there everything runs in one process.
"""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct, field

from odradek.storage.filenames import FileKind, segment_file
from odradek.storage.segment_settings import SegmentSettings
from odradek.storage.txn_index import AbortedTransaction


class SegmentToClean(NamedTuple):
    """A closed segment, as of the creation of the task."""

    base_offset: int
    size_bytes: int


# A producer's id, its last offset (-1: no batch in its epoch) and its epoch. Kafka: LastRecord.
# There may be a hundred thousand; as objects they would be pickled for a second.
LAST_RECORD = struct.Struct(">qqh")


class CleaningTask(Struct, frozen=True, kw_only=True):
    """One round over one log."""

    name: str
    directory: Path
    segments: tuple[SegmentToClean, ...]  # all below first_uncleanable_offset, from the first on
    settings: SegmentSettings
    segment_bytes: int
    delete_retention_ms: int
    first_dirty_offset: int
    first_uncleanable_offset: int  # where a segment begins
    high_watermark: int
    last_records: bytes  # LAST_RECORD of each producer
    aborted: tuple[AbortedTransaction, ...]  # that may have records in the segments
    now_ms: int

    def path(self, segment: SegmentToClean, kind: FileKind = FileKind.LOG) -> Path:
        """The path of a file of a segment."""
        return self.directory / segment_file(segment.base_offset, kind)


class CleanedSegment(NamedTuple):
    """A finished, synced segment whose files end in `.cleaned`."""

    base_offset: int
    size_bytes: int


class CleanedGroup(NamedTuple):
    """New segments, and the base offsets of those that they replace."""

    replaced: tuple[int, ...]
    segments: tuple[CleanedSegment, ...]


@dataclass(slots=True)
class CleanerStats:
    """Counts of one round. Kafka: CleanerStats; the caller measures the time."""

    bytes_read: int = 0
    bytes_written: int = 0
    messages_read: int = 0
    messages_written: int = 0
    invalid_messages: int = 0  # without a key; they are removed
    map_bytes_read: int = 0
    map_entries: int = 0


class CleaningResult(Struct, frozen=True, kw_only=True):
    """`end_offset`: the log is clean up to there. `unreadable`: a line per batch that was copied
    unchanged; at most the first 20, then the number of the others."""

    end_offset: int
    stats: CleanerStats
    unreadable: tuple[str, ...] = field(default=())
