"""ShareGroupDescribe (key 77): state, members and assignments of share groups (KIP-932)."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.primitives import INT32_MIN
from odradek.protocol.schema import Bool, Int16, Int32, Message, String, Struct, Uuid


class ShareGroupDescribeRequest(
    Message, key=ApiKey.SHARE_GROUP_DESCRIBE, versions="1", flexible="0+"
):
    group_ids: list[String]
    include_authorized_operations: Bool


class ShareGroupDescribeTopicPartitions(Struct):
    topic_id: Uuid
    topic_name: String
    partitions: list[Int32]


class ShareGroupDescribeAssignment(Struct):
    topic_partitions: list[ShareGroupDescribeTopicPartitions]


class ShareGroupDescribeMember(Struct):
    member_id: String
    rack_id: String | None = None
    member_epoch: Int32
    client_id: String
    client_host: String
    subscribed_topic_names: list[String]
    assignment: ShareGroupDescribeAssignment


class ShareGroupDescribeGroup(Struct):
    error_code: Int16 = 0
    error_message: String | None = None
    group_id: String
    group_state: String
    group_epoch: Int32
    assignment_epoch: Int32
    assignor_name: String
    members: list[ShareGroupDescribeMember]
    authorized_operations: Int32 = INT32_MIN


class ShareGroupDescribeResponse(
    Message, key=ApiKey.SHARE_GROUP_DESCRIBE, versions="1", flexible="0+"
):
    throttle_time_ms: Int32 = 0
    groups: list[ShareGroupDescribeGroup]
