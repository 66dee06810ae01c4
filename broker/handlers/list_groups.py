"""ListGroups (key 16, v0-5).

Lists the groups of this broker.
v4 filter by state (KIP-518) · v5 filter by type (KIP-848); both without regard to case."""

from ...coordinator.classic_group import ClassicGroup
from ...protocol.errors import ApiError
from ...protocol.messages.list_groups import (
    ListGroupsGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from ..context import RequestContext

CLASSIC = "classic"


def handle(context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    states = {state.lower().strip() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    try:
        groups = list(context.broker.groups.groups())
    except ApiError as error:
        return ListGroupsResponse(error_code=error.code)
    return ListGroupsResponse(
        groups=[
            listed(group)
            for group in groups
            if (not states or group.state.value.lower() in states)
            and (not types or CLASSIC in types)
        ]
    )


def listed(group: ClassicGroup) -> ListGroupsGroup:
    return ListGroupsGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=group.state.value,
        group_type=CLASSIC,
    )
