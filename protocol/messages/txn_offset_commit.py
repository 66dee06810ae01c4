"""TxnOffsetCommit (key 28): commit offsets of a group as part of a transaction.

From v6 on, topics are named by id (KIP-1319).
"""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.schema import (
    IGNORABLE,
    Int16,
    Int32,
    Int64,
    Message,
    String,
    Struct,
    Uuid,
    since,
    until,
)


class TxnOffsetCommitRequestPartition(Struct):
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, since(2), IGNORABLE] = -1
    committed_metadata: String | None


class TxnOffsetCommitRequestTopic(Struct):
    name: Annotated[String, until(5), IGNORABLE] = ""
    topic_id: Annotated[Uuid, since(6), IGNORABLE] = ZERO_UUID
    partitions: list[TxnOffsetCommitRequestPartition]


class TxnOffsetCommitRequest(Message, key=ApiKey.TXN_OFFSET_COMMIT, versions="0-6", flexible="3+"):
    transactional_id: String
    group_id: String
    producer_id: Int64
    producer_epoch: Int16
    generation_id_or_member_epoch: Annotated[Int32, since(3)] = -1
    member_id: Annotated[String, since(3)] = ""
    group_instance_id: Annotated[String | None, since(3)] = None
    topics: list[TxnOffsetCommitRequestTopic]


class TxnOffsetCommitResponsePartition(Struct):
    partition_index: Int32
    error_code: Int16 = 0


class TxnOffsetCommitResponseTopic(Struct):
    name: Annotated[String, until(5), IGNORABLE] = ""
    topic_id: Annotated[Uuid, since(6), IGNORABLE] = ZERO_UUID
    partitions: list[TxnOffsetCommitResponsePartition]


class TxnOffsetCommitResponse(Message, key=ApiKey.TXN_OFFSET_COMMIT, versions="0-6", flexible="3+"):
    throttle_time_ms: Int32 = 0
    topics: list[TxnOffsetCommitResponseTopic]
