"""SyncGroup (key 14): a classic group's leader sends the assignment, members receive theirs."""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import IGNORABLE, Bytes, Int16, Int32, Message, String, Struct, since


class SyncGroupRequestAssignment(Struct):
    member_id: String
    assignment: Bytes


class SyncGroupRequest(Message, key=ApiKey.SYNC_GROUP, versions="0-5", flexible="4+"):
    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: Annotated[String | None, since(3)] = None
    protocol_type: Annotated[String | None, since(5), IGNORABLE] = None
    protocol_name: Annotated[String | None, since(5), IGNORABLE] = None
    assignments: list[SyncGroupRequestAssignment]


class SyncGroupResponse(Message, key=ApiKey.SYNC_GROUP, versions="0-5", flexible="4+"):
    throttle_time_ms: Annotated[Int32, since(1), IGNORABLE] = 0
    error_code: Int16 = 0
    protocol_type: Annotated[String | None, since(5), IGNORABLE] = None
    protocol_name: Annotated[String | None, since(5), IGNORABLE] = None
    assignment: Bytes = b""
