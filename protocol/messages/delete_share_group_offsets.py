"""DeleteShareGroupOffsets (key 92): delete a share group's offsets of topics (KIP-932)."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Int16, Int32, Message, String, Struct, Uuid


class DeleteShareGroupOffsetsRequestTopic(Struct):
    topic_name: String


class DeleteShareGroupOffsetsRequest(
    Message, key=ApiKey.DELETE_SHARE_GROUP_OFFSETS, versions="0", flexible="0+"
):
    group_id: String
    topics: list[DeleteShareGroupOffsetsRequestTopic]


class DeleteShareGroupOffsetsResponseTopic(Struct):
    topic_name: String
    topic_id: Uuid
    error_code: Int16 = 0
    error_message: String | None = None


class DeleteShareGroupOffsetsResponse(
    Message, key=ApiKey.DELETE_SHARE_GROUP_OFFSETS, versions="0", flexible="0+"
):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    responses: list[DeleteShareGroupOffsetsResponseTopic] = []
