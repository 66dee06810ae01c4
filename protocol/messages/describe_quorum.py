"""DescribeQuorum (key 55): voters, observers and leader of the metadata log (KIP-595)."""

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
    Uint16,
    Uuid,
    since,
)


class DescribeQuorumRequestPartitionData(Struct):
    partition_index: Int32


class DescribeQuorumRequestTopicData(Struct):
    topic_name: String
    partitions: list[DescribeQuorumRequestPartitionData]


class DescribeQuorumRequest(Message, key=ApiKey.DESCRIBE_QUORUM, versions="0-2", flexible="0+"):
    topics: list[DescribeQuorumRequestTopicData]


class DescribeQuorumReplicaState(Struct):
    replica_id: Int32
    replica_directory_id: Annotated[Uuid, since(2)] = ZERO_UUID
    log_end_offset: Int64
    last_fetch_timestamp: Annotated[Int64, since(1), IGNORABLE] = -1
    last_caught_up_timestamp: Annotated[Int64, since(1), IGNORABLE] = -1


class DescribeQuorumResponsePartitionData(Struct):
    partition_index: Int32
    error_code: Int16 = 0
    error_message: Annotated[String | None, since(2), IGNORABLE] = ""
    leader_id: Int32
    leader_epoch: Int32
    high_watermark: Int64
    current_voters: list[DescribeQuorumReplicaState]
    observers: list[DescribeQuorumReplicaState]


class DescribeQuorumResponseTopicData(Struct):
    topic_name: String
    partitions: list[DescribeQuorumResponsePartitionData]


class DescribeQuorumListener(Struct):
    name: String
    host: String
    port: Uint16


class DescribeQuorumNode(Struct):
    node_id: Int32
    listeners: list[DescribeQuorumListener]


class DescribeQuorumResponse(Message, key=ApiKey.DESCRIBE_QUORUM, versions="0-2", flexible="0+"):
    error_code: Int16 = 0
    error_message: Annotated[String | None, since(2), IGNORABLE] = ""
    topics: list[DescribeQuorumResponseTopicData] = []
    nodes: Annotated[list[DescribeQuorumNode], since(2)] = []
