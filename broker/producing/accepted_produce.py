"""Encodes the response to a Produce whose batches were all appended.

Nearly every Produce is answered here. The compiled writer of ProduceResponse makes the same bytes,
which a test compares. It takes twice as long, because it needs an object for each partition.
"""

import struct
from collections.abc import Callable, Iterable
from typing import NamedTuple

from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.primitives import write_uvarint

from .produced_batches import FIRST_VERSION_BY_ID

FIRST_VERSION = 5  # the first with log start offsets
FIRST_VERSION_WITH_MESSAGES = 8
FIRST_FLEXIBLE_VERSION = 9
NO_APPEND_TIME = -1  # the producer's timestamps are kept

# Index, error code, base offset, log append time, log start offset.
_PARTITION = struct.Struct(">ihqqq")
_OFFSETS = struct.Struct(">qqq")  # the last three of them
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


def _write_int16(out: bytearray, value: int) -> None:
    out += _INT16.pack(value)


def _write_int32(out: bytearray, value: int) -> None:
    out += _INT32.pack(value)


def _write_compact(out: bytearray, value: int) -> None:
    if value < 0x7F:
        out.append(value + 1)
    else:
        write_uvarint(out, value + 1)


class _Layout(NamedTuple):
    """What differs between versions: how counts and lengths are written, and the constant ends."""

    write_count: Callable[[bytearray, int], None]
    write_length: Callable[[bytearray, int], None]
    end_of_partition: bytes
    end_of_topic: bytes
    end: bytes


# The ends: no record errors, no message; the throttle time 0; no tagged fields.
_PLAIN = _Layout(_write_int32, _write_int16, b"", b"", bytes(4))
_WITH_MESSAGES = _PLAIN._replace(end_of_partition=_INT32.pack(0) + _INT16.pack(-1))
_FLEXIBLE = _Layout(_write_compact, _write_compact, b"\x01\x00\x00", b"\x00", bytes(5))


def _layout(version: int) -> _Layout:
    if version >= FIRST_FLEXIBLE_VERSION:
        return _FLEXIBLE
    return _WITH_MESSAGES if version >= FIRST_VERSION_WITH_MESSAGES else _PLAIN


def encode_accepted(
    request: ProduceRequest, version: int, stored: Iterable[tuple[int, int]]
) -> bytearray:
    """Encode the response. `stored`: the base offset and log start offset of each batch, in order.

    For versions from FIRST_VERSION on.
    """
    write_count, write_length, end_of_partition, end_of_topic, end = _layout(version)
    out = bytearray()
    offsets = iter(stored)
    write_count(out, len(request.topic_data))
    for topic in request.topic_data:
        if version >= FIRST_VERSION_BY_ID:
            out += topic.topic_id
        else:
            name = topic.name.encode()
            write_length(out, len(name))
            out += name
        write_count(out, len(topic.partition_data))
        for partition in topic.partition_data:
            base_offset, log_start_offset = next(offsets)
            out += _PARTITION.pack(
                partition.index, 0, base_offset, NO_APPEND_TIME, log_start_offset
            )
            out += end_of_partition
        out += end_of_topic
    out += end
    return out


class SingleAnswer:
    """The response to requests with one batch for the same partition: only the offsets differ."""

    __slots__ = ("_position", "_template")

    def __init__(self, request: ProduceRequest, version: int) -> None:
        """`request`: one of them."""
        layout = _layout(version)
        after = len(layout.end_of_partition) + len(layout.end_of_topic) + len(layout.end)
        self._template = bytes(encode_accepted(request, version, [(0, 0)]))
        self._position = len(self._template) - after - _OFFSETS.size

    def encode(self, base_offset: int, log_start_offset: int) -> bytearray:
        out = bytearray(self._template)
        _OFFSETS.pack_into(out, self._position, base_offset, NO_APPEND_TIME, log_start_offset)
        return out
