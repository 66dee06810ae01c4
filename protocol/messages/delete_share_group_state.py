"""DeleteShareGroupState (key 86): delete a share group's state of partitions. Internal, KIP-932."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Int16, Int32, Message, String, Struct, Uuid


class DeleteShareGroupStatePartition(Struct):
    partition: Int32


class DeleteShareGroupStateTopic(Struct):
    topic_id: Uuid
    partitions: list[DeleteShareGroupStatePartition]


class DeleteShareGroupStateRequest(
    Message, key=ApiKey.DELETE_SHARE_GROUP_STATE, versions="0", flexible="0+"
):
    group_id: String
    topics: list[DeleteShareGroupStateTopic]


class DeleteShareGroupStatePartitionResult(Struct):
    partition: Int32
    error_code: Int16 = 0
    error_message: String | None = None


class DeleteShareGroupStateTopicResult(Struct):
    topic_id: Uuid
    partitions: list[DeleteShareGroupStatePartitionResult]


class DeleteShareGroupStateResponse(
    Message, key=ApiKey.DELETE_SHARE_GROUP_STATE, versions="0", flexible="0+"
):
    results: list[DeleteShareGroupStateTopicResult]
