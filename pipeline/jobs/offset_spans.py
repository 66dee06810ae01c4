"""Sets of offsets, as ranges [start, end) that are sorted and do not touch."""

from collections.abc import Iterable
from typing import NamedTuple


class Span(NamedTuple):
    """Offsets from `start` to before `end`."""

    start: int
    end: int

    @property
    def size(self) -> int:
        """How many offsets."""
        return self.end - self.start


def joined(spans: Iterable[Span]) -> list[Span]:
    """The same offsets, in as few spans as it takes."""
    result: list[Span] = []
    for start, end in sorted(spans):
        if start >= end:
            continue
        if result and start <= result[-1].end:
            result[-1] = Span(result[-1].start, max(result[-1].end, end))
        else:
            result.append(Span(start, end))
    return result


def without(span: Span, taken: Iterable[Span]) -> list[Span]:
    """What of `span` is in none of `taken`."""
    left: list[Span] = []
    at = span.start
    for start, end in joined(taken):
        if start >= span.end:
            break
        if start > at:
            left.append(Span(at, start))
        at = max(at, end)
    if at < span.end:
        left.append(Span(at, span.end))
    return left


def overlap(one: Iterable[Span], other: Iterable[Span]) -> list[Span]:
    """What is in both."""
    others = list(other)
    return joined(Span(max(a.start, b.start), min(a.end, b.end)) for a in one for b in others)
