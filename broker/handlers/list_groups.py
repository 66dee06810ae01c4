"""ListGroups (key 16, v0-5).

Lists the groups of this broker, including those of types that are stored but not served.
v4 can select states (KIP-518) · v5 can select types (KIP-848). Both ignore case, and an unknown
state or type matches no group. Kafka finds NotReady, a state of streams groups, only as not_ready;
here both names find it."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.classic_groups.group import ClassicState
from odradek.coordinator.runtime.steps import free
from odradek.protocol.messages.list_groups import (
    ListGroupsGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)


def handle(context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    sees_all = context.authorize_cluster(AclOperation.DESCRIBE, is_logged=False)
    states = {state.lower().strip() for state in context.sliced(request.states_filter)}
    if "not_ready" in states:
        states.add("notready")
    types = {kind.lower() for kind in context.sliced(request.types_filter)}
    groups = list(context.broker.coordinators.groups.admin.groups())
    listed = [
        ListGroupsGroup(
            group_id=group.group_id,
            protocol_type=group.listed_protocol_type,
            group_state=group.state_name,
            group_type=group.group_type,
        )
        for group in context.sliced(groups)
        if group.state_name != ClassicState.DEAD.value  # it was deleted in an earlier slice
        and (not states or group.state_name.lower() in states)
        and (not types or group.group_type in types)
        and (
            sees_all
            or context.authorize(
                AclOperation.DESCRIBE, ResourceType.GROUP, group.group_id, is_logged=False
            )
        )
    ]
    free(context.step, states, types)
    return ListGroupsResponse(groups=listed)
