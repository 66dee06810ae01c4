"""InitializeShareGroupState (key 83): create a share group's state of partitions.

Internal, KIP-932.
"""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Int16, Int32, Int64, Message, String, Struct, Uuid


class InitializeShareGroupStatePartition(Struct):
    partition: Int32
    state_epoch: Int32
    start_offset: Int64


class InitializeShareGroupStateTopic(Struct):
    topic_id: Uuid
    partitions: list[InitializeShareGroupStatePartition]


class InitializeShareGroupStateRequest(
    Message, key=ApiKey.INITIALIZE_SHARE_GROUP_STATE, versions="0", flexible="0+"
):
    group_id: String
    topics: list[InitializeShareGroupStateTopic]


class InitializeShareGroupStatePartitionResult(Struct):
    partition: Int32
    error_code: Int16 = 0
    error_message: String | None = None


class InitializeShareGroupStateTopicResult(Struct):
    topic_id: Uuid
    partitions: list[InitializeShareGroupStatePartitionResult]


class InitializeShareGroupStateResponse(
    Message, key=ApiKey.INITIALIZE_SHARE_GROUP_STATE, versions="0", flexible="0+"
):
    results: list[InitializeShareGroupStateTopicResult]
