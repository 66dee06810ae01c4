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
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
    )
    answer = client.ask(request, FetchResponse, FETCH_VERSION)
    found = answer.responses[0].partitions[0]
    assert found.error_code == 0, f"error {found.error_code}"
    return bytes(found.records or b"")


def _headers(data: bytes) -> Iterator[StoredBatch]:
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
