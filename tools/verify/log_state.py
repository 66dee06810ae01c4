"""The state that the checks of one log share."""

from dataclasses import dataclass
from pathlib import Path

from odradek.storage.filenames import FileKind, segment_file
from odradek.storage.files import Files
from odradek.storage.log_reader import LogReader

from .epoch_check import EpochCheck
from .findings import Findings
from .log_transactions import LogTransactions
from .progress import Progress
from .record_check import OnRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFacts:
    """What other files and the metadata log say about a log."""

    topic: str
    stopped_cleanly: bool
    recovery_point: int  # 0 without a checkpoint
    log_start_offset: int  # 0 without a checkpoint
    may_have_gaps: bool
    deep: bool


@dataclass(slots=True, kw_only=True)
class LogState:
    """One log while it is checked. `on_record` is called for every record, if records are read.

    `next_offset` follows the last batch that was checked.
    """

    files: Files
    directory: Path
    facts: LogFacts
    findings: Findings
    progress: Progress
    epochs: EpochCheck
    reader: LogReader
    transactions: LogTransactions
    on_record: OnRecord | None
    next_offset: int = 0

    def path(self, offset: int, kind: FileKind) -> Path:
        """A file of the segment that begins at `offset`."""
        return self.directory / segment_file(offset, kind)
