"""UnregisterController (key 94, v0).

Removes the registration of a controller that is permanently gone. One that Apache Kafka has
registered in this directory can be removed from metadata.version 33 on, this node's cannot."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation
from odradek.protocol.messages.unregister_controller import (
    UnregisterControllerRequest,
    UnregisterControllerResponse,
)


async def handle(
    context: RequestContext, request: UnregisterControllerRequest
) -> UnregisterControllerResponse:
    context.check_cluster(AclOperation.ALTER)
    async with context.broker.admin.operations.deciding:
        context.broker.controller.unregister_controller(request.controller_id, context.now_ms)
    await context.broker.metadata_log.sync()
    return UnregisterControllerResponse()
