"""Produce requests with one batch, as producers make them that send a record at a time.

    null transactional id | acks | timeout | 1 topic | 1 partition, index | batch | no tagged fields
    '-------------------------- a target ---------------------------------'

Many such requests begin with the same bytes: only the batch differs. So the bytes before the batch
are kept with what they mean (`Target`), and are not decoded again: equal bytes decode to equal
values. The codec decodes all other requests, and what is not exactly of this form.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceTopicData,
)

from .accepted_produce import FIRST_FLEXIBLE_VERSION, SingleAnswer
from .produced_batches import FIRST_VERSION_BY_ID

TARGETS_KEPT = 4096
_SMALLEST_BYTES = 16  # of a request of the form
_LARGE_BYTES = 1 << 14  # of a batch, plus 1: the length takes more than two bytes
# What follows the target in a request without records: a null, and no tagged fields thrice.
_REST_BYTES = 4


class Target(Struct, frozen=True, gc=False):
    """What a request says before its batch, and how it is answered if the batch is stored."""

    acks: int
    timeout_ms: int
    name: str
    topic_id: bytes
    index: int
    answer: SingleAnswer


class SingleBatch(Struct, frozen=True, gc=False):
    """A request with one batch and no transactional id."""

    target: Target
    records: memoryview

    @property
    def acks(self) -> int:
        return self.target.acks

    def whole(self) -> ProduceRequest:
        """The request as the codec decodes it."""
        return _request(self.target, self.records)


class SingleBatchReader:
    """Decodes the Produce requests of one version, which is flexible. `decode`: the codec's."""

    def __init__(
        self, decode: Callable[[memoryview, int], tuple[ProduceRequest, int]], version: int
    ) -> None:
        assert version >= FIRST_FLEXIBLE_VERSION
        self._decode = decode
        self._version = version
        self._by_id = version >= FIRST_VERSION_BY_ID
        self._targets: dict[bytes, Target] = {}

    def read(self, frame: memoryview, start: int) -> tuple[ProduceRequest | SingleBatch, int]:
        """Decode the request at `start` and return it with its end. Raises DecodeError."""
        if len(frame) < start + _SMALLEST_BYTES:
            return self._decode(frame, start)
        # Up to the partition's index: 8 bytes, the topic's id or name, the count 1, the index.
        position = start + (29 if self._by_id else 13 + frame[start + 8])
        target = self._targets.get(frame[start:position].tobytes())
        if target is None:
            request, end = self._decode(frame, start)
            self._keep_target(request, frame[start:position])
            return request, end
        try:
            size = frame[position]  # of the batch, plus 1
            position += 1
            if size > 0x7F:
                size += (frame[position] - 1) << 7
                position += 1
            end = position + size - 1
            if (
                0 < size < _LARGE_BYTES
                and end + 3 == len(frame)
                and not (frame[end] or frame[end + 1] or frame[end + 2])
            ):
                return SingleBatch(target, frame[position:end]), end + 3
        except IndexError:  # it is cut off
            pass
        return self._decode(frame, start)

    def _keep_target(self, request: ProduceRequest, first_bytes: memoryview) -> None:
        """Remember the bytes before the batch, if the request has the form."""
        topics = request.topic_data
        if (
            request.transactional_id is not None
            or not -1 <= request.acks <= 1
            or len(topics) != 1
            or len(topics[0].partition_data) != 1
        ):
            return
        topic = topics[0]
        index = topic.partition_data[0].index
        target = Target(
            request.acks,
            request.timeout_ms,
            topic.name,
            topic.topic_id,
            index,
            SingleAnswer(request, self._version),
        )
        prefix = bytes(_request(target, None).encode(self._version)[:-_REST_BYTES])
        if first_bytes != prefix:
            return  # the name is long, or a length is not written in the shortest form
        if len(self._targets) >= TARGETS_KEPT:
            self._targets.clear()
        self._targets[prefix] = target


def _request(target: Target, records: memoryview | None) -> ProduceRequest:
    partition = ProducePartitionData(index=target.index, records=records)
    topic = ProduceTopicData(name=target.name, topic_id=target.topic_id, partition_data=[partition])
    return ProduceRequest(acks=target.acks, timeout_ms=target.timeout_ms, topic_data=[topic])
