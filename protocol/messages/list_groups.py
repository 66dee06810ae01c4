"""ListGroups (key 16): list the groups. v4 can filter by state, v5 by type."""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import IGNORABLE, Int16, Int32, Message, String, Struct, since


class ListGroupsRequest(Message, key=ApiKey.LIST_GROUPS, versions="0-5", flexible="3+"):
    states_filter: Annotated[list[String], since(4)] = []
    types_filter: Annotated[list[String], since(5)] = []


class ListGroupsGroup(Struct):
    group_id: String
    protocol_type: String
    group_state: Annotated[String, since(4), IGNORABLE] = ""
    group_type: Annotated[String, since(5), IGNORABLE] = ""


class ListGroupsResponse(Message, key=ApiKey.LIST_GROUPS, versions="0-5", flexible="3+"):
    throttle_time_ms: Annotated[Int32, since(1), IGNORABLE] = 0
    error_code: Int16 = 0
    groups: list[ListGroupsGroup] = []
