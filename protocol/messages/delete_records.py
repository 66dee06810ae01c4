"""DeleteRecords (key 21): raise the log start offset of partitions."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Int16, Int32, Int64, Message, String, Struct


class DeleteRecordsPartition(Struct):
    partition_index: Int32
    offset: Int64


class DeleteRecordsTopic(Struct):
    name: String
    partitions: list[DeleteRecordsPartition]


class DeleteRecordsRequest(Message, key=ApiKey.DELETE_RECORDS, versions="0-2", flexible="2+"):
    topics: list[DeleteRecordsTopic]
    timeout_ms: Int32


class DeleteRecordsPartitionResult(Struct):
    partition_index: Int32
    low_watermark: Int64
    error_code: Int16 = 0


class DeleteRecordsTopicResult(Struct):
    name: String
    partitions: list[DeleteRecordsPartitionResult]


class DeleteRecordsResponse(Message, key=ApiKey.DELETE_RECORDS, versions="0-2", flexible="2+"):
    throttle_time_ms: Int32 = 0
    topics: list[DeleteRecordsTopicResult]
