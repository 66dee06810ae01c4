"""What the checks of one log share: what is known of it, and how far it was walked."""

from dataclasses import dataclass, field
from pathlib import Path

from odradek.storage.filenames import FileKind, segment_file
from odradek.storage.files import Files
from odradek.storage.log_reader import LogReader

from .epoch_watch import EpochWatch
from .findings import Findings
from .progress import Progress
from .record_watch import SeeRecord
from .transaction_watch import OpenTransactions


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFacts:
    """What is known of a log from elsewhere."""

    topic: str
    stopped_cleanly: bool
    recovery_point: int  # 0 where no checkpoint tells
    log_start_offset: int  # the same
    may_have_gaps: bool
    deep: bool


@dataclass(slots=True, kw_only=True)
class LogState:
    """One log on its walk. `see_record` is shown every record, where records are read."""

    files: Files
    directory: Path
    facts: LogFacts
    findings: Findings
    progress: Progress
    epochs: EpochWatch
    reader: LogReader
    see_record: SeeRecord | None
    open_transactions: OpenTransactions = field(default_factory=OpenTransactions)
    next_offset: int = 0

    def path(self, offset: int, kind: FileKind) -> Path:
        """A file of the segment that begins at `offset`."""
        return self.directory / segment_file(offset, kind)
