"""Metadata (key 3): the brokers, the topics, and the leaders and replicas of partitions.

Null topics (v1 and above), or no topics in v0, ask for all. From v10 on, topics have ids; from v12
on, a request may name topics by id.
"""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.primitives import INT32_MIN, ZERO_UUID
from odradek.protocol.schema import (
    IGNORABLE,
    Bool,
    Int16,
    Int32,
    Message,
    String,
    Struct,
    Uuid,
    between,
    null_since,
    since,
)


class MetadataRequestTopic(Struct):
    topic_id: Annotated[Uuid, since(10), IGNORABLE] = ZERO_UUID
    name: Annotated[String | None, null_since(10)]


class MetadataRequest(Message, key=ApiKey.METADATA, versions="0-13", flexible="9+"):
    topics: Annotated[list[MetadataRequestTopic] | None, null_since(1)]
    allow_auto_topic_creation: Annotated[Bool, since(4)] = True
    include_cluster_authorized_operations: Annotated[Bool, between(8, 10)] = False
    include_topic_authorized_operations: Annotated[Bool, since(8)] = False


class MetadataResponseBroker(Struct):
    node_id: Int32
    host: String
    port: Int32
    rack: Annotated[String | None, since(1), IGNORABLE] = None


class MetadataResponsePartition(Struct):
    error_code: Int16 = 0
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Annotated[Int32, since(7), IGNORABLE] = -1
    replica_nodes: list[Int32]
    isr_nodes: list[Int32]
    offline_replicas: Annotated[list[Int32], since(5), IGNORABLE] = []


class MetadataResponseTopic(Struct):
    error_code: Int16 = 0
    name: Annotated[String | None, null_since(12)]
    topic_id: Annotated[Uuid, since(10), IGNORABLE] = ZERO_UUID
    is_internal: Annotated[Bool, since(1), IGNORABLE] = False
    partitions: list[MetadataResponsePartition]
    topic_authorized_operations: Annotated[Int32, since(8)] = INT32_MIN


class MetadataResponse(Message, key=ApiKey.METADATA, versions="0-13", flexible="9+"):
    throttle_time_ms: Annotated[Int32, since(3), IGNORABLE] = 0
    brokers: list[MetadataResponseBroker] = []
    cluster_id: Annotated[String | None, since(2), IGNORABLE] = None
    controller_id: Annotated[Int32, since(1), IGNORABLE] = -1
    topics: list[MetadataResponseTopic] = []
    cluster_authorized_operations: Annotated[Int32, between(8, 10)] = INT32_MIN
    error_code: Annotated[Int16, since(13), IGNORABLE] = 0
