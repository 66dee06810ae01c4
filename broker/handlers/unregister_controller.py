"""UnregisterController (key 94, v0).

Removes the registration of a controller that is permanently gone. Only one that Apache Kafka
registered in this data directory can be removed, and only with metadata.version 33 (4.4-IV2) or
later. This node's own registration cannot be removed."""

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
    async with context.broker.admin.operations.decision_lock:
        context.broker.controller.unregister_controller(request.controller_id, context.now_ms)
    await context.broker.metadata_log.sync()
    return UnregisterControllerResponse()
