"""Produce requests with one batch, as producers make them that send a record at a time.

    key, version | correlation id | client id, no tagged fields | null transactional id | acks |
    timeout | 1 topic | 1 partition, index | batch | no tagged fields

Many such requests are the same but for the correlation id and the batch. So the other bytes before
the batch are kept with what they mean (`Target`), and are not decoded again: equal bytes decode to
equal values. The codec decodes all other requests, and what is not exactly of this form.
"""

from __future__ import annotations

import struct

from msgspec import Struct

from odradek.broker.requests.route import Route
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.headers import RequestHeader
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceTopicData,
)

from .accepted_produce import FIRST_FLEXIBLE_VERSION, SingleAnswer
from .produced_batches import FIRST_VERSION_BY_ID

TARGETS_KEPT = 4096
# When this many are kept, one of this many new targets replaces the oldest.
REPLACED_EVERY = 64
LONGEST_CLIENT_ID = 255  # in bytes
_LONGEST_NAME = 0x7F - 1  # in bytes: its length takes one byte
_LARGE_BYTES = 1 << 21  # of a batch, plus 1: the length takes more than three bytes
# What follows the target in a request without records: a null, and no tagged fields thrice.
_REST_BYTES = 4

# The key and version in one number, the correlation id, the length of the client id. The key of
# Produce is 0.
_START = struct.Struct(">iih")
_SAME_FROM = 8  # after the correlation id
_CLIENT_ID_AT = _START.size
_LENGTH = struct.Struct(">h")
_NO_TAGS = b"\0"
_LAST_VERSION = ProduceRequest.SPEC.versions.highest


class Target(Struct, frozen=True):
    """What a request says before its batch, and how it is answered if the batch is stored."""

    route: Route
    client_id: str
    acks: int
    timeout_ms: int
    name: str
    topic_id: bytes
    index: int
    answer: SingleAnswer


class SingleBatch(Struct, frozen=True, gc=False):
    """A request with one batch and no transactional id."""

    target: Target
    acks: int
    correlation_id: int
    records: memoryview

    def whole(self) -> ProduceRequest:
        """The request as the codec decodes it."""
        target = self.target
        return _request(target, self.records)


class SingleBatches:
    """Finds requests of the form whose targets are known."""

    key = ApiKey.PRODUCE

    def __init__(self) -> None:
        self._targets: dict[tuple[int, bytes], Target] = {}  # by version and first bytes
        self._refused = 0  # targets that came when the table was full

    def find(self, frame: memoryview) -> SingleBatch | None:
        """Return the request of a frame, or None if it must be decoded."""
        try:
            version, correlation_id, length = _START.unpack_from(frame)
            if not FIRST_FLEXIBLE_VERSION <= version <= _LAST_VERSION:
                return None  # of an old producer, or not of a producer
            position = _end_of_target(frame, version, length)
            target = self._targets.get((version, frame[_SAME_FROM:position].tobytes()))
            if target is None:
                return None
            size = frame[position]  # of the batch, plus 1
            position += 1
            if size > 0x7F:
                size += (frame[position] - 1) << 7
                position += 1
                if frame[position - 1] > 0x7F:
                    size += (frame[position] - 1) << 14
                    position += 1
            end = position + size - 1
            if (
                0 < size < _LARGE_BYTES
                and end + 3 == len(frame)
                and not (frame[end] or frame[end + 1] or frame[end + 2])
            ):
                return SingleBatch(target, target.acks, correlation_id, frame[position:end])
        except (IndexError, struct.error):  # it is cut off
            pass
        return None

    def keep(
        self, frame: memoryview, header: RequestHeader, request: ProduceRequest, route: Route
    ) -> None:
        """Remember the bytes before the batch of a decoded request, if it has the form."""
        if not _has_form(request, route.version):
            return
        client_id = header.client_id.encode()
        start = _LENGTH.pack(len(client_id)) + client_id + _NO_TAGS
        is_plain = len(client_id) <= LONGEST_CLIENT_ID and frame[_SAME_FROM:][: len(start)] == start
        if not is_plain or not self._make_room():
            return
        topic = request.topic_data[0]
        target = Target(
            route,
            header.client_id,
            request.acks,
            request.timeout_ms,
            topic.name,
            topic.topic_id,
            topic.partition_data[0].index,
            SingleAnswer(request, route.version),
        )
        first = start + bytes(_request(target, None).encode(route.version)[:-_REST_BYTES])
        # Otherwise a length is not written in the shortest form.
        if frame[_SAME_FROM:][: len(first)] == first:
            self._targets[route.version, first] = target

    def _make_room(self) -> bool:
        """Whether one more may be kept: seldom if there are more than there is room for."""
        if len(self._targets) < TARGETS_KEPT:
            return True
        self._refused += 1
        if self._refused % REPLACED_EVERY:
            return False
        del self._targets[next(iter(self._targets))]
        return True


def _has_form(request: ProduceRequest, version: int) -> bool:
    """Whether requests like this one can be found by their first bytes."""
    topics = request.topic_data
    if (
        version < FIRST_FLEXIBLE_VERSION
        or request.transactional_id is not None
        or not -1 <= request.acks <= 1
        or len(topics) != 1
        or len(topics[0].partition_data) != 1
        or len(topics[0].name.encode()) > _LONGEST_NAME
    ):
        return False
    records = topics[0].partition_data[0].records
    return isinstance(records, memoryview) and len(records) + 1 < _LARGE_BYTES


def _end_of_target(frame: memoryview, version: int, client_id_bytes: int) -> int:
    """Where the partition's index ends: 8 bytes, the topic's id or name, the count 1, the index.

    Raises IndexError if the frame is shorter.
    """
    body = client_id_bytes + _CLIENT_ID_AT + len(_NO_TAGS)
    return body + (29 if version >= FIRST_VERSION_BY_ID else 13 + frame[body + 8])


def _request(target: Target, records: memoryview | None) -> ProduceRequest:
    partition = ProducePartitionData(index=target.index, records=records)
    topic = ProduceTopicData(name=target.name, topic_id=target.topic_id, partition_data=[partition])
    return ProduceRequest(acks=target.acks, timeout_ms=target.timeout_ms, topic_data=[topic])
