"""Records of internal topics as JSON.

A record of a group has all of its members, each with a subscription and an assignment, and takes
some 70 µs for each of them. So a long record is decoded in another process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from odradek.coordinator.inspect.internal_records import (
    OFFSETS,
    SHARE_STATE,
    TRANSACTIONS,
    AnyRecord,
    RecordDecoder,
)
from odradek.coordinator.runtime.steps import no_step
from odradek.storage.inspect.raw_message import UnreadableError
from odradek.storage.record_walk import WalkLimits

from .filters import JsonPath

T = TypeVar("T")

# A longer value is decoded in another process.
SHORT_BYTES = 2 << 10
DECODERS: Mapping[str, RecordDecoder] = {
    "__consumer_offsets": OFFSETS,
    "__transaction_state": TRANSACTIONS,
    "__share_group_state": SHARE_STATE,
}


class InternalTexts(NamedTuple):
    """A key and a value as texts; the value is None for null."""

    key: str
    value: str | None


class _Record(NamedTuple):
    """A record in the other process."""

    offset: int
    key: bytes | None
    value: bytes | None


def walk_record(
    value: bytes,
    *,
    work: Callable[[AnyRecord], T],
    key: bytes | None,
    offset: int,
    limits: WalkLimits,  # noqa: ARG001 # as of every walk
) -> T:
    """Do `work` with a record whose value is long. Runs in another process."""
    return work(_Record(offset, key, value))


def texts_of(record: AnyRecord, *, topic: str) -> InternalTexts | None:
    """The key and the value of a record; None if they cannot be read."""
    try:
        decoded = DECODERS[topic](record)
    except UnreadableError:
        return None
    value = None if record.value is None else json_text(decoded.value)
    return InternalTexts(json_text(decoded.key), value)


def internal_matches_path(record: AnyRecord, *, topic: str, path: JsonPath) -> bool:
    """Whether the JSON of a record's value has what a path says."""
    try:
        return path.matches(DECODERS[topic](record).value, no_step)
    except UnreadableError:
        return False


def json_text(value: Any) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
