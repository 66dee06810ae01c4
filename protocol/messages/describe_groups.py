"""DescribeGroups (key 15): state, members and assignments of classic groups."""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.primitives import INT32_MIN
from odradek.protocol.schema import (
    IGNORABLE,
    Bool,
    Bytes,
    Int16,
    Int32,
    Message,
    String,
    Struct,
    since,
)


class DescribeGroupsRequest(Message, key=ApiKey.DESCRIBE_GROUPS, versions="0-6", flexible="5+"):
    groups: list[String]
    include_authorized_operations: Annotated[Bool, since(3)] = False


class DescribeGroupsMember(Struct):
    member_id: String
    group_instance_id: Annotated[String | None, since(4), IGNORABLE] = None
    client_id: String
    client_host: String
    member_metadata: Bytes
    member_assignment: Bytes


class DescribeGroupsGroup(Struct):
    error_code: Int16 = 0
    error_message: Annotated[String | None, since(6)] = None
    group_id: String
    group_state: String
    protocol_type: String
    protocol_data: String
    members: list[DescribeGroupsMember]
    authorized_operations: Annotated[Int32, since(3)] = INT32_MIN


class DescribeGroupsResponse(Message, key=ApiKey.DESCRIBE_GROUPS, versions="0-6", flexible="5+"):
    throttle_time_ms: Annotated[Int32, since(1), IGNORABLE] = 0
    groups: list[DescribeGroupsGroup]
