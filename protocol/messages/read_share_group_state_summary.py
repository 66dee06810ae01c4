"""ReadShareGroupStateSummary (key 87): read the state of share-partitions without its batches.

v1 adds the number of records after the start offset whose delivery is complete. Internal, KIP-932.
"""

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


class ReadShareGroupStateSummaryPartition(Struct):
    partition: Int32
    leader_epoch: Int32


class ReadShareGroupStateSummaryTopic(Struct):
    topic_id: Uuid
    partitions: list[ReadShareGroupStateSummaryPartition]


class ReadShareGroupStateSummaryRequest(
    Message, key=ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, versions="0-1", flexible="0+"
):
    group_id: String
    topics: list[ReadShareGroupStateSummaryTopic]


class ReadShareGroupStateSummaryPartitionResult(Struct):
    partition: Int32
    error_code: Int16 = 0
    error_message: String | None = None
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Annotated[Int32, since(1), IGNORABLE] = -1


class ReadShareGroupStateSummaryTopicResult(Struct):
    topic_id: Uuid
    partitions: list[ReadShareGroupStateSummaryPartitionResult]


class ReadShareGroupStateSummaryResponse(
    Message, key=ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, versions="0-1", flexible="0+"
):
    results: list[ReadShareGroupStateSummaryTopicResult]
