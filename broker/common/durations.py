"""A histogram of durations: how many are at most as long as each of a few bounds."""

from bisect import bisect_left

BOUNDS_MS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000)
BOUNDS_S = tuple(bound / 1000 for bound in BOUNDS_MS)


class Durations:
    """`counts` has a number per bound, and a last one for longer durations; `sum_s` is the sum."""

    __slots__ = ("counts", "sum_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.sum_s = 0.0

    def add(self, seconds: float, times: int = 1) -> None:
        """Count a duration that occurred `times` times."""
        self.counts[bisect_left(BOUNDS_S, seconds)] += times
        self.sum_s += seconds * times

    @property
    def count(self) -> int:
        """How many durations were counted."""
        return sum(self.counts)

    def merge(self, other: "Durations") -> None:
        """Add the durations of another histogram."""
        self.counts = [own + more for own, more in zip(self.counts, other.counts, strict=True)]
        self.sum_s += other.sum_s
