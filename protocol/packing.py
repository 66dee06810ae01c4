"""`struct` objects, each made once for all messages."""

import struct
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

FEW = 17  # arrays of fewer numbers have their `struct` at hand
ARRAY_SIZES_KEPT = 64


@cache
def struct_of(codes: str) -> struct.Struct:
    """The big-endian `struct` of some codes."""
    return struct.Struct(">" + codes)


@cache
def few_unpackers(code: str) -> tuple[Callable[..., tuple[Any, ...]], ...]:
    """What unpacks 0, 1, 2, ... numbers from a position."""
    return tuple(struct.Struct(f">{count}{code}").unpack_from for count in range(FEW))


@cache
def few_packers(length: str, code: str) -> tuple[Callable[..., bytes], ...]:
    """What packs a length, and 0, 1, 2, ... numbers."""
    return tuple(struct.Struct(f">{length}{count}{code}").pack for count in range(FEW))


@lru_cache(maxsize=ARRAY_SIZES_KEPT)
def array_of(count: int, code: str) -> struct.Struct:
    """The `struct` of an array of any size; a stranger may choose it, so not all are kept."""
    return struct.Struct(f">{count}{code}")
