"""Records of streams groups (KIP-1071) in `__consumer_offsets`: types 17 to 23.

They are like those of a consumer group, with two differences. Tasks are assigned instead of
partitions; a task is one partition of a subtopology. The group also stores the topology of the
application. Type 18, the topics' partitions, was removed before streams groups were released.

Kafka: StreamsCoordinatorRecordHelpers.
"""

from collections.abc import Mapping
from typing import Annotated

from odradek.protocol.schema import (
    IGNORABLE,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    String,
    Struct,
    Uint16,
    tagged,
)

from .group_keys import GroupKey, MemberKey


class StreamsGroupMetadataKey(GroupKey):
    """Type 17: the group's epoch. A tombstone of this record deletes the group."""


class LastAssignmentConfig(Struct):
    key: String
    value: String


class StreamsGroupMetadataValue(Message, versions="0", flexible="0+"):
    epoch: Int32
    metadata_hash: Int64
    validated_topology_epoch: Annotated[Int32, tagged(0)] = -1
    # Kafka's definition has a JSON null as the default, which Kafka's generator ignores. So the
    # default in Kafka is empty.
    last_assignment_configs: Annotated[list[LastAssignmentConfig] | None, tagged(1)] = []
    # The topology whose description Kafka's plugin has stored (-1: none, -2: not known), and the
    # one whose description it has refused for good (-1: none). Since 4.4 (KIP-1331).
    stored_description_topology_epoch: Annotated[Int32, tagged(2)] = -1
    failed_description_topology_epoch: Annotated[Int32, tagged(3)] = -1


class StreamsGroupMemberMetadataKey(MemberKey):
    """Type 19: what a member has reported about itself."""


class Endpoint(Struct):
    host: String
    port: Uint16


class ClientTag(Struct):
    key: String
    value: String


class StreamsGroupMemberMetadataValue(Message, versions="0", flexible="0+"):
    instance_id: String | None
    rack_id: String | None
    client_id: String
    client_host: String
    rebalance_timeout_ms: Int32 = -1
    topology_epoch: Int32
    process_id: String
    user_endpoint: Endpoint | None = None
    client_tags: list[ClientTag]


class StreamsGroupTargetAssignmentMetadataKey(GroupKey):
    """Type 20: the epoch of the group for which the target assignment was made."""


class StreamsGroupTargetAssignmentMetadataValue(Message, versions="0", flexible="0+"):
    assignment_epoch: Int32
    assignment_timestamp: Annotated[Int64, tagged(0), IGNORABLE] = 0


class StreamsGroupTargetAssignmentMemberKey(MemberKey):
    """Type 21: the target assignment of a member."""


class TargetTasks(Struct):
    subtopology_id: String
    partitions: list[Int32]


class StreamsGroupTargetAssignmentMemberValue(Message, versions="0", flexible="0+"):
    active_tasks: list[TargetTasks]
    standby_tasks: list[TargetTasks]
    warmup_tasks: list[TargetTasks]


class StreamsGroupCurrentMemberAssignmentKey(MemberKey):
    """Type 22: the current assignment of a member."""


class CurrentTasks(Struct):
    """`assignment_epochs` has one entry per partition, for active tasks only."""

    subtopology_id: String
    partitions: list[Int32]
    assignment_epochs: Annotated[list[Int32] | None, tagged(0)] = []


class StreamsGroupCurrentMemberAssignmentValue(Message, versions="0", flexible="0+"):
    """`state` is the number of Kafka's streams MemberState."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    active_tasks: list[CurrentTasks]
    standby_tasks: list[CurrentTasks]
    warmup_tasks: list[CurrentTasks]
    active_tasks_pending_revocation: list[CurrentTasks]
    standby_tasks_pending_revocation: list[CurrentTasks]
    warmup_tasks_pending_revocation: list[CurrentTasks]


class StreamsGroupTopologyKey(GroupKey):
    """Type 23: the topology of the application."""


class TopicConfig(Struct):
    key: String
    value: String


class TopicInfo(Struct):
    """An internal topic. 0 partitions: computed; 0 replicas: the default."""

    name: String
    partitions: Int32
    replication_factor: Int16
    topic_configs: list[TopicConfig]


class CopartitionGroup(Struct):
    """Indexes into the lists of the same name in the subtopology."""

    source_topics: list[Int16]
    source_topic_regex: list[Int16]
    repartition_source_topics: list[Int16]


class Subtopology(Struct):
    subtopology_id: String
    source_topics: list[String]
    source_topic_regex: list[String]
    state_changelog_topics: list[TopicInfo]
    repartition_sink_topics: list[String]
    repartition_source_topics: list[TopicInfo]
    copartition_groups: list[CopartitionGroup]


class StreamsGroupTopologyValue(Message, versions="0", flexible="0+"):
    epoch: Int32
    subtopologies: list[Subtopology]


STREAMS_GROUP_TYPES: Mapping[int, tuple[type[Message], type[Message]]] = {
    17: (StreamsGroupMetadataKey, StreamsGroupMetadataValue),
    19: (StreamsGroupMemberMetadataKey, StreamsGroupMemberMetadataValue),
    20: (StreamsGroupTargetAssignmentMetadataKey, StreamsGroupTargetAssignmentMetadataValue),
    21: (StreamsGroupTargetAssignmentMemberKey, StreamsGroupTargetAssignmentMemberValue),
    22: (StreamsGroupCurrentMemberAssignmentKey, StreamsGroupCurrentMemberAssignmentValue),
    23: (StreamsGroupTopologyKey, StreamsGroupTopologyValue),
}
