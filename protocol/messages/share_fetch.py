"""ShareFetch (key 78): a share group member acquires and acknowledges records (KIP-932)."""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.primitives import INT32_MAX
from odradek.protocol.schema import (
    IGNORABLE,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Records,
    String,
    Struct,
    Uuid,
    since,
)

from .node_endpoint import NodeEndpoint


class ShareFetchAcknowledgementBatch(Struct):
    first_offset: Int64
    last_offset: Int64
    acknowledge_types: list[Int8]


class ShareFetchPartition(Struct):
    partition_index: Int32
    acknowledgement_batches: list[ShareFetchAcknowledgementBatch]


class ShareFetchTopic(Struct):
    topic_id: Uuid
    partitions: list[ShareFetchPartition]


class ShareFetchForgottenTopic(Struct):
    topic_id: Uuid
    partitions: list[Int32]


class ShareFetchRequest(Message, key=ApiKey.SHARE_FETCH, versions="1-2", flexible="0+"):
    group_id: String | None = None
    member_id: String | None
    share_session_epoch: Int32
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = INT32_MAX
    max_records: Int32
    batch_size: Int32
    share_acquire_mode: Annotated[Int8, since(2), IGNORABLE] = 0
    is_renew_ack: Annotated[Bool, since(2)] = False
    topics: list[ShareFetchTopic]
    forgotten_topics_data: list[ShareFetchForgottenTopic]


class ShareFetchLeaderIdAndEpoch(Struct):
    leader_id: Int32
    leader_epoch: Int32


class ShareFetchAcquiredRecords(Struct):
    first_offset: Int64
    last_offset: Int64
    delivery_count: Int16


class ShareFetchPartitionData(Struct):
    partition_index: Int32
    error_code: Int16 = 0
    error_message: String | None = None
    acknowledge_error_code: Int16
    acknowledge_error_message: String | None = None
    current_leader: ShareFetchLeaderIdAndEpoch
    records: Records
    acquired_records: list[ShareFetchAcquiredRecords]


class ShareFetchTopicResponse(Struct):
    topic_id: Uuid
    partitions: list[ShareFetchPartitionData]


class ShareFetchResponse(Message, key=ApiKey.SHARE_FETCH, versions="1-2", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    acquisition_lock_timeout_ms: Int32 = 0
    responses: list[ShareFetchTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = []
