"""EndTxn (key 26, v0-5).

Commits or aborts a transaction. The response is sent when the decision is in the log; usually the
markers are written by then, too.
v2 clients know PRODUCER_FENCED · v5 gives each transaction an epoch of its own: the response has
the producer's next id and epoch (KIP-890)."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.broker.transactions.producer_errors import known_producer_error
from odradek.coordinator.runtime.producer import ProducerIdAndEpoch
from odradek.protocol.errors import ApiError
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

FIRST_VERSION_WITH_FENCED = 2
FIRST_REQUEST_WITH_EPOCH_BUMP = 5


def handle(context: RequestContext, request: EndTxnRequest) -> EndTxnResponse:
    is_v2 = context.api_version >= FIRST_REQUEST_WITH_EPOCH_BUMP
    try:
        transaction = ResourceType.TRANSACTIONAL_ID
        context.check(AclOperation.WRITE, transaction, request.transactional_id)
        producer = context.broker.coordinators.transactions.end(
            request.transactional_id,
            ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
            commit=request.committed,
            client_version=2 if is_v2 else 0,
        )
    except ApiError as error:
        return EndTxnResponse(
            error_code=known_producer_error(
                error.code, knows_fenced=context.api_version >= FIRST_VERSION_WITH_FENCED
            )
        )
    return EndTxnResponse(producer_id=producer.producer_id, producer_epoch=producer.epoch)
