"""UnregisterBroker (key 64, v0).

Removes a broker that is permanently gone. There is no other broker, and a request for this one is
refused: Kafka would remove it from all its partitions, and the cluster would have no broker until
the next start."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation
from odradek.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


def handle(context: RequestContext, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    context.check_cluster(AclOperation.ALTER)
    context.broker.controller.unregister_broker(request.broker_id)
    return UnregisterBrokerResponse()
