"""Repeats the check of files that a broker is writing: a problem is what every look finds.

Retention and the log cleaner replace files while they are read, and a file may be read while its
last batch is being written. That looks like damage, but another look does not find it again.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from .findings import Finding, Findings, Severity

R = TypeVar("R")

# After so many looks, what was not found by all is dropped.
LOOKS_IF_IN_USE = 4
_NUMBERS = re.compile(r"\d+")


def checked_again(check: Callable[[Findings], R], findings: Findings, looks: int) -> R:
    """Run `check` until it finds no problem, at most `looks` times; returns the last result.

    The notes and totals are those of the last look.
    """
    suspects: set[tuple[Path, str]] | None = None
    while True:
        found: list[Finding] = []
        trial = Findings(found.append)
        result = check(trial)
        problems = {_kind_of(each) for each in found if each.severity is Severity.PROBLEM}
        suspects = problems if suspects is None else suspects & problems
        looks -= 1
        if not problems or not looks:
            break
    findings.take(
        [each for each in found if each.severity is Severity.NOTE or _kind_of(each) in suspects],
        trial.totals,
    )
    return result


def _kind_of(finding: Finding) -> tuple[Path, str]:
    """What makes it the same problem in two looks. Offsets change while a broker writes."""
    return finding.path, _NUMBERS.sub("", finding.what)
