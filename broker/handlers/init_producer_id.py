"""InitProducerId (key 22, v0-6; advertised to v5).

An idempotent producer gets a new id and epoch 0. The response is immediate unless a new block of
ids was allocated: then it waits for the fsync of the metadata log.
v3 can have an earlier id, which has no effect without a transactional id (KIP-360) · v6 adds
two-phase commit (KIP-939).
Not done: transactions. They are refused with the only error after which the producers of Java,
librdkafka and Python do not retry, and a log line gives the reason."""

import logging
from collections.abc import Awaitable

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.authorizer import refusal
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

logger = logging.getLogger("odradek.producers")

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1


def handle(
    context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
    try:
        check_authorized(context, request)
        check(request)
        producer_id = context.broker.controller.producer_ids.take(context.now_ms)
    except ApiError as error:
        return InitProducerIdResponse(
            error_code=error.code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
        )
    response = InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    log = context.broker.metadata_log
    if log.recovery_point >= log.log_end_offset:
        return response
    return respond_when_synced(context, response)


async def respond_when_synced(
    context: RequestContext, response: InitProducerIdResponse
) -> InitProducerIdResponse:
    await context.broker.metadata_sync.sync()
    return response


def check_authorized(context: RequestContext, request: InitProducerIdRequest) -> None:
    """Raise TRANSACTIONAL_ID_AUTHORIZATION_FAILED or CLUSTER_AUTHORIZATION_FAILED."""
    if request.transactional_id is not None:
        transaction = ResourceType.TRANSACTIONAL_ID
        context.check(AclOperation.WRITE, transaction, request.transactional_id)
        if request.enable2_pc:
            context.check(AclOperation.TWO_PHASE_COMMIT, transaction, request.transactional_id)
    # A client that may write to some topic may also write idempotently (KIP-679).
    elif not (
        context.authorize_cluster(AclOperation.IDEMPOTENT_WRITE)
        or context.authorize_any(AclOperation.WRITE, ResourceType.TOPIC)
    ):
        raise refusal(ResourceType.CLUSTER)


def check(request: InitProducerIdRequest) -> None:
    """Raise ApiError for a request that Kafka refuses, and for any transactional id."""
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        raise ApiError(ErrorCode.INVALID_REQUEST, "either the producer id or the epoch is missing")
    if request.transactional_id == "":
        raise ApiError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    if request.transactional_id is not None:
        text = f"transactional.id={request.transactional_id}: transactions are not served yet"
        logger.warning("refused a producer with %s", text)
        raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, text)
