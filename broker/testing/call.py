"""The base of the calls that a test makes to its broker's process."""

from typing import Annotated

from msgspec import Meta, Struct

# Longer ones would overflow timers and timestamps.
MAX_DURATION_MS = 100 * 366 * 86_400_000

Milliseconds = Annotated[int, Meta(ge=0, le=MAX_DURATION_MS)]
Count = Annotated[int, Meta(ge=0, le=(1 << 31) - 1)]


class Call(Struct, tag=True, frozen=True, forbid_unknown_fields=True):
    """Something that the process does for the test."""
