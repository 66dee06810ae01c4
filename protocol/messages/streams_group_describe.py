"""StreamsGroupDescribe (key 89): state, topology, members of streams groups (KIP-1071)."""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.primitives import INT32_MIN
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
    Uint16,
    since,
)


class StreamsGroupDescribeRequest(
    Message, key=ApiKey.STREAMS_GROUP_DESCRIBE, versions="0-1", flexible="0+"
):
    group_ids: list[String]
    include_authorized_operations: Bool
    include_topology_description: Annotated[Bool, since(1)] = False


class StreamsGroupDescribeKeyValue(Struct):
    key: String
    value: String


class StreamsGroupDescribeTopicInfo(Struct):
    name: String
    partitions: Int32
    replication_factor: Int16
    topic_configs: list[StreamsGroupDescribeKeyValue]


class StreamsGroupDescribeSubtopology(Struct):
    subtopology_id: String
    source_topics: list[String]
    repartition_sink_topics: list[String]
    state_changelog_topics: list[StreamsGroupDescribeTopicInfo]
    repartition_source_topics: list[StreamsGroupDescribeTopicInfo]


class StreamsGroupDescribeTopology(Struct):
    epoch: Int32
    subtopologies: list[StreamsGroupDescribeSubtopology] | None = None


class StreamsGroupDescribeEndpoint(Struct):
    host: String
    port: Uint16


class StreamsGroupDescribeTaskOffset(Struct):
    subtopology_id: String
    partition: Int32
    offset: Int64


class StreamsGroupDescribeTaskIds(Struct):
    subtopology_id: String
    partitions: list[Int32]


class StreamsGroupDescribeAssignment(Struct):
    active_tasks: list[StreamsGroupDescribeTaskIds]
    standby_tasks: list[StreamsGroupDescribeTaskIds]
    warmup_tasks: list[StreamsGroupDescribeTaskIds]


class StreamsGroupDescribeMember(Struct):
    member_id: String
    member_epoch: Int32
    instance_id: String | None = None
    rack_id: String | None = None
    client_id: String
    client_host: String
    topology_epoch: Int32
    process_id: String
    user_endpoint: StreamsGroupDescribeEndpoint | None = None
    client_tags: list[StreamsGroupDescribeKeyValue]
    task_offsets: list[StreamsGroupDescribeTaskOffset]
    task_end_offsets: list[StreamsGroupDescribeTaskOffset]
    assignment: StreamsGroupDescribeAssignment
    target_assignment: StreamsGroupDescribeAssignment
    is_classic: Bool


class StreamsGroupDescribeTopologyDescriptionNode(Struct):
    name: String = ""
    node_type: Int8 = 0
    source_topics: list[String] = []
    sink_topic: String | None = None
    stores: list[String] = []
    successors: list[String] = []


class StreamsGroupDescribeTopologyDescriptionSubtopology(Struct):
    subtopology_id: String
    nodes: list[StreamsGroupDescribeTopologyDescriptionNode]


class StreamsGroupDescribeTopologyDescriptionGlobalStore(Struct):
    source: StreamsGroupDescribeTopologyDescriptionNode
    processor: StreamsGroupDescribeTopologyDescriptionNode


class StreamsGroupDescribeTopologyDescription(Struct):
    subtopologies: list[StreamsGroupDescribeTopologyDescriptionSubtopology]
    global_stores: list[StreamsGroupDescribeTopologyDescriptionGlobalStore]


class StreamsGroupDescribeGroup(Struct):
    error_code: Int16 = 0
    error_message: String | None = None
    group_id: String
    group_state: String
    group_epoch: Int32
    assignment_epoch: Int32
    topology: StreamsGroupDescribeTopology | None = None
    members: list[StreamsGroupDescribeMember]
    authorized_operations: Int32 = INT32_MIN
    topology_description: Annotated[StreamsGroupDescribeTopologyDescription | None, since(1)] = None
    topology_description_status: Annotated[Int8, since(1)] = 0
    assignor_name: Annotated[String | None, since(1), IGNORABLE] = None


class StreamsGroupDescribeResponse(
    Message, key=ApiKey.STREAMS_GROUP_DESCRIBE, versions="0-1", flexible="0+"
):
    throttle_time_ms: Int32 = 0
    groups: list[StreamsGroupDescribeGroup]
