"""ListOffsets (key 2): a partition's offset for a timestamp, or its first or last offset.

v0 is supported for clients of Kafka 0.8 and 0.9: it lists the base offsets of segments.
"""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import (
    IGNORABLE,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    String,
    Struct,
    since,
    until,
)


class ListOffsetsPartition(Struct):
    partition_index: Int32
    current_leader_epoch: Annotated[Int32, since(4), IGNORABLE] = -1
    timestamp: Int64
    max_num_offsets: Annotated[Int32, until(0)] = 1


class ListOffsetsTopic(Struct):
    name: String
    partitions: list[ListOffsetsPartition]


class ListOffsetsRequest(
    Message, key=ApiKey.LIST_OFFSETS, versions="0-11", flexible="6+", advertised="1-11"
):
    replica_id: Int32
    isolation_level: Annotated[Int8, since(2)] = 0
    topics: list[ListOffsetsTopic]
    timeout_ms: Annotated[Int32, since(10), IGNORABLE] = 0


class ListOffsetsPartitionResponse(Struct):
    partition_index: Int32
    error_code: Int16 = 0
    old_style_offsets: Annotated[list[Int64], until(0)] = []
    timestamp: Annotated[Int64, since(1)] = -1
    offset: Annotated[Int64, since(1)] = -1
    leader_epoch: Annotated[Int32, since(4)] = -1


class ListOffsetsTopicResponse(Struct):
    name: String
    partitions: list[ListOffsetsPartitionResponse]


class ListOffsetsResponse(
    Message, key=ApiKey.LIST_OFFSETS, versions="0-11", flexible="6+", advertised="1-11"
):
    throttle_time_ms: Annotated[Int32, since(2), IGNORABLE] = 0
    topics: list[ListOffsetsTopicResponse]
