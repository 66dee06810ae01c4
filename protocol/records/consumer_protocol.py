"""The messages that consumers of a classic group exchange through the coordinator.

The metadata in a JoinGroup with protocol type "consumer" is a subscription. The assignment in a
SyncGroup is an assignment. Each follows an int16 version. A reader decodes a newer version as the
newest that it knows, because newer versions only append fields.

For a classic group the broker reads only the subscribed topics, the first field in every version:
it must not expire the offsets of a topic that is being consumed. When a consumer group has classic
members, the broker reads their subscriptions and writes their assignments.

Kafka: ConsumerProtocol.
"""

import struct
from collections.abc import Iterator
from typing import Annotated, TypeVar

from odradek.protocol.primitives import Step
from odradek.protocol.schema import (
    IGNORABLE,
    Bytes,
    DecodeError,
    Int32,
    Message,
    String,
    Struct,
    codec_for,
    since,
)

PROTOCOL_TYPE = "consumer"
_VERSION = struct.Struct(">h")
_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")
_TOPICS_OF_A_PART = 1000

M = TypeVar("M", bound=Message)


class ConsumerTopicPartitions(Struct):
    topic: String
    partitions: list[Int32]


class ConsumerProtocolSubscription(Message, versions="0-3"):
    topics: list[String]
    user_data: Bytes | None = None
    owned_partitions: Annotated[list[ConsumerTopicPartitions], since(1), IGNORABLE] = []
    generation_id: Annotated[Int32, since(2), IGNORABLE] = -1
    rack_id: Annotated[String | None, since(3), IGNORABLE] = None


class ConsumerProtocolAssignment(Message, versions="0-3"):
    assigned_partitions: list[ConsumerTopicPartitions]
    user_data: Bytes | None = None


def decode_versioned(message: type[M], data: bytes, step: Step | None = None) -> M:
    """Decode a message that follows its version. Raises DecodeError, and what `step` raises.

    A newer version is decoded as the newest, without the fields that were added later. `step` is
    called before each item of an array.
    """
    version = min(_first_version(message, data), message.SPEC.versions.highest)
    if step is None:
        return message.decode(data, version, _VERSION.size)
    decoded: M = codec_for(message, version).decode_in_steps(memoryview(data), _VERSION.size, step)[
        0
    ]
    return decoded


def version_for(message: type[Message], data: bytes) -> int:
    """The version in which to write to the member that wrote `data`. Raises DecodeError."""
    version = _first_version(message, data)
    versions = message.SPEC.versions
    if version < versions.lowest:
        raise DecodeError(f"{message.__name__} has no version {version}")
    return min(version, versions.highest)


def _first_version(message: type[Message], data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise DecodeError(f"{message.__name__}: {len(data)} bytes hold no version")
    version: int = _VERSION.unpack_from(data)[0]
    return version


def encode_versioned(message: Message, version: int, step: Step | None = None) -> bytes:
    """Encode a message, preceded by its version. `step` is called before each item of an array."""
    if step is None:
        return _VERSION.pack(version) + message.encode(version)
    out = bytearray(_VERSION.pack(version))
    codec_for(type(message), version).write_in_steps(message, out, [], step)
    return bytes(out)


def subscribed_topics(metadata: bytes) -> frozenset[str]:
    """The topics in a member's metadata. Raises DecodeError."""
    return frozenset(topic for part in topics_in_parts(metadata) for topic in part)


def topics_in_parts(metadata: bytes) -> Iterator[list[str]]:
    """Iterate over the topics in a member's metadata, at most a thousand in one item.

    Raises DecodeError, perhaps after some of them.
    """
    what = ConsumerProtocolSubscription.__name__
    version = _first_version(ConsumerProtocolSubscription, metadata)
    if version < 0:
        raise DecodeError(f"{what} has no version {version}")
    try:
        left, position = _INT.unpack_from(metadata, _VERSION.size)[0], _VERSION.size + _INT.size
        if left < 0:
            raise DecodeError(f"{what}: topics is null")
        while left:
            part: list[str] = []
            for _ in range(min(left, _TOPICS_OF_A_PART)):
                topic, position = _sized(metadata, position, _SHORT)
                part.append(topic.decode("utf-8", "replace"))
            left -= len(part)
            yield part
        if _INT.unpack_from(metadata, position)[0] >= 0:  # else there is no user data
            _sized(metadata, position, _INT)
    except struct.error as error:
        raise DecodeError(f"{what}: {error}") from None


def _sized(data: bytes, position: int, length: struct.Struct) -> tuple[bytes, int]:
    """Return the bytes whose length is stored before them, and the position after them."""
    start = position + length.size
    end = start + length.unpack_from(data, position)[0]
    if not start <= end <= len(data):
        raise DecodeError(f"{end - start} bytes at {start} do not fit the {len(data)} bytes")
    return data[start:end], end
