"""Estimates the number of distinct keys: HyperLogLog with 2,048 registers, off by about 2 %.

Two sketches are merged by taking the larger of each register. If there are few keys, the number of
empty registers gives a nearly exact count.

Flajolet et al., "HyperLogLog: the analysis of a near-optimal cardinality estimation algorithm".
"""

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from xxhash import xxh64_intdigest

from odradek.pipeline.decoding.varints import Bytes, Ints

_BITS = 11
_REGISTERS = 1 << _BITS
_BIAS = 0.7213 / (1 + 1.079 / _REGISTERS)
_LONG_BYTES = 512  # each word of a longer key would be a step for few keys: hashed one by one
_WORD_BYTES = 8

Hashes = npt.NDArray[np.uint64]


@dataclass(slots=True)
class KeySketch:
    """A sketch of a set of keys."""

    registers: Bytes = field(default_factory=lambda: np.zeros(_REGISTERS, np.uint8))

    def add(self, hashes: Hashes) -> None:
        """Add keys, by their hashes."""
        if not hashes.size:
            return
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
