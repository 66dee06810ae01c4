"""ReadShareGroupState (key 84): read a share group's state of partitions. Internal, KIP-932."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Int8, Int16, Int32, Int64, Message, String, Struct, Uuid


class ReadShareGroupStatePartition(Struct):
    partition: Int32
    leader_epoch: Int32


class ReadShareGroupStateTopic(Struct):
    topic_id: Uuid
    partitions: list[ReadShareGroupStatePartition]


class ReadShareGroupStateRequest(
    Message, key=ApiKey.READ_SHARE_GROUP_STATE, versions="0", flexible="0+"
):
    group_id: String
    topics: list[ReadShareGroupStateTopic]


class ReadShareGroupStateBatch(Struct):
    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    delivery_count: Int16


class ReadShareGroupStatePartitionResult(Struct):
    partition: Int32
    error_code: Int16 = 0
    error_message: String | None = None
    state_epoch: Int32
    start_offset: Int64
    state_batches: list[ReadShareGroupStateBatch]


class ReadShareGroupStateTopicResult(Struct):
    topic_id: Uuid
    partitions: list[ReadShareGroupStatePartitionResult]


class ReadShareGroupStateResponse(
    Message, key=ApiKey.READ_SHARE_GROUP_STATE, versions="0", flexible="0+"
):
    results: list[ReadShareGroupStateTopicResult]
