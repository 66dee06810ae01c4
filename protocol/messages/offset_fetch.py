"""OffsetFetch (key 9): read committed offsets of a group.

From v8 on, a request has many groups; from v10 on, topics are named by id. Kafka's definition
declares topics and partitions twice, for v0-7 and for v8 on; here they share one class. v0 is
supported for clients of Kafka 0.8.
"""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.schema import (
    IGNORABLE,
    Bool,
    Int16,
    Int32,
    Int64,
    Message,
    String,
    Struct,
    Uuid,
    between,
    null_since,
    since,
    until,
)


class OffsetFetchRequestTopic(Struct):
    name: Annotated[String, until(9), IGNORABLE] = ""
    topic_id: Annotated[Uuid, since(10), IGNORABLE] = ZERO_UUID
    partition_indexes: list[Int32]


class OffsetFetchRequestGroup(Struct):
    group_id: String
    member_id: Annotated[String | None, since(9), IGNORABLE] = None
    member_epoch: Annotated[Int32, since(9), IGNORABLE] = -1
    topics: list[OffsetFetchRequestTopic] | None


class OffsetFetchRequest(
    Message, key=ApiKey.OFFSET_FETCH, versions="0-10", flexible="6+", advertised="1-10"
):
    group_id: Annotated[String, until(7)] = ""
    topics: Annotated[list[OffsetFetchRequestTopic] | None, until(7), null_since(2)] = []
    groups: Annotated[list[OffsetFetchRequestGroup], since(8)] = []
    require_stable: Annotated[Bool, since(7)] = False


class OffsetFetchResponsePartition(Struct):
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, since(5), IGNORABLE] = -1
    metadata: String | None
    error_code: Int16 = 0


class OffsetFetchResponseTopic(Struct):
    name: Annotated[String, until(9), IGNORABLE] = ""
    topic_id: Annotated[Uuid, since(10), IGNORABLE] = ZERO_UUID
    partitions: list[OffsetFetchResponsePartition]


class OffsetFetchResponseGroup(Struct):
    group_id: String
    topics: list[OffsetFetchResponseTopic]
    error_code: Int16 = 0


class OffsetFetchResponse(
    Message, key=ApiKey.OFFSET_FETCH, versions="0-10", flexible="6+", advertised="1-10"
):
    throttle_time_ms: Annotated[Int32, since(3), IGNORABLE] = 0
    topics: Annotated[list[OffsetFetchResponseTopic], until(7)] = []
    error_code: Annotated[Int16, between(2, 7), IGNORABLE] = 0
    groups: Annotated[list[OffsetFetchResponseGroup], since(8)] = []
