"""The batches of a partition as the broker sends them: their headers, by a hand-made Fetch."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from odradek.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from odradek.protocol.schema import SplicedRecords
from tests.support.wire import WireClient

FETCH_VERSION = 12  # the last that names topics
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")


class StoredBatch(NamedTuple):
    """What the 61 bytes of a batch's header say."""

    base_offset: int
    last_offset: int
    codec: str
    producer_id: int
    base_sequence: int
    record_count: int


def stored_batches(port: int, topic: str, partition: int = 0) -> Iterator[StoredBatch]:
    """All batches of a partition, from the beginning."""
    offset = 0
    with WireClient(port) as client:
        while data := fetch(client, topic, partition, offset):
            for batch in _headers(data):
                offset = batch.last_offset + 1
                yield batch


def fetch(
    client: WireClient, topic: str, partition: int, offset: int, max_bytes: int = 1 << 20
) -> bytes:
    """The record bytes at an offset; empty at the end."""
    request = fetch_request(topic, partition, offset, max_bytes)
    return bytes(fetched(client.ask(request, FetchResponse, FETCH_VERSION)))


def fetch_request(
    topic: str, partition: int, offset: int, max_bytes: int, *, max_wait_ms: int = 0
) -> FetchRequest:
    """A Fetch of one partition; it waits for its first byte, if it may wait at all."""
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    topics = [FetchTopic(topic=topic, partitions=[wanted])]
    min_bytes = 1 if max_wait_ms else 0
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, topics=topics)


def fetched(answer: FetchResponse) -> bytes | memoryview:
    """The record bytes of such a request's answer; fails on an error."""
    found = answer.responses[0].partitions[0]
    assert found.error_code == 0, f"error {found.error_code}"
    assert not isinstance(found.records, SplicedRecords)
    return found.records or b""


def next_offset(data: bytes | memoryview) -> int:
    """The offset behind the last whole batch of an answer; 0 when there is none."""
    return max((batch.last_offset + 1 for batch in _headers(data)), default=0)


def _headers(data: bytes | memoryview) -> Iterator[StoredBatch]:
    position = 0
    while position + 61 <= len(data):
        base_offset, length = struct.unpack_from(">qi", data, position)
        if position + 12 + length > len(data):
            return  # the answer's size cut it
        attributes, last_delta = struct.unpack_from(">hi", data, position + 21)
        producer_id, _, sequence, count = struct.unpack_from(">qhii", data, position + 43)
        codec = CODEC_NAMES[attributes & 7]
        last_offset = base_offset + last_delta
        yield StoredBatch(base_offset, last_offset, codec, producer_id, sequence, count)
        position += 12 + length
