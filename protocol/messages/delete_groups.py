"""DeleteGroups (key 42): delete groups that have no members, with their offsets."""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import IGNORABLE, Int16, Int32, Message, String, Struct, since


class DeleteGroupsRequest(Message, key=ApiKey.DELETE_GROUPS, versions="0-3", flexible="2+"):
    groups_names: list[String]


class DeleteGroupsResult(Struct):
    group_id: String
    error_code: Int16 = 0
    error_message: Annotated[String | None, since(3), IGNORABLE] = None


class DeleteGroupsResponse(Message, key=ApiKey.DELETE_GROUPS, versions="0-3", flexible="2+"):
    throttle_time_ms: Int32 = 0
    results: list[DeleteGroupsResult]
