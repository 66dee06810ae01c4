"""The findings of a verification: problems, which set the exit code to 1, and notes, which do not.

A problem is a state that no broker leaves in the files, not even if it is killed. A note is a state
that a broker may leave, or that its next start cleans up. A hanging transaction is a problem as
well, because it stays until somebody ends it; an open one that its coordinator has is a note.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple


class Severity(StrEnum):
    """Whether a finding sets the exit code."""

    PROBLEM = "problem"
    NOTE = "note"


class Kind(StrEnum):
    """What is wrong."""

    CHECKSUM = "checksum"
    STRUCTURE = "structure"
    RECORDS = "records"
    ORDER = "order"
    GAP = "gap"
    SEQUENCE = "sequence"
    TRANSACTION = "transaction"
    INDEX = "index"
    SNAPSHOT = "snapshot"
    EPOCH = "epoch"
    FILE = "file"


class Tally:
    """Counts errors of one kind in one file, and remembers the first."""

    def __init__(self) -> None:
        self.count = 0
        self.first = ""
        self.position: int | None = None
        self.offset: int | None = None

    def add(self, what: str, *, position: int | None = None, offset: int | None = None) -> None:
        """Count an error. `position` is its byte in the file, `offset` that of its batch."""
        if not self.count:
            self.first, self.position, self.offset = what, position, offset
        self.count += 1


class Finding(NamedTuple):
    """One finding. `at_start` says what a broker does about it when it starts.

    `more` other findings of its kind in its file are not listed.
    """

    severity: Severity
    kind: Kind
    path: Path
    what: str
    at_start: str = ""
    position: int | None = None
    offset: int | None = None
    more: int = 0


@dataclass
class Totals:
    """How much was checked, and how many findings there are."""

    partitions: int = 0
    segments: int = 0
    batches: int = 0
    records: int = 0
    log_bytes: int = 0
    cleaned_offsets: int = 0
    producers: int = 0
    open_transactions: int = 0
    problems: int = 0
    notes: int = 0

    def add(self, other: "Totals") -> None:
        """Add all numbers of `other`."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


class Findings:
    """Collects findings, and counts them and what was checked."""

    def __init__(self) -> None:
        self.listed: list[Finding] = []
        self.totals = Totals()

    def problem(
        self, path: Path, what: str | Tally, at_start: str = "", kind: Kind = Kind.FILE
    ) -> None:
        """Add a problem; a tally that is empty adds nothing."""
        self._add(Severity.PROBLEM, path, what, at_start, kind)

    def note(
        self, path: Path, what: str | Tally, at_start: str = "", kind: Kind = Kind.FILE
    ) -> None:
        """Add a note; a tally that is empty adds nothing."""
        self._add(Severity.NOTE, path, what, at_start, kind)

    def _add(
        self, severity: Severity, path: Path, what: str | Tally, at_start: str, kind: Kind
    ) -> None:
        if isinstance(what, str):
            self.take([Finding(severity, kind, path, what, at_start)])
        elif what.count:
            place = what.position, what.offset, what.count - 1
            self.take([Finding(severity, kind, path, what.first, at_start, *place)])

    def take(self, found: Iterable[Finding]) -> None:
        """Add findings that were made elsewhere."""
        for each in found:
            self.listed.append(each)
            if each.severity is Severity.PROBLEM:
                self.totals.problems += 1
            else:
                self.totals.notes += 1
