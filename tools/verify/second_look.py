"""Repeats a check that has found problems: a problem is what every look finds.

Retention and the log cleaner replace files while they are read, and a file may be read while its
last batch is being written. That looks like damage, but another look does not find it again.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from .findings import Finding, Findings, Severity

R = TypeVar("R")

# After this many looks, what was not found by all is dropped.
LOOKS = 2  # the broker may run on another machine, or hold no lock that can be seen from here
LOOKS_IF_IN_USE = 4
_NUMBERS = re.compile(r"\d+")


def checked_again(
    check: Callable[[Findings], R], findings: Findings, path: Path, most: Callable[[], int]
) -> R:
    """Run `check` of `path` until it finds no problem, at most `most()` times.

    That is asked after each look, because a broker may have started. Returns the last result. The
    notes and totals are those of the last look.
    """
    suspects: set[tuple[Path, str]] | None = None
    looks = 0
    while True:
        trial = Findings()
        result = check(trial)
        problems = {_kind_of(each) for each in trial.listed if each.severity is Severity.PROBLEM}
        suspects = problems if suspects is None else suspects & problems
        looks += 1
        if not problems or looks >= most():
            break
    trial.totals.problems = trial.totals.notes = 0  # take() counts them
    findings.totals.add(trial.totals)
    findings.take(
        each
        for each in trial.listed
        if each.severity is Severity.NOTE or _kind_of(each) in suspects
    )
    if problems and not suspects:
        what = "it kept changing while it was checked, and nothing is certain: check it again"
        findings.note(path, what)
    return result


def _kind_of(finding: Finding) -> tuple[Path, str]:
    """What makes it the same problem in two looks. Offsets change while a broker writes."""
    return finding.path, _NUMBERS.sub("", finding.what)
