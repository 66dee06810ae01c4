"""ShareGroupHeartbeat (key 76): a member joins, reports, leaves (KIP-932)."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Int16, Int32, Message, String, Struct, Uuid


class ShareGroupHeartbeatRequest(
    Message, key=ApiKey.SHARE_GROUP_HEARTBEAT, versions="1", flexible="0+"
):
    group_id: String
    member_id: String
    member_epoch: Int32
    rack_id: String | None = None
    subscribed_topic_names: list[String] | None = None


class ShareGroupHeartbeatTopicPartitions(Struct):
    topic_id: Uuid
    partitions: list[Int32]


class ShareGroupHeartbeatAssignment(Struct):
    topic_partitions: list[ShareGroupHeartbeatTopicPartitions]


class ShareGroupHeartbeatResponse(
    Message, key=ApiKey.SHARE_GROUP_HEARTBEAT, versions="1", flexible="0+"
):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: ShareGroupHeartbeatAssignment | None = None
