"""What is found: problems, which no broker leaves behind, and notes, which are worth a look."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

_TOLD = 5  # of one kind in one file; the rest is counted


class Severity(StrEnum):
    """How bad it is."""

    PROBLEM = "problem"
    NOTE = "note"


class Kind(StrEnum):
    """What it is about."""

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
    """One thing that was found; `more` others of its kind in that file are not listed."""

    severity: Severity
    kind: Kind
    path: str
    what: str
    position: int | None = None
    offset: int | None = None
    more: int = 0

    @property
    def identity(self) -> tuple[object, ...]:
        """What is the same when it is found again."""
        return self.severity, self.kind, self.path, self.what, self.position, self.offset


@dataclass(frozen=True, slots=True)
class _Place:
    severity: Severity
    kind: Kind
    path: str


class Findings:
    """Gathers findings; of many of one kind in one file the first few."""

    def __init__(self) -> None:
        self._found: dict[_Place, list[Finding]] = {}
        self._count: dict[_Place, int] = {}

    def problem(
        self,
        kind: Kind,
        path: str,
        what: str,
        *,
        position: int | None = None,
        offset: int | None = None,
    ) -> None:
        """What makes the exit code 1."""
        self.add(Finding(Severity.PROBLEM, kind, path, what, position, offset))

    def note(self, kind: Kind, path: str, what: str, *, offset: int | None = None) -> None:
        """What does not."""
        self.add(Finding(Severity.NOTE, kind, path, what, None, offset))

    def add(self, finding: Finding) -> None:
        """One, with all that stand behind it."""
        place = _Place(finding.severity, finding.kind, finding.path)
        self._count[place] = self._count.get(place, 0) + 1 + finding.more
        told = self._found.setdefault(place, [])
        if len(told) < _TOLD:
            told.append(finding._replace(more=0))

    def all(self) -> list[Finding]:
        """In the order in which their places were met."""
        result: list[Finding] = []
        for place, told in self._found.items():
            more = self._count[place] - len(told)
            result += [*told[:-1], told[-1]._replace(more=more)]
        return result
