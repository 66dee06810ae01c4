"""Sets of offsets, against Python's own."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from odradek.pipeline.jobs.offset_spans import Span, merge_spans, without

SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda ends: Span(*ends)))


def offsets(spans: list[Span]) -> list[int]:
    return sorted(offset for start, end in spans for offset in range(start, end))


@given(SPANS)
def test_merged_spans_are_the_same_offsets_in_few_spans(spans: list[Span]) -> None:
    found = merge_spans(spans)
    assert offsets(found) == sorted(set(offsets(spans)))
    assert all(one.end < other.start for one, other in pairwise(found))


@given(st.integers(0, 30), st.integers(0, 30), SPANS)
def test_the_remaining_spans_overlap_none_of_the_taken_ones(
    start: int, end: int, taken: list[Span]
) -> None:
    left = without(Span(start, end), taken)
    assert offsets(left) == sorted(set(range(start, end)) - set(offsets(taken)))
    assert left == merge_spans(left)
