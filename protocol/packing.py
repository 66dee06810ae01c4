"""Caches `struct.Struct` objects for the generated readers and writers."""

import struct
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

SHORT_ARRAY = 17  # an array of fewer numbers uses a struct that was made in advance
_CACHED_SIZES = 64  # of longer arrays


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
