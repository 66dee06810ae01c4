"""StreamsGroupHeartbeat (key 88): a member joins, reports its tasks, leaves (KIP-1071)."""

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
    Uint16,
    since,
    until,
)


class StreamsGroupHeartbeatKeyValue(Struct):
    key: String
    value: String


class StreamsGroupHeartbeatTopicInfo(Struct):
    name: String
    partitions: Int32
    replication_factor: Int16
    topic_configs: list[StreamsGroupHeartbeatKeyValue]


class StreamsGroupHeartbeatCopartitionGroup(Struct):
    source_topics: list[Int16]
    source_topic_regex: list[Int16]
    repartition_source_topics: list[Int16]


class StreamsGroupHeartbeatSubtopology(Struct):
    subtopology_id: String
    source_topics: list[String]
    source_topic_regex: list[String]
    state_changelog_topics: list[StreamsGroupHeartbeatTopicInfo]
    repartition_sink_topics: list[String]
    repartition_source_topics: list[StreamsGroupHeartbeatTopicInfo]
    copartition_groups: list[StreamsGroupHeartbeatCopartitionGroup]


class StreamsGroupHeartbeatTopology(Struct):
    epoch: Int32
    subtopologies: list[StreamsGroupHeartbeatSubtopology]


class StreamsGroupHeartbeatTaskIds(Struct):
    subtopology_id: String
    partitions: list[Int32]


class StreamsGroupHeartbeatEndpoint(Struct):
    host: String
    port: Uint16


class StreamsGroupHeartbeatTaskOffset(Struct):
    subtopology_id: String
    partition: Int32
    offset: Int64


class StreamsGroupHeartbeatRequest(
    Message, key=ApiKey.STREAMS_GROUP_HEARTBEAT, versions="0-1", flexible="0+"
):
    group_id: String
    member_id: String
    member_epoch: Int32
    endpoint_information_epoch: Int32
    instance_id: String | None = None
    rack_id: String | None = None
    rebalance_timeout_ms: Int32 = -1
    topology: StreamsGroupHeartbeatTopology | None = None
    active_tasks: list[StreamsGroupHeartbeatTaskIds] | None = None
    standby_tasks: list[StreamsGroupHeartbeatTaskIds] | None = None
    warmup_tasks: list[StreamsGroupHeartbeatTaskIds] | None = None
    process_id: String | None = None
    user_endpoint: StreamsGroupHeartbeatEndpoint | None = None
    client_tags: list[StreamsGroupHeartbeatKeyValue] | None = None
    task_offsets: list[StreamsGroupHeartbeatTaskOffset] | None = None
    task_end_offsets: list[StreamsGroupHeartbeatTaskOffset] | None = None
    shutdown_application: Bool = False


class StreamsGroupHeartbeatStatus(Struct):
    status_code: Int8
    status_detail: String


class StreamsGroupHeartbeatTopicPartition(Struct):
    topic: String
    partitions: list[Int32]


class StreamsGroupHeartbeatEndpointToPartitions(Struct):
    user_endpoint: StreamsGroupHeartbeatEndpoint
    active_partitions: list[StreamsGroupHeartbeatTopicPartition]
    standby_partitions: list[StreamsGroupHeartbeatTopicPartition]


class StreamsGroupHeartbeatResponse(
    Message, key=ApiKey.STREAMS_GROUP_HEARTBEAT, versions="0-1", flexible="0+"
):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    member_id: String = ""
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    acceptable_recovery_lag_legacy: Annotated[Int32, until(0)] = 0
    task_offset_interval_ms: Int32 = 0
    acceptable_recovery_lag: Annotated[Int64, since(1), IGNORABLE] = -1
    # Kafka's definition has a JSON null as the default, which Kafka's generator ignores. So the
    # default in Kafka is empty.
    status: list[StreamsGroupHeartbeatStatus] | None = []
    active_tasks: list[StreamsGroupHeartbeatTaskIds] | None = None
    standby_tasks: list[StreamsGroupHeartbeatTaskIds] | None = None
    warmup_tasks: list[StreamsGroupHeartbeatTaskIds] | None = None
    topology_description_required: Annotated[Bool, since(1)] = False
    endpoint_information_epoch: Int32 = 0
    partitions_by_user_endpoint: list[StreamsGroupHeartbeatEndpointToPartitions] | None = None
