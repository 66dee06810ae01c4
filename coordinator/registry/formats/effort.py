"""How much work a schema may make, counted in steps, and how many reasons are given.

A short text can ask for much work: each of twenty types that is used twice in the next one makes a
million paths. Results of pairs that are met again are kept, which makes most work linear; what is
left is bounded by steps, which do not depend on the machine. Reasons are kept by pairs, too (see
Found), and only the first ones are written.
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Generic, NamedTuple, TypeVar

MAX_REASONS = 1000
MAX_REASON_LETTERS = 1 << 20
_LEFT_OUT = "(more reasons are left out)"

_UNLIMITED = float("inf")

L = TypeVar("L")
Path = tuple[str, ...]


class TooManyStepsError(Exception):
    """The work takes more steps than it may."""


class _Left(threading.local):
    """The steps that are left. One for each thread, which does one piece of work at a time."""

    steps: float = _UNLIMITED


_LEFT = _Left()


@contextmanager
def limited(steps: float) -> Iterator[None]:
    """Let the work in this block raise TooManyStepsError after so many steps.

    The steps also count for a `limited` around this one.
    """
    before = _LEFT.steps
    _LEFT.steps = allowed = min(steps, before)
    try:
        yield
    finally:
        _LEFT.steps = before - (allowed - _LEFT.steps) if before < _UNLIMITED else before


def spend(steps: int = 1) -> None:
    """Count steps: about a microsecond each. Raises TooManyStepsError."""
    _LEFT.steps -= steps
    if _LEFT.steps < 0:
        raise TooManyStepsError


class Inside(NamedTuple, Generic[L]):
    """What was found in a part, at a place that is relative to the whole."""

    path: Path
    found: "Found[L]"


Found = list[L | Inside[L]]


def inside(found: Found[L], *path: str) -> Found[L]:
    """Return what was found in a part as one entry of a list, for the whole.

    `path` is the place of the part in the whole. Takes the same time however much was found.
    """
    return [Inside(path, found)] if found else []


def flat(found: Found[L]) -> Iterator[tuple[Path, L]]:
    """Yield what was found with its places, in order."""
    waiting: list[tuple[Path, Iterator[L | Inside[L]]]] = [((), iter(found))]
    while waiting:
        path, entries = waiting[-1]
        for entry in entries:
            if isinstance(entry, Inside):
                spend(1 + len(path) // 8)
                waiting.append(((*path, *entry.path), iter(entry.found)))
                break
            yield path, entry
        else:
            waiting.pop()


def first(reasons: Iterable[str]) -> list[str]:
    """Return the first reasons, and say so if there are more."""
    kept: list[str] = []
    letters = 0
    for reason in reasons:
        letters += len(reason)
        if len(kept) == MAX_REASONS or letters > MAX_REASON_LETTERS:
            return [*kept, _LEFT_OUT]
        kept.append(reason)
    return kept
