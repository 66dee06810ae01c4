"""Sets of offsets: sorted, disjoint ranges [start, end)."""

from collections.abc import Iterable
from itertools import product
from typing import NamedTuple


class Span(NamedTuple):
    """The offsets from `start` to before `end`."""

    start: int
    end: int

    @property
    def size(self) -> int:
        """The number of offsets."""
        return self.end - self.start


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Return the same offsets in as few spans as possible."""
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
    """Return the parts of `span` that are in none of `taken`."""
    left: list[Span] = []
    begin = span.start
    for start, end in merge_spans(taken):
        if start >= span.end:
            break
        if start > begin:
            left.append(Span(begin, start))
        begin = max(begin, end)
    if begin < span.end:
        left.append(Span(begin, span.end))
    return left


def overlap(first: Iterable[Span], second: Iterable[Span]) -> list[Span]:
    """Return the offsets that are in both."""
    pairs = product(first, second)
    return merge_spans(Span(max(a.start, b.start), min(a.end, b.end)) for a, b in pairs)
