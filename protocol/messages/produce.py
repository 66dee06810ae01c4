"""Produce (key 0): append batches of records to partitions. v13 names topics by id (KIP-516).

v0-2 are supported for clients of Kafka 0.8 to 0.10, which send message sets (legacy.py). Kafka 4
advertises these versions but does not support them.
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
    Records,
    String,
    Struct,
    Uuid,
    since,
    tagged,
    until,
)

from .node_endpoint import NodeEndpoint


class ProducePartitionData(Struct):
    index: Int32
    records: Records | None = None


class ProduceTopicData(Struct):
    name: Annotated[String, until(12), IGNORABLE] = ""
    topic_id: Annotated[Uuid, since(13), IGNORABLE] = ZERO_UUID
    partition_data: list[ProducePartitionData]


class ProduceRequest(Message, key=ApiKey.PRODUCE, versions="0-13", flexible="9+"):
    transactional_id: Annotated[String | None, since(3)] = None
    acks: Int16
    timeout_ms: Int32
    topic_data: list[ProduceTopicData]


class ProduceRecordError(Struct):
    batch_index: Int32
    batch_index_error_message: String | None = None


class ProduceLeaderIdAndEpoch(Struct):
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class ProducePartitionResponse(Struct):
    index: Int32
    error_code: Int16 = 0
    base_offset: Int64
    log_append_time_ms: Annotated[Int64, since(2), IGNORABLE] = -1
    log_start_offset: Annotated[Int64, since(5), IGNORABLE] = -1
    record_errors: Annotated[list[ProduceRecordError], since(8), IGNORABLE] = []
    error_message: Annotated[String | None, since(8), IGNORABLE] = None
    current_leader: Annotated[ProduceLeaderIdAndEpoch, since(10), tagged(0)] = (
        ProduceLeaderIdAndEpoch()
    )


class ProduceTopicResponse(Struct):
    name: Annotated[String, until(12), IGNORABLE] = ""
    topic_id: Annotated[Uuid, since(13), IGNORABLE] = ZERO_UUID
    partition_responses: list[ProducePartitionResponse]


class ProduceResponse(Message, key=ApiKey.PRODUCE, versions="0-13", flexible="9+"):
    responses: list[ProduceTopicResponse]
    throttle_time_ms: Annotated[Int32, since(1), IGNORABLE] = 0
    node_endpoints: Annotated[list[NodeEndpoint], since(10), tagged(0)] = []
