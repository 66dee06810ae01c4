"""CreateTopics (key 19): create topics, or only validate the request."""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.schema import (
    IGNORABLE,
    Bool,
    Int8,
    Int16,
    Int32,
    Message,
    String,
    Struct,
    Uuid,
    since,
    tagged,
)


class CreateTopicsAssignment(Struct):
    partition_index: Int32
    broker_ids: list[Int32]


class CreateTopicsConfig(Struct):
    name: String
    value: String | None


class CreateTopicsTopic(Struct):
    name: String
    num_partitions: Int32
    replication_factor: Int16
    assignments: list[CreateTopicsAssignment]
    configs: list[CreateTopicsConfig]


class CreateTopicsRequest(Message, key=ApiKey.CREATE_TOPICS, versions="2-7", flexible="5+"):
    topics: list[CreateTopicsTopic]
    timeout_ms: Int32 = 60000
    validate_only: Bool = False


class CreateTopicsResultConfig(Struct):
    name: String
    value: String | None
    read_only: Bool
    config_source: Int8 = -1
    is_sensitive: Bool


class CreateTopicsResult(Struct):
    name: String
    topic_id: Annotated[Uuid, since(7), IGNORABLE] = ZERO_UUID
    error_code: Int16 = 0
    error_message: String | None = None
    topic_config_error_code: Annotated[Int16, since(5), tagged(0), IGNORABLE] = 0
    num_partitions: Annotated[Int32, since(5), IGNORABLE] = -1
    replication_factor: Annotated[Int16, since(5), IGNORABLE] = -1
    configs: Annotated[list[CreateTopicsResultConfig] | None, since(5), IGNORABLE] = []


class CreateTopicsResponse(Message, key=ApiKey.CREATE_TOPICS, versions="2-7", flexible="5+"):
    throttle_time_ms: Int32 = 0
    topics: list[CreateTopicsResult]
