"""A histogram of durations: how many are at most as long as each of a few bounds."""

from bisect import bisect_left

BOUNDS_MS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000)


class Durations:
    """`counts` has a number per bound, and a last one for longer durations; `sum_ms` is the sum."""

    __slots__ = ("counts", "sum_ms")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_MS) + 1)
        self.sum_ms = 0.0

    def add(self, duration_ms: float) -> None:
        """Count one duration."""
        self.counts[bisect_left(BOUNDS_MS, duration_ms)] += 1
        self.sum_ms += duration_ms
