"""ConsumerGroupDescribe (key 69): state, members and assignments of consumer groups (KIP-848)."""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.primitives import INT32_MIN
from odradek.protocol.schema import (
    IGNORABLE,
    Bool,
    Int8,
    Int16,
    Int32,
    Message,
    String,
    Struct,
    Uuid,
    since,
)


class ConsumerGroupDescribeRequest(
    Message, key=ApiKey.CONSUMER_GROUP_DESCRIBE, versions="0-1", flexible="0+"
):
    group_ids: list[String]
    include_authorized_operations: Bool


class ConsumerGroupDescribeTopicPartitions(Struct):
    topic_id: Uuid
    topic_name: String
    partitions: list[Int32]


class ConsumerGroupDescribeAssignment(Struct):
    topic_partitions: list[ConsumerGroupDescribeTopicPartitions]


class ConsumerGroupDescribeMember(Struct):
    member_id: String
    instance_id: String | None = None
    rack_id: String | None = None
    member_epoch: Int32
    client_id: String
    client_host: String
    subscribed_topic_names: list[String]
    subscribed_topic_regex: String | None = None
    assignment: ConsumerGroupDescribeAssignment
    target_assignment: ConsumerGroupDescribeAssignment
    member_type: Annotated[Int8, since(1), IGNORABLE] = -1


class ConsumerGroupDescribeGroup(Struct):
    error_code: Int16 = 0
    error_message: String | None = None
    group_id: String
    group_state: String
    group_epoch: Int32
    assignment_epoch: Int32
    assignor_name: String
    members: list[ConsumerGroupDescribeMember]
    authorized_operations: Int32 = INT32_MIN


class ConsumerGroupDescribeResponse(
    Message, key=ApiKey.CONSUMER_GROUP_DESCRIBE, versions="0-1", flexible="0+"
):
    throttle_time_ms: Int32 = 0
    groups: list[ConsumerGroupDescribeGroup]
