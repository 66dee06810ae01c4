"""The distribution of sizes: a histogram whose buckets grow with the size, 16 per power of two.

A quantile of it has an error of at most 3 %, whatever the data. Smallest, largest and sum are
exact. Two sketches are merged by adding the counts.
"""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from odradek.pipeline.decoding.varints import Ints

_STEPS = 16  # buckets per power of two; each size below it has its own bucket
_STEP_BITS = 4
_BUCKETS = (32 - _STEP_BITS) * _STEPS + _STEPS


@dataclass(slots=True)
class SizeSketch:
    """Sizes in bytes, from 0 to 2**31."""

    count: int = 0
    total: int = 0
    smallest: int = 0
    largest: int = 0
    counts: Ints = field(default_factory=lambda: np.zeros(_BUCKETS, np.int64))

    def add(self, sizes: Ints) -> None:
        """Add sizes."""
        if not sizes.size:
            return
        smallest = int(sizes.min())
        self.smallest = min(self.smallest, smallest) if self.count else smallest
        self.largest = max(self.largest, int(sizes.max()))
        self.count += int(sizes.size)
        self.total += int(sizes.sum())
        self.counts += np.bincount(_bucket(sizes), minlength=_BUCKETS)

    def merge(self, other: "SizeSketch") -> None:
        """Add the sizes of another sketch."""
        if not other.count:
            return
        self.smallest = min(self.smallest, other.smallest) if self.count else other.smallest
        self.largest = max(self.largest, other.largest)
        self.count += other.count
        self.total += other.total
        self.counts += other.counts

    @property
    def average(self) -> float:
        """The average; 0 if there is no size."""
        return self.total / self.count if self.count else 0.0

    def quantile(self, share: float) -> int:
        """Return the approximate size that `share` (0 to 1) of all sizes do not exceed."""
        if not self.count:
            return 0
        reached = np.cumsum(self.counts)
        bucket = int(np.searchsorted(reached, share * self.count))
        low, high = bucket_bounds(min(bucket, _BUCKETS - 1))
        return int(min(max((low + high) // 2, self.smallest), self.largest))

    def doublings(self) -> list[tuple[int, int, int]]:
        """Return (low, high, count): sizes in [low, high) by powers of two, without empty ends."""
        rows: list[tuple[int, int, int]] = []
        bounds = [0, 1, *(1 << bit for bit in range(1, 32))]
        starts = np.array([bucket_bounds(bucket)[0] for bucket in range(_BUCKETS)])
        for low, high in pairwise(bounds):
            within = (starts >= low) & (starts < high)
            rows.append((low, high, int(self.counts[within].sum())))
        filled = [number for number, row in enumerate(rows) if row[2]]
        return rows[filled[0] : filled[-1] + 1] if filled else []


def _bucket(sizes: Ints) -> Ints:
    sizes = np.clip(sizes, 0, (1 << 31) - 1)
    _, exponent = np.frexp(np.maximum(sizes, 1).astype(np.float64))
    shift = np.maximum(exponent.astype(np.int64) - 1 - _STEP_BITS, 0)
    return np.where(sizes < _STEPS, sizes, shift * _STEPS + (sizes >> shift))


def bucket_bounds(bucket: int) -> tuple[int, int]:
    """Return the smallest and the largest size in a bucket."""
    if bucket < 2 * _STEPS:
        return bucket, bucket
    shift, step = divmod(bucket, _STEPS)
    low = (_STEPS + step) << (shift - 1)
    return low, low + (1 << (shift - 1)) - 1
