"""ElectLeaders (key 43): elect the preferred leaders of partitions, or unclean ones."""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Int8, Int16, Int32, Message, String, Struct, since


class ElectLeadersTopicPartitions(Struct):
    topic: String
    partitions: list[Int32]


class ElectLeadersRequest(Message, key=ApiKey.ELECT_LEADERS, versions="0-2", flexible="2+"):
    election_type: Annotated[Int8, since(1)] = 0
    topic_partitions: list[ElectLeadersTopicPartitions] | None
    timeout_ms: Int32 = 60000


class ElectLeadersPartitionResult(Struct):
    partition_id: Int32
    error_code: Int16 = 0
    error_message: String | None = None


class ElectLeadersTopicResult(Struct):
    topic: String
    partition_result: list[ElectLeadersPartitionResult]


class ElectLeadersResponse(Message, key=ApiKey.ELECT_LEADERS, versions="0-2", flexible="2+"):
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(1)] = 0
    replica_election_results: list[ElectLeadersTopicResult] = []
