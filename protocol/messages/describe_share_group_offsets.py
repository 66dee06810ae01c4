"""DescribeShareGroupOffsets (key 90): a share group's start offsets (KIP-932)."""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import (
    IGNORABLE,
    Int16,
    Int32,
    Int64,
    Message,
    String,
    Struct,
    Uuid,
    since,
)


class DescribeShareGroupOffsetsRequestTopic(Struct):
    topic_name: String
    partitions: list[Int32]


class DescribeShareGroupOffsetsRequestGroup(Struct):
    group_id: String
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None


class DescribeShareGroupOffsetsRequest(
    Message, key=ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, versions="0-1", flexible="0+"
):
    groups: list[DescribeShareGroupOffsetsRequestGroup]


class DescribeShareGroupOffsetsResponsePartition(Struct):
    partition_index: Int32
    start_offset: Int64
    leader_epoch: Int32
    lag: Annotated[Int64, since(1), IGNORABLE] = -1
    error_code: Int16 = 0
    error_message: String | None = None


class DescribeShareGroupOffsetsResponseTopic(Struct):
    topic_name: String
    topic_id: Uuid
    partitions: list[DescribeShareGroupOffsetsResponsePartition]


class DescribeShareGroupOffsetsResponseGroup(Struct):
    group_id: String
    topics: list[DescribeShareGroupOffsetsResponseTopic]
    error_code: Int16 = 0
    error_message: String | None = None


class DescribeShareGroupOffsetsResponse(
    Message, key=ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, versions="0-1", flexible="0+"
):
    throttle_time_ms: Int32 = 0
    groups: list[DescribeShareGroupOffsetsResponseGroup]
