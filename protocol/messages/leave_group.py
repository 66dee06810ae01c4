"""LeaveGroup (key 13): remove members from a classic group.

From v3 on, a request has many members, also by instance id (KIP-345).
"""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import IGNORABLE, Int16, Int32, Message, String, Struct, since, until


class LeaveGroupMemberIdentity(Struct):
    member_id: String
    group_instance_id: String | None = None
    reason: Annotated[String | None, since(5), IGNORABLE] = None


class LeaveGroupRequest(Message, key=ApiKey.LEAVE_GROUP, versions="0-5", flexible="4+"):
    group_id: String
    member_id: Annotated[String, until(2)] = ""
    members: Annotated[list[LeaveGroupMemberIdentity], since(3)] = []


class LeaveGroupMemberResponse(Struct):
    member_id: String
    group_instance_id: String | None
    error_code: Int16 = 0


class LeaveGroupResponse(Message, key=ApiKey.LEAVE_GROUP, versions="0-5", flexible="4+"):
    throttle_time_ms: Annotated[Int32, since(1), IGNORABLE] = 0
    error_code: Int16 = 0
    members: Annotated[list[LeaveGroupMemberResponse], since(3)] = []
