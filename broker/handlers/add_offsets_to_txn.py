"""AddOffsetsToTxn (key 25, v0-4).

Adds the offsets of a group to a transaction: the partition of `__consumer_offsets` in which the
group's offsets are stored. It may be the first request that needs the topic: a producer looks up
the group's coordinator later. Producers of transaction version 2 do not send it (KIP-890).
v2 clients know PRODUCER_FENCED."""

from collections.abc import Awaitable

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.internal_topic import respond_with_topic
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.broker.transactions.producer_errors import known_producer_error
from odradek.coordinator.runtime.producer import ProducerIdAndEpoch
from odradek.protocol.errors import ApiError
from odradek.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from odradek.storage.topic_partition import TopicPartition

FIRST_VERSION_WITH_FENCED = 2


def handle(
    context: RequestContext, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse | Awaitable[AddOffsetsToTxnResponse]:
    try:
        context.check(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
        context.check_group(AclOperation.READ, request.group_id)
    except ApiError as error:
        return AddOffsetsToTxnResponse(error_code=error.code)
    return respond_with_topic(context, context.broker.coordinators.groups.shards, request, respond)


def respond(context: RequestContext, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    shards = context.broker.coordinators.groups.shards
    try:
        context.broker.coordinators.transactions.add_partitions(
            request.transactional_id,
            ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
            {TopicPartition(shards.topic, shards.partition_of(request.group_id))},
            client_version=0,
        )
    except ApiError as error:
        code = known_producer_error(
            error.code, knows_fenced=context.api_version >= FIRST_VERSION_WITH_FENCED
        )
        return AddOffsetsToTxnResponse(error_code=code)
    return AddOffsetsToTxnResponse()
