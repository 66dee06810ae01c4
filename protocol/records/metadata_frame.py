"""The frame around each record of `__cluster_metadata`. Kafka: AbstractApiMessageSerde.

    uvarint frame version = 1 | uvarint record type | uvarint version | message

On disk: never renumber.
"""

from typing import NamedTuple

from odradek.protocol.primitives import read_uvarint
from odradek.protocol.schema import DecodeError

FRAME_VERSION = 1


class MetadataFrame(NamedTuple):
    """The record's type, its version, and the position of the message in the value."""

    record_type: int
    version: int
    position: int


def read_frame(value: bytes) -> MetadataFrame:
    """Read the frame. Raises DecodeError, also for another frame version, as Kafka does."""
    try:
        frame, position = read_uvarint(value, 0)
        record_type, position = read_uvarint(value, position)
        version, position = read_uvarint(value, position)
    except (IndexError, ValueError) as error:
        raise DecodeError(f"the frame of a metadata record is broken: {error}") from None
    if frame != FRAME_VERSION:
        raise DecodeError(f"frame version {frame} of a metadata record is not {FRAME_VERSION}")
    return MetadataFrame(record_type, version, position)


def check_end(value: bytes, position: int, record_type: int) -> None:
    """Raise DecodeError if bytes follow the message, which ends at `position`; so does Kafka."""
    if position < len(value):
        raise DecodeError(f"Found {len(value) - position} byte(s) of garbage after {record_type}")
