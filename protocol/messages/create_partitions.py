"""CreatePartitions (key 37): increase the number of partitions of topics."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Bool, Int16, Int32, Message, String, Struct


class CreatePartitionsAssignment(Struct):
    broker_ids: list[Int32]


class CreatePartitionsTopic(Struct):
    name: String
    count: Int32
    assignments: list[CreatePartitionsAssignment] | None


class CreatePartitionsRequest(Message, key=ApiKey.CREATE_PARTITIONS, versions="0-3", flexible="2+"):
    topics: list[CreatePartitionsTopic]
    timeout_ms: Int32
    validate_only: Bool


class CreatePartitionsTopicResult(Struct):
    name: String
    error_code: Int16 = 0
    error_message: String | None = None


class CreatePartitionsResponse(
    Message, key=ApiKey.CREATE_PARTITIONS, versions="0-3", flexible="2+"
):
    throttle_time_ms: Int32 = 0
    results: list[CreatePartitionsTopicResult]
