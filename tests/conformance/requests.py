"""Requests to write and to read, and the batches in them."""

import struct
from collections.abc import Iterable

from odradek.protocol.batch_header import stamp_crc
from odradek.protocol.compression import CompressionType
from odradek.protocol.messages.fetch import (
    FetchPartition,
    FetchReplicaState,
    FetchRequest,
    FetchTopic,
)
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceTopicData,
)
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.conformance.conversation import Conversation

BY_NAME = 12  # the last version of Produce and Fetch that names topics
START_MS = 1_700_000_000_000


def batch_of(
    *values: str,
    key: bytes | None = b"key",
    at_ms: int = START_MS,
    compression: CompressionType = CompressionType.NONE,
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional: bool = False,
    control: bool = False,
) -> bytearray:
    """One batch; `producer` is id, epoch and base sequence; records are a second apart."""
    return build_batch(
        [
            Record(key, value.encode(), at_ms + 1000 * index, (("header", b"x"),))
            for index, value in enumerate(values)
        ],
        compression=compression,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        is_transactional=transactional,
        is_control=control,
    )


def changed(batch: bytearray, position: int, code: str, value: int) -> bytearray:
    """The batch with another number at `position`, and a checksum that is right again."""
    copy = bytearray(batch)
    struct.pack_into(f">{code}", copy, position, value)
    stamp_crc(copy)
    return copy


def request_with(
    topic: str,
    records: bytes,
    *,
    partition: int = 0,
    acks: int = -1,
    topic_id: bytes = ZERO_UUID,
    transactional_id: str | None = None,
) -> ProduceRequest:
    data = ProducePartitionData(index=partition, records=records)
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=5000,
        topic_data=[ProduceTopicData(name=topic, topic_id=topic_id, partition_data=[data])],
    )


def produce(
    talk: Conversation,
    topic: str,
    records: bytes,
    *,
    partition: int = 0,
    version: int = BY_NAME,
    acks: int = -1,
    title: str | None = None,
) -> None:
    """Ask a broker to append one field of records."""
    request = request_with(topic, bytes(records), partition=partition, acks=acks)
    talk.ask(request, version, title=title)


def fetch_request(
    topic: str,
    offset: int,
    *,
    partitions: Iterable[int] = (0,),
    topic_id: bytes = ZERO_UUID,
    max_bytes: int = 1 << 20,
    leader_epoch: int = -1,
    last_epoch: int = -1,
    session: tuple[int, int] = (0, -1),
    total_bytes: int = 1 << 25,
    isolation_level: int = 0,
    replica_id: int = -1,
    replica_in_state: bool = False,
    max_wait_ms: int = 0,
) -> FetchRequest:
    """`replica_in_state`: where requests since v15 have the replica id."""
    return FetchRequest(
        replica_id=-1 if replica_in_state else replica_id,
        replica_state=FetchReplicaState(replica_id=replica_id if replica_in_state else -1),
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=total_bytes,
        isolation_level=isolation_level,
        session_id=session[0],
        session_epoch=session[1],
        topics=[
            FetchTopic(
                topic=topic,
                topic_id=topic_id,
                partitions=[
                    FetchPartition(
                        partition=partition,
                        fetch_offset=offset,
                        partition_max_bytes=max_bytes,
                        current_leader_epoch=leader_epoch,
                        last_fetched_epoch=last_epoch,
                    )
                    for partition in partitions
                ],
            )
        ],
    )
