"""WriteShareGroupState (key 85): store a share group's state of partitions.

Internal, KIP-932.
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
    Uuid,
    since,
)


class WriteShareGroupStateBatch(Struct):
    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    delivery_count: Int16


class WriteShareGroupStatePartition(Struct):
    partition: Int32
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Annotated[Int32, since(1), IGNORABLE] = -1
    state_batches: list[WriteShareGroupStateBatch]


class WriteShareGroupStateTopic(Struct):
    topic_id: Uuid
    partitions: list[WriteShareGroupStatePartition]


class WriteShareGroupStateRequest(
    Message, key=ApiKey.WRITE_SHARE_GROUP_STATE, versions="0-1", flexible="0+"
):
    group_id: String
    topics: list[WriteShareGroupStateTopic]


class WriteShareGroupStatePartitionResult(Struct):
    partition: Int32
    error_code: Int16 = 0
    error_message: String | None = None


class WriteShareGroupStateTopicResult(Struct):
    topic_id: Uuid
    partitions: list[WriteShareGroupStatePartitionResult]


class WriteShareGroupStateResponse(
    Message, key=ApiKey.WRITE_SHARE_GROUP_STATE, versions="0-1", flexible="0+"
):
    results: list[WriteShareGroupStateTopicResult]
