"""Caches `struct.Struct` objects for the generated readers and writers."""

import struct
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from .primitives import Step

SHORT_ARRAY = 17  # an array of fewer numbers uses a struct that was made in advance
_CACHED_SIZES = 64  # of longer arrays
_STEP_NUMBERS = 1024  # of an array that is read or written in steps


@cache
def struct_of(codes: str) -> struct.Struct:
    """Return the big-endian struct of these format codes."""
    return struct.Struct(">" + codes)


@cache
def short_unpackers(code: str) -> tuple[Callable[..., tuple[Any, ...]], ...]:
    """Return functions by index: the one at index n unpacks n numbers."""
    return tuple(struct.Struct(f">{count}{code}").unpack_from for count in range(SHORT_ARRAY))


@cache
def short_packers(length: str, code: str) -> tuple[Callable[..., bytes], ...]:
    """Return functions by index: the one at index n packs a length and n numbers."""
    return tuple(struct.Struct(f">{length}{count}{code}").pack for count in range(SHORT_ARRAY))


@lru_cache(maxsize=_CACHED_SIZES)
def array_of(count: int, code: str) -> struct.Struct:
    """Return the struct of an array. The cache is bounded, because a client chooses the sizes."""
    return struct.Struct(f">{count}{code}")


def read_numbers(
    data: memoryview, position: int, count: int, code: str, step: Step
) -> list[int | float | bool]:
    """Read an array of numbers, and call `step` between its parts."""
    numbers: list[int | float | bool] = []
    size = struct_of(code).size
    while count:
        part = min(count, _STEP_NUMBERS)
        step(0)
        numbers += array_of(part, code).unpack_from(data, position)
        position += part * size
        count -= part
    return numbers


def write_numbers(out: bytearray, numbers: list[Any], code: str, step: Step) -> None:
    """Append an array of numbers, and call `step` between its parts."""
    for start in range(0, len(numbers), _STEP_NUMBERS):
        part = numbers[start : start + _STEP_NUMBERS]
        step(len(part))
        out += array_of(len(part), code).pack(*part)
