"""OffsetForLeaderEpoch (key 23): where leader epochs end, by which clients detect truncation."""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import IGNORABLE, Int16, Int32, Int64, Message, String, Struct, since


class OffsetForLeaderPartition(Struct):
    partition: Int32
    current_leader_epoch: Int32 = -1
    leader_epoch: Int32


class OffsetForLeaderTopic(Struct):
    topic: String
    partitions: list[OffsetForLeaderPartition]


class OffsetForLeaderEpochRequest(
    Message, key=ApiKey.OFFSET_FOR_LEADER_EPOCH, versions="2-4", flexible="4+"
):
    replica_id: Annotated[Int32, since(3), IGNORABLE] = -2
    topics: list[OffsetForLeaderTopic]


class OffsetForLeaderPartitionResult(Struct):
    error_code: Int16 = 0
    partition: Int32
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


class OffsetForLeaderTopicResult(Struct):
    topic: String
    partitions: list[OffsetForLeaderPartitionResult]


class OffsetForLeaderEpochResponse(
    Message, key=ApiKey.OFFSET_FOR_LEADER_EPOCH, versions="2-4", flexible="4+"
):
    throttle_time_ms: Int32 = 0
    topics: list[OffsetForLeaderTopicResult]
