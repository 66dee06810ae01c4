"""ShareAcknowledge (key 79): acknowledge records that a share group member acquired (KIP-932)."""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import (
    IGNORABLE,
    Bool,
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

from .node_endpoint import NodeEndpoint


class ShareAcknowledgeAcknowledgementBatch(Struct):
    first_offset: Int64
    last_offset: Int64
    acknowledge_types: list[Int8]


class ShareAcknowledgePartition(Struct):
    partition_index: Int32
    acknowledgement_batches: list[ShareAcknowledgeAcknowledgementBatch]


class ShareAcknowledgeTopic(Struct):
    topic_id: Uuid
    partitions: list[ShareAcknowledgePartition]


class ShareAcknowledgeRequest(Message, key=ApiKey.SHARE_ACKNOWLEDGE, versions="1-2", flexible="0+"):
    group_id: String | None = None
    member_id: String | None
    share_session_epoch: Int32
    is_renew_ack: Annotated[Bool, since(2)] = False
    topics: list[ShareAcknowledgeTopic]


class ShareAcknowledgeLeaderIdAndEpoch(Struct):
    leader_id: Int32
    leader_epoch: Int32


class ShareAcknowledgePartitionData(Struct):
    partition_index: Int32
    error_code: Int16 = 0
    error_message: String | None = None
    current_leader: ShareAcknowledgeLeaderIdAndEpoch


class ShareAcknowledgeTopicResponse(Struct):
    topic_id: Uuid
    partitions: list[ShareAcknowledgePartitionData]


class ShareAcknowledgeResponse(
    Message, key=ApiKey.SHARE_ACKNOWLEDGE, versions="1-2", flexible="0+"
):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    acquisition_lock_timeout_ms: Annotated[Int32, since(2), IGNORABLE] = 0
    responses: list[ShareAcknowledgeTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = []
