"""The distribution of sizes, and the number of distinct keys: mergeable, and of bounded size.

`SizeSketch` is a histogram whose buckets grow with the size, 16 per power of two, so a quantile is
off by at most 3 %, whatever the data. `KeySketch` is a HyperLogLog with 2,048 registers, off by
about 2 % (Flajolet et al., "HyperLogLog: the analysis of a near-optimal cardinality estimation
algorithm"). Both depend on what was added, and not on the order or on how the work was divided.
"""

import math
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from xxhash import xxh64_intdigest

from odradek.pipeline.decoding.varints import Bytes, Ints

_STEPS = 16  # buckets between two powers of two; each size below 32 has its own bucket
_LOWS: Ints = np.concatenate([np.arange(16), *(np.arange(16, 32) << shift for shift in range(28))])
_BITS = 11
_REGISTERS = 1 << _BITS
_BIAS = 0.7213 / (1 + 1.079 / _REGISTERS)
_LONG_BYTES = 512  # each word of a longer key would be a step for few keys: hashed one by one
_WORD_BYTES = 8

Hashes = npt.NDArray[np.uint64]


@dataclass(slots=True)
class SizeSketch:
    """Sizes in bytes, from 0 to 2**31. Smallest, largest and sum are exact."""

    count: int = 0
    total: int = 0
    smallest: int = 0
    largest: int = 0
    counts: Ints = field(default_factory=lambda: np.zeros(_LOWS.size, np.int64))

    def add(self, sizes: Ints) -> None:
        """Add sizes."""
        if not sizes.size:
            return
        counts = np.bincount(_buckets(sizes), minlength=_LOWS.size)
        self.merge(
            SizeSketch(sizes.size, int(sizes.sum()), int(sizes.min()), int(sizes.max()), counts)
        )

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
        bucket = int(np.searchsorted(np.cumsum(self.counts), share * self.count))
        middle = int(_LOWS[bucket] + _LOWS[bucket + 1] - 1) // 2
        return min(max(middle, self.smallest), self.largest)

    def doublings(self) -> list[tuple[int, int, int]]:
        """Return (low, high, count): sizes in [low, high) by powers of two, without empty ends."""
        bounds = [0, *(1 << bit for bit in range(32))]
        sums = np.add.reduceat(self.counts, np.searchsorted(_LOWS, bounds)).tolist()
        rows = [(*each, count) for each, count in zip(pairwise(bounds), sums, strict=False)]
        filled = [number for number, row in enumerate(rows) if row[2]]
        return rows[filled[0] : filled[-1] + 1] if filled else []


def _buckets(sizes: Ints) -> Ints:
    """Return the number of the bucket of each size: twice as fast as a search in `_LOWS`."""
    sizes = np.clip(sizes, 0, (1 << 31) - 1)
    _, exponent = np.frexp(np.maximum(sizes, 1).astype(np.float64))
    shift = np.maximum(exponent.astype(np.int64) - 5, 0)
    return np.where(sizes < _STEPS, sizes, shift * _STEPS + (sizes >> shift))


@dataclass(slots=True)
class KeySketch:
    """A sketch of a set of keys.

    If there are few keys, the number of empty registers gives a nearly exact count.
    """

    registers: Bytes = field(default_factory=lambda: np.zeros(_REGISTERS, np.uint8))

    def add(self, hashes: Hashes) -> None:
        """Add keys, by their hashes."""
        register = (hashes >> np.uint64(64 - _BITS)).astype(np.int64)
        below = ((hashes << np.uint64(_BITS)) >> np.uint64(32)).astype(np.float64)
        _, exponent = np.frexp(below)
        rank = np.where(below > 0, 33 - exponent, 33).astype(np.uint8)
        np.maximum.at(self.registers, register, rank)

    def merge(self, other: "KeySketch") -> None:
        """Add the keys of another sketch."""
        np.maximum(self.registers, other.registers, out=self.registers)

    @property
    def distinct(self) -> int:
        """The approximate number of distinct keys."""
        empty = int(np.count_nonzero(self.registers == 0))
        powers = np.exp2(-self.registers.astype(np.float64))
        estimate = _BIAS * _REGISTERS**2 / float(powers.sum())
        if estimate <= 2.5 * _REGISTERS and empty:
            estimate = _REGISTERS * math.log(_REGISTERS / empty)
        return round(estimate)


def hash_strings(data: bytes, at: Ints, size_bytes: Ints) -> Hashes:
    """Return a hash of each string in `data`; of all at once, eight bytes at a time."""
    if len(data) < _WORD_BYTES:
        data = data.ljust(_WORD_BYTES, b"\0")
    words: Hashes = np.ndarray((len(data) - _WORD_BYTES + 1,), "<u8", data, strides=(1,))
    seeds: Hashes = size_bytes.astype(np.uint64) ^ np.uint64(0x9E3779B97F4A7C15)
    mixed = _mix(seeds)
    rows = np.flatnonzero((size_bytes > 0) & (size_bytes <= _LONG_BYTES))
    taken = 0
    while rows.size:
        position = at[rows] + taken
        left = size_bytes[rows] - taken
        # A word that would reach beyond the buffer is read at its end instead, and shifted.
        start = np.minimum(position, words.size - 1)
        word: Hashes = words[start] >> ((position - start) * 8).astype(np.uint64)
        unused = (np.maximum(_WORD_BYTES - left, 0) * 8).astype(np.uint64)
        word = (word << unused) >> unused
        known: Hashes = mixed[rows]
        mixed[rows] = _mix(known ^ word)
        taken += _WORD_BYTES
        rows = rows[left > _WORD_BYTES]
    for row in np.flatnonzero(size_bytes > _LONG_BYTES).tolist():
        mixed[row] = xxh64_intdigest(data[at[row] : at[row] + size_bytes[row]])
    return mixed


def _mix(value: Hashes) -> Hashes:
    """The finaliser of SplitMix64."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
