"""StreamsGroupTopologyDescriptionUpdate (key 93, v0).

A member of a streams group sends a readable description of its topology, which Kafka hands to a
plugin (KIP-1331). There are no plugins here: it is refused as by a Kafka without one, and no member
is asked for it."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
)


def handle(
    context: RequestContext, request: StreamsGroupTopologyDescriptionUpdateRequest
) -> StreamsGroupTopologyDescriptionUpdateResponse:
    if context.broker.coordinators.serves_streams_groups:
        context.check(AclOperation.READ, ResourceType.GROUP, request.group_id)
    text = "this broker does not keep descriptions of topologies"
    raise ApiError(ErrorCode.UNSUPPORTED_VERSION, text)
