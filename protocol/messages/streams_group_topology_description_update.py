"""StreamsGroupTopologyDescriptionUpdate (key 93): a readable topology (KIP-1331)."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Int8, Int16, Int32, Message, String, Struct


class StreamsTopologyUpdateNode(Struct):
    name: String
    node_type: Int8
    source_topics: list[String]
    sink_topic: String | None = None
    stores: list[String]
    successors: list[String]


class StreamsTopologyUpdateSubtopology(Struct):
    subtopology_id: String
    nodes: list[StreamsTopologyUpdateNode]


class StreamsTopologyUpdateGlobalStore(Struct):
    source: StreamsTopologyUpdateNode
    processor: StreamsTopologyUpdateNode


class StreamsTopologyUpdateDescription(Struct):
    subtopologies: list[StreamsTopologyUpdateSubtopology]
    global_stores: list[StreamsTopologyUpdateGlobalStore]


class StreamsGroupTopologyDescriptionUpdateRequest(
    Message, key=ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, versions="0", flexible="0+"
):
    group_id: String
    member_id: String
    topology_epoch: Int32
    topology_description: StreamsTopologyUpdateDescription


class StreamsGroupTopologyDescriptionUpdateResponse(
    Message, key=ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, versions="0", flexible="0+"
):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
