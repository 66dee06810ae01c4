"""WriteTxnMarkers (key 27): write the markers that end a transaction to its partitions."""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import (
    IGNORABLE,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    String,
    Struct,
    since,
)


class WriteTxnMarkersTopic(Struct):
    name: String
    partition_indexes: list[Int32]


class WriteTxnMarkersMarker(Struct):
    producer_id: Int64
    producer_epoch: Int16
    transaction_result: Bool
    topics: list[WriteTxnMarkersTopic]
    coordinator_epoch: Int32
    transaction_version: Annotated[Int8, since(2), IGNORABLE] = 0


class WriteTxnMarkersRequest(Message, key=ApiKey.WRITE_TXN_MARKERS, versions="1-2", flexible="1+"):
    markers: list[WriteTxnMarkersMarker]


class WriteTxnMarkersPartitionResult(Struct):
    partition_index: Int32
    error_code: Int16 = 0


class WriteTxnMarkersTopicResult(Struct):
    name: String
    partitions: list[WriteTxnMarkersPartitionResult]


class WriteTxnMarkersMarkerResult(Struct):
    producer_id: Int64
    topics: list[WriteTxnMarkersTopicResult]


class WriteTxnMarkersResponse(Message, key=ApiKey.WRITE_TXN_MARKERS, versions="1-2", flexible="1+"):
    markers: list[WriteTxnMarkersMarkerResult]
