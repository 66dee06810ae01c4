"""OffsetCommit (key 8): commit offsets of a group. v10 names topics by id.

v0-1 are supported for clients of Kafka 0.8.
"""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.schema import (
    IGNORABLE,
    Int16,
    Int32,
    Int64,
    Message,
    String,
    Struct,
    Uuid,
    between,
    since,
    until,
)


class OffsetCommitRequestPartition(Struct):
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, since(6), IGNORABLE] = -1
    commit_timestamp: Annotated[Int64, between(1, 1)] = -1
    committed_metadata: String | None


class OffsetCommitRequestTopic(Struct):
    name: Annotated[String, until(9), IGNORABLE] = ""
    topic_id: Annotated[Uuid, since(10), IGNORABLE] = ZERO_UUID
    partitions: list[OffsetCommitRequestPartition]


class OffsetCommitRequest(
    Message, key=ApiKey.OFFSET_COMMIT, versions="0-10", flexible="8+", advertised="2-10"
):
    group_id: String
    generation_id_or_member_epoch: Annotated[Int32, since(1), IGNORABLE] = -1
    member_id: Annotated[String, since(1), IGNORABLE] = ""
    group_instance_id: Annotated[String | None, since(7)] = None
    retention_time_ms: Annotated[Int64, between(2, 4), IGNORABLE] = -1
    topics: list[OffsetCommitRequestTopic]


class OffsetCommitResponsePartition(Struct):
    partition_index: Int32
    error_code: Int16 = 0


class OffsetCommitResponseTopic(Struct):
    name: Annotated[String, until(9), IGNORABLE] = ""
    topic_id: Annotated[Uuid, since(10), IGNORABLE] = ZERO_UUID
    partitions: list[OffsetCommitResponsePartition]


class OffsetCommitResponse(
    Message, key=ApiKey.OFFSET_COMMIT, versions="0-10", flexible="8+", advertised="2-10"
):
    throttle_time_ms: Annotated[Int32, since(3), IGNORABLE] = 0
    topics: list[OffsetCommitResponseTopic]
