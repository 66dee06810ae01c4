"""JoinGroup (key 11): a member joins a classic group, and waits for the others.

From v5 on, members may be static (KIP-345).
"""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import (
    IGNORABLE,
    Bool,
    Bytes,
    Int16,
    Int32,
    Message,
    String,
    Struct,
    null_since,
    since,
)


class JoinGroupRequestProtocol(Struct):
    name: String
    metadata: Bytes


class JoinGroupRequest(Message, key=ApiKey.JOIN_GROUP, versions="0-9", flexible="6+"):
    group_id: String
    session_timeout_ms: Int32
    rebalance_timeout_ms: Annotated[Int32, since(1), IGNORABLE] = -1
    member_id: String
    group_instance_id: Annotated[String | None, since(5)] = None
    protocol_type: String
    protocols: list[JoinGroupRequestProtocol]
    reason: Annotated[String | None, since(8), IGNORABLE] = None


class JoinGroupResponseMember(Struct):
    member_id: String
    group_instance_id: Annotated[String | None, since(5), IGNORABLE] = None
    metadata: Bytes


class JoinGroupResponse(Message, key=ApiKey.JOIN_GROUP, versions="0-9", flexible="6+"):
    throttle_time_ms: Annotated[Int32, since(2), IGNORABLE] = 0
    error_code: Int16 = 0
    generation_id: Int32 = -1
    protocol_type: Annotated[String | None, since(7), IGNORABLE] = None
    protocol_name: Annotated[String | None, null_since(7)] = None
    leader: String = ""
    skip_assignment: Annotated[Bool, since(9)] = False
    member_id: String = ""
    members: list[JoinGroupResponseMember] = []
