"""AlterPartitionReassignments (key 45): move replicas between brokers, or cancel it (KIP-455)."""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import IGNORABLE, Bool, Int16, Int32, Message, String, Struct, since


class AlterPartitionReassignmentsPartition(Struct):
    partition_index: Int32
    replicas: list[Int32] | None = None


class AlterPartitionReassignmentsTopic(Struct):
    name: String
    partitions: list[AlterPartitionReassignmentsPartition]


class AlterPartitionReassignmentsRequest(
    Message, key=ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions="0-1", flexible="0+"
):
    timeout_ms: Int32 = 60000
    allow_replication_factor_change: Annotated[Bool, since(1)] = True
    topics: list[AlterPartitionReassignmentsTopic]


class AlterPartitionReassignmentsPartitionResponse(Struct):
    partition_index: Int32
    error_code: Int16 = 0
    error_message: String | None = None


class AlterPartitionReassignmentsTopicResponse(Struct):
    name: String
    partitions: list[AlterPartitionReassignmentsPartitionResponse]


class AlterPartitionReassignmentsResponse(
    Message, key=ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions="0-1", flexible="0+"
):
    throttle_time_ms: Int32 = 0
    allow_replication_factor_change: Annotated[Bool, since(1), IGNORABLE] = True
    error_code: Int16 = 0
    error_message: String | None = None
    responses: list[AlterPartitionReassignmentsTopicResponse] = []
