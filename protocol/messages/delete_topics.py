"""DeleteTopics (key 20): delete topics by name, from v6 on also by id."""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.schema import (
    IGNORABLE,
    Int16,
    Int32,
    Message,
    String,
    Struct,
    Uuid,
    null_since,
    since,
    until,
)


class DeleteTopicsTopic(Struct):
    name: String | None = None
    topic_id: Uuid


class DeleteTopicsRequest(Message, key=ApiKey.DELETE_TOPICS, versions="1-6", flexible="4+"):
    topics: Annotated[list[DeleteTopicsTopic], since(6)] = []
    topic_names: Annotated[list[String], until(5), IGNORABLE] = []
    timeout_ms: Int32


class DeleteTopicsResult(Struct):
    name: Annotated[String | None, null_since(6)]
    topic_id: Annotated[Uuid, since(6), IGNORABLE] = ZERO_UUID
    error_code: Int16 = 0
    error_message: Annotated[String | None, since(5), IGNORABLE] = None


class DeleteTopicsResponse(Message, key=ApiKey.DELETE_TOPICS, versions="1-6", flexible="4+"):
    throttle_time_ms: Int32 = 0
    responses: list[DeleteTopicsResult]
