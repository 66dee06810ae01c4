"""InitProducerId (key 22, v0-6; advertised to v5).

An idempotent producer gets a new id and epoch 0. A transactional producer gets the id of its
transactional id and a new epoch, which fences older instances. If it has a new id, the response
waits until the metadata log is synced: the block of ids that it is from may be a new record there.
v3 adds the id and epoch of a producer that continues after an error (KIP-360) · v4 clients know
PRODUCER_FENCED · v6 adds two-phase commit (KIP-939).
Not done: keeping a prepared transaction, which Kafka 4.4 refuses as well."""

from collections.abc import Awaitable

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.authorizer import refusal
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.broker.transactions.producer_errors import known_producer_error
from odradek.coordinator.runtime.producer import ProducerIdAndEpoch
from odradek.coordinator.transactions.transaction_coordinator import InitCall
from odradek.protocol.batch_header import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

FIRST_VERSION_WITH_FENCED = 4


def handle(
    context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
    try:
        check_authorized(context, request)
        expected = expected_producer(request)
        if not needs_producer_id(context, request, expected):
            return respond(context, request, expected, None)
        new_producer_id = context.broker.controller.producer_ids.take(context.now_ms)
    except ApiError as error:
        return response_with_error(context, error)
    log = context.broker.controller.log
    if log.recovery_point >= log.log_end_offset:
        return respond(context, request, expected, new_producer_id)
    return respond_when_synced(context, request, expected, new_producer_id)


async def respond_when_synced(
    context: RequestContext,
    request: InitProducerIdRequest,
    expected: ProducerIdAndEpoch | None,
    new_producer_id: int,
) -> InitProducerIdResponse:
    await context.broker.metadata_log.sync()
    return respond(context, request, expected, new_producer_id)


def respond(
    context: RequestContext,
    request: InitProducerIdRequest,
    expected: ProducerIdAndEpoch | None,
    new_producer_id: int | None,
) -> InitProducerIdResponse:
    if request.transactional_id is None:
        assert new_producer_id is not None
        return InitProducerIdResponse(producer_id=new_producer_id, producer_epoch=0)
    call = init_call(request, request.transactional_id, expected)
    try:
        producer = context.broker.coordinators.transactions.init_producer_id(call, new_producer_id)
    except ApiError as error:
        return response_with_error(context, error)
    return InitProducerIdResponse(producer_id=producer.producer_id, producer_epoch=producer.epoch)


def needs_producer_id(
    context: RequestContext, request: InitProducerIdRequest, expected: ProducerIdAndEpoch | None
) -> bool:
    if request.transactional_id is None:
        return True
    call = init_call(request, request.transactional_id, expected)
    return context.broker.coordinators.transactions.needs_producer_id(call)


def init_call(
    request: InitProducerIdRequest, transactional_id: str, expected: ProducerIdAndEpoch | None
) -> InitCall:
    return InitCall(
        transactional_id,
        request.transaction_timeout_ms,
        expected,
        is_two_phase=request.enable2_pc,
        keeps_prepared=request.keep_prepared_txn,
    )


def check_authorized(context: RequestContext, request: InitProducerIdRequest) -> None:
    """Raises TRANSACTIONAL_ID_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED."""
    if request.transactional_id is not None:
        transaction = ResourceType.TRANSACTIONAL_ID
        context.check(AclOperation.WRITE, transaction, request.transactional_id)
        if request.enable2_pc:
            context.check(AclOperation.TWO_PHASE_COMMIT, transaction, request.transactional_id)
    # A client that may write to some topic may also write idempotently (KIP-679).
    elif not (
        context.authorize_cluster(AclOperation.IDEMPOTENT_WRITE, is_logged=False)
        or context.authorize_any(AclOperation.WRITE, ResourceType.TOPIC)
    ):
        raise refusal(ResourceType.CLUSTER)


def expected_producer(request: InitProducerIdRequest) -> ProducerIdAndEpoch | None:
    """What the producer has; None if it is new. Raises INVALID_REQUEST for half of it."""
    has_id = request.producer_id != NO_PRODUCER_ID
    if has_id != (request.producer_epoch != NO_PRODUCER_EPOCH):
        raise ApiError(ErrorCode.INVALID_REQUEST, "producer id and epoch come together or not")
    return ProducerIdAndEpoch(request.producer_id, request.producer_epoch) if has_id else None


def response_with_error(context: RequestContext, error: ApiError) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=known_producer_error(
            error.code, knows_fenced=context.api_version >= FIRST_VERSION_WITH_FENCED
        ),
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
    )
