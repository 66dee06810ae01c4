"""Caches `struct.Struct` objects for the generated readers and writers."""

import struct
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

SHORT_ARRAY = 17  # for arrays of numbers shorter than this the structs are made in advance
_CACHED_SIZES = 64


@cache
def struct_of(codes: str) -> struct.Struct:
    """The big-endian struct of these format codes."""
    return struct.Struct(">" + codes)


@cache
def short_unpackers(code: str) -> tuple[Callable[..., tuple[Any, ...]], ...]:
    """Functions that unpack 0, 1, 2, … numbers, indexed by their count."""
    return tuple(struct.Struct(f">{count}{code}").unpack_from for count in range(SHORT_ARRAY))


@cache
def short_packers(length: str, code: str) -> tuple[Callable[..., bytes], ...]:
    """Functions that pack a length and 0, 1, 2, … numbers, indexed by the numbers' count."""
    return tuple(struct.Struct(f">{length}{count}{code}").pack for count in range(SHORT_ARRAY))


@lru_cache(maxsize=_CACHED_SIZES)
def array_of(count: int, code: str) -> struct.Struct:
    """The struct of an array of any size. The cache is bounded, because a client chooses sizes."""
    return struct.Struct(f">{count}{code}")
