"""Fetch (key 1): read records of partitions from given offsets on.

v0-3 are supported for clients of Kafka 0.8 to 0.10, which read message sets (legacy.py).
"""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.primitives import INT32_MAX, INT64_MAX, ZERO_UUID
from odradek.protocol.schema import (
    IGNORABLE,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Records,
    String,
    Struct,
    Uuid,
    between,
    since,
    tagged,
    until,
)

from .node_endpoint import NodeEndpoint


class FetchReplicaState(Struct):
    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


class FetchPartition(Struct):
    partition: Int32
    current_leader_epoch: Annotated[Int32, since(9), IGNORABLE] = -1
    fetch_offset: Int64
    last_fetched_epoch: Annotated[Int32, since(12)] = -1
    log_start_offset: Annotated[Int64, since(5), IGNORABLE] = -1
    partition_max_bytes: Int32
    replica_directory_id: Annotated[Uuid, since(17), tagged(0), IGNORABLE] = ZERO_UUID
    high_watermark: Annotated[Int64, since(18), tagged(1), IGNORABLE] = INT64_MAX


class FetchTopic(Struct):
    topic: Annotated[String, until(12), IGNORABLE] = ""
    topic_id: Annotated[Uuid, since(13), IGNORABLE] = ZERO_UUID
    partitions: list[FetchPartition]


class ForgottenTopic(Struct):
    topic: Annotated[String, between(7, 12), IGNORABLE] = ""
    topic_id: Annotated[Uuid, since(13), IGNORABLE] = ZERO_UUID
    partitions: list[Int32]


class FetchRequest(Message, key=ApiKey.FETCH, versions="0-18", flexible="12+", advertised="4-18"):
    cluster_id: Annotated[String | None, since(12), tagged(0), IGNORABLE] = None
    replica_id: Annotated[Int32, until(14)] = -1
    replica_state: Annotated[FetchReplicaState, since(15), tagged(1)] = FetchReplicaState()
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Annotated[Int32, since(3), IGNORABLE] = INT32_MAX
    isolation_level: Annotated[Int8, since(4), IGNORABLE] = 0
    session_id: Annotated[Int32, since(7), IGNORABLE] = 0
    session_epoch: Annotated[Int32, since(7), IGNORABLE] = -1
    topics: list[FetchTopic]
    forgotten_topics_data: Annotated[list[ForgottenTopic], since(7)] = []
    rack_id: Annotated[String, since(11), IGNORABLE] = ""


class FetchEpochEndOffset(Struct):
    epoch: Int32 = -1
    end_offset: Int64 = -1


class FetchLeaderIdAndEpoch(Struct):
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class FetchSnapshotId(Struct):
    end_offset: Int64 = -1
    epoch: Int32 = -1


class FetchAbortedTransaction(Struct):
    producer_id: Int64
    first_offset: Int64


class FetchPartitionData(Struct):
    partition_index: Int32
    error_code: Int16 = 0
    high_watermark: Int64
    last_stable_offset: Annotated[Int64, since(4), IGNORABLE] = -1
    log_start_offset: Annotated[Int64, since(5), IGNORABLE] = -1
    diverging_epoch: Annotated[FetchEpochEndOffset, since(12), tagged(0)] = FetchEpochEndOffset()
    current_leader: Annotated[FetchLeaderIdAndEpoch, since(12), tagged(1)] = FetchLeaderIdAndEpoch()
    snapshot_id: Annotated[FetchSnapshotId, since(12), tagged(2)] = FetchSnapshotId()
    aborted_transactions: Annotated[list[FetchAbortedTransaction] | None, since(4), IGNORABLE] = []
    preferred_read_replica: Annotated[Int32, since(11)] = -1
    records: Records | None = None


class FetchTopicResponse(Struct):
    topic: Annotated[String, until(12), IGNORABLE] = ""
    topic_id: Annotated[Uuid, since(13), IGNORABLE] = ZERO_UUID
    partitions: list[FetchPartitionData]


class FetchResponse(Message, key=ApiKey.FETCH, versions="0-18", flexible="12+", advertised="4-18"):
    throttle_time_ms: Annotated[Int32, since(1), IGNORABLE] = 0
    error_code: Annotated[Int16, since(7), IGNORABLE] = 0
    session_id: Annotated[Int32, since(7)] = 0
    responses: list[FetchTopicResponse]
    node_endpoints: Annotated[list[NodeEndpoint], since(16), tagged(0)] = []
