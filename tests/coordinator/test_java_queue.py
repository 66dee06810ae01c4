"""Java's PriorityQueue: elements come in order, and equal ones as they do in Java."""

import heapq

from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.java.java_queue import JavaQueue


@given(st.lists(st.integers(0, 5) | st.none()))
def test_the_smallest_comes_first(steps: list[int | None]) -> None:
    """A number is added; None removes one."""
    queue, heap = JavaQueue([], float), []
    for step in steps:
        if step is not None:
            queue.add(step)
            heapq.heappush(heap, step)
        elif heap:
            assert queue.poll() == heapq.heappop(heap)
        assert len(queue) == len(heap)


def test_equal_ones_come_as_in_java() -> None:
    """What PriorityQueue<String> of Java 17 gives, compared by length."""
    queue = JavaQueue("abcdefg", len)
    assert [queue.poll() for _ in range(7)] == list("agfedcb")
