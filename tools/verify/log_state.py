"""The state that the checks of one log share."""

from dataclasses import dataclass
from pathlib import Path

from odradek.storage.filenames import FileKind, segment_file
from odradek.storage.files import Files
from odradek.storage.log_reader import LogReader, SegmentFile
from odradek.storage.topic_names import CLUSTER_METADATA_TOPIC

from .epoch_check import EpochCheck
from .findings import Findings
from .gap_check import GapCheck
from .log_transactions import LogTransactions
from .producer_check import ProducerCheck
from .record_check import OnRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFacts:
    """What other files and the metadata log say about a log."""

    topic: str
    stopped_cleanly: bool
    recovery_point: int  # 0 without a checkpoint
    log_start_offset: int  # 0 without a checkpoint
    cleaner_offset: int  # 0 without a checkpoint
    may_have_gaps: bool
    is_compacted: bool  # False if it is not known
    deep: bool

    @property
    def is_metadata(self) -> bool:
        return self.topic == CLUSTER_METADATA_TOPIC


@dataclass(slots=True, kw_only=True)
class LogState:
    """One log while it is checked. `on_record` is called for every record, if records are read.

    `next_offset` follows the last batch that was checked. `lost_from`: since this offset batches
    cannot be read, so the offset of the next one is not known; None after a batch that can be read.
    """

    files: Files
    directory: Path
    facts: LogFacts
    findings: Findings
    epochs: EpochCheck
    gaps: GapCheck
    producers: ProducerCheck
    reader: LogReader
    transactions: LogTransactions
    on_record: OnRecord | None
    next_offset: int = 0
    last_epoch: int = -1
    lost_from: int | None = None

    def note_lost(self) -> None:
        """Note that a batch after the last one cannot be read."""
        self.transactions.note_damage()
        if self.lost_from is None:
            self.lost_from = self.next_offset

    def note_gap(self, segment: SegmentFile, end: int, position: int) -> None:
        """Note that offsets up to `end` are missing before the batch at `position`."""
        if self.facts.may_have_gaps:
            self.transactions.note_gap()
        else:
            self.transactions.note_damage()
        if self.lost_from is None:
            self.gaps.add(segment.path, segment.base_offset, self.next_offset, end, position)

    def path(self, offset: int, kind: FileKind) -> Path:
        """A file of the segment that begins at `offset`."""
        return self.directory / segment_file(offset, kind)
