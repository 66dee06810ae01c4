"""ListOffsets (key 2): the offset of a partition at a time, or at its start or end."""

from typing import Annotated

from ..api_keys import ApiKey
from ..schema import IGNORABLE, Int8, Int16, Int32, Int64, Message, String, Struct, since


class ListOffsetsPartition(Struct):
    partition_index: Int32
    current_leader_epoch: Annotated[Int32, since(4), IGNORABLE] = -1
    timestamp: Int64


class ListOffsetsTopic(Struct):
    name: String
    partitions: list[ListOffsetsPartition]


class ListOffsetsRequest(Message, key=ApiKey.LIST_OFFSETS, versions="1-11", flexible="6+"):
    replica_id: Int32
    isolation_level: Annotated[Int8, since(2)] = 0
    topics: list[ListOffsetsTopic]
    timeout_ms: Annotated[Int32, since(10), IGNORABLE] = 0


class ListOffsetsPartitionResponse(Struct):
    partition_index: Int32
    error_code: Int16 = 0
    timestamp: Int64 = -1
    offset: Int64 = -1
    leader_epoch: Annotated[Int32, since(4)] = -1


class ListOffsetsTopicResponse(Struct):
    name: String
    partitions: list[ListOffsetsPartitionResponse]


class ListOffsetsResponse(Message, key=ApiKey.LIST_OFFSETS, versions="1-11", flexible="6+"):
    throttle_time_ms: Annotated[Int32, since(2), IGNORABLE] = 0
    topics: list[ListOffsetsTopicResponse]
