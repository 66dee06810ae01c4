"""What was found: problems, which make the exit code 1, and notes, which do not.

A problem is something that no broker leaves behind, not even one that was killed. A note is what
one may leave, or what a start will tidy up.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple


class Severity(StrEnum):
    """How bad it is."""

    PROBLEM = "problem"
    NOTE = "note"


class Finding(NamedTuple):
    """One thing that was found. `at_start` is what a broker does about it when it starts."""

    severity: Severity
    path: Path
    what: str
    at_start: str = ""


@dataclass
class Totals:
    """What was looked at, and how much of it is wrong."""

    partitions: int = 0
    segments: int = 0
    batches: int = 0
    log_bytes: int = 0
    problems: int = 0
    notes: int = 0


class Findings:
    """Hands on each finding as it comes, and counts."""

    def __init__(self, tell: Callable[[Finding], object]) -> None:
        self.totals = Totals()
        self._tell = tell

    def problem(self, path: Path, what: str, at_start: str = "") -> None:
        self.totals.problems += 1
        self._tell(Finding(Severity.PROBLEM, path, what, at_start))

    def note(self, path: Path, what: str, at_start: str = "") -> None:
        self.totals.notes += 1
        self._tell(Finding(Severity.NOTE, path, what, at_start))


class Tally:
    """Things of one kind that are wrong in one file: how many, and which was the first."""

    def __init__(self) -> None:
        self.count = 0
        self.first = ""

    def add(self, what: str) -> None:
        if not self.count:
            self.first = what
        self.count += 1

    def __str__(self) -> str:
        return self.first if self.count < 2 else f"{self.first} (and {self.count - 1} more like it)"
