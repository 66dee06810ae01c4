"""Findings: problems, which a correct broker does not cause, and notes, which it may cause."""

from enum import StrEnum
from typing import NamedTuple

_MAX_LISTED = 5  # per kind and file; the others are counted


class Severity(StrEnum):
    """Whether it makes the exit code 1."""

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
    FILE = "file"


class Finding(NamedTuple):
    """One finding; `more` others of its kind in its file are not listed."""

    severity: Severity
    kind: Kind
    path: str
    what: str
    position: int | None = None
    offset: int | None = None
    more: int = 0

    @property
    def identity(self) -> tuple[object, ...]:
        """The fields that are equal if two passes make the same finding."""
        return self.severity, self.kind, self.path, self.what, self.position, self.offset


class Findings:
    """Collects findings; keeps the first few of each severity and kind per file."""

    def __init__(self) -> None:
        self._listed: dict[tuple[Severity, Kind, str], list[Finding]] = {}
        self._count: dict[tuple[Severity, Kind, str], int] = {}

    def problem(
        self,
        kind: Kind,
        path: str,
        what: str,
        *,
        position: int | None = None,
        offset: int | None = None,
    ) -> None:
        """Add a problem."""
        self.add(Finding(Severity.PROBLEM, kind, path, what, position, offset))

    def note(self, kind: Kind, path: str, what: str, *, offset: int | None = None) -> None:
        """Add a note."""
        self.add(Finding(Severity.NOTE, kind, path, what, None, offset))

    def add(self, finding: Finding) -> None:
        """Add a finding, and count the others that it stands for."""
        key = finding.severity, finding.kind, finding.path
        self._count[key] = self._count.get(key, 0) + 1 + finding.more
        listed = self._listed.setdefault(key, [])
        if len(listed) < _MAX_LISTED:
            listed.append(finding._replace(more=0))

    def all(self) -> list[Finding]:
        """Return the listed findings; the last of each kind and file counts the unlisted ones."""
        result: list[Finding] = []
        for key, listed in self._listed.items():
            more = self._count[key] - len(listed)
            result += [*listed[:-1], listed[-1]._replace(more=more)]
        return result
