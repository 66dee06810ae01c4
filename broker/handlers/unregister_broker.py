"""UnregisterBroker (key 64, v0).

Forgets a broker that is gone for ever. There is no other, and this one is refused: Kafka would take
it out of all its partitions and be a cluster without brokers until the next start."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation
from odradek.protocol.errors import ApiError
from odradek.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


def handle(context: RequestContext, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    try:
        context.check_cluster(AclOperation.ALTER)
        context.broker.controller.unregister_broker(request.broker_id)
    except ApiError as error:
        return UnregisterBrokerResponse(error_code=error.code, error_message=error.message)
    return UnregisterBrokerResponse()
