"""DescribeProducers (key 61): the producers and open transactions of partitions."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Int16, Int32, Int64, Message, String, Struct


class DescribeProducersTopic(Struct):
    name: String
    partition_indexes: list[Int32]


class DescribeProducersRequest(Message, key=ApiKey.DESCRIBE_PRODUCERS, versions="0", flexible="0+"):
    topics: list[DescribeProducersTopic]


class DescribeProducersProducerState(Struct):
    producer_id: Int64
    producer_epoch: Int32
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32
    current_txn_start_offset: Int64 = -1


class DescribeProducersPartitionResponse(Struct):
    partition_index: Int32
    error_code: Int16 = 0
    error_message: String | None = None
    active_producers: list[DescribeProducersProducerState]


class DescribeProducersTopicResponse(Struct):
    name: String
    partitions: list[DescribeProducersPartitionResponse]


class DescribeProducersResponse(
    Message, key=ApiKey.DESCRIBE_PRODUCERS, versions="0", flexible="0+"
):
    throttle_time_ms: Int32 = 0
    topics: list[DescribeProducersTopicResponse]
