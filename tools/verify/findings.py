"""The findings of a verification: problems, which set the exit code to 1, and notes, which do not.

A problem is a state that no broker leaves in the files, not even if it is killed. A note is a state
that a broker may leave, or that its next start cleans up. A hanging transaction is a problem as
well, because it stays until somebody ends it; an open one that its coordinator has is a note.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple


class Severity(StrEnum):
    """Whether a finding sets the exit code."""

    PROBLEM = "problem"
    NOTE = "note"


class Finding(NamedTuple):
    """One finding. `at_start` says what a broker does about it when it starts."""

    severity: Severity
    path: Path
    what: str
    at_start: str = ""


@dataclass
class Totals:
    """How much was checked, and how many findings there are."""

    partitions: int = 0
    segments: int = 0
    batches: int = 0
    log_bytes: int = 0
    problems: int = 0
    notes: int = 0


class Findings:
    """Counts findings, and passes each to `report` when it is found."""

    def __init__(self, report: Callable[[Finding], object]) -> None:
        self.totals = Totals()
        self._report = report

    def problem(self, path: Path, what: str, at_start: str = "") -> None:
        self.totals.problems += 1
        self._report(Finding(Severity.PROBLEM, path, what, at_start))

    def note(self, path: Path, what: str, at_start: str = "") -> None:
        self.totals.notes += 1
        self._report(Finding(Severity.NOTE, path, what, at_start))

    def take(self, found: Iterable[Finding], totals: Totals) -> None:
        """Take findings that were held back, and what was checked meanwhile."""
        self.totals.partitions += totals.partitions
        self.totals.segments += totals.segments
        self.totals.batches += totals.batches
        self.totals.log_bytes += totals.log_bytes
        for each in found:
            report = self.problem if each.severity is Severity.PROBLEM else self.note
            report(*each[1:])


class Tally:
    """Counts errors of one kind in one file, and remembers the first."""

    def __init__(self) -> None:
        self.count = 0
        self.first = ""

    def add(self, what: str) -> None:
        if not self.count:
            self.first = what
        self.count += 1

    def __str__(self) -> str:
        return self.first if self.count < 2 else f"{self.first} (and {self.count - 1} more like it)"
