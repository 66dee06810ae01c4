"""Finds the group that a request names."""

from __future__ import annotations

from odradek.broker.console.calls import Call
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.any_group.group import Group
from odradek.coordinator.groups.group_state import GroupState
from odradek.protocol.errors import ApiError, ErrorCode


def find_group(
    call: Call, group_id: str, operation: AclOperation = AclOperation.DESCRIBE
) -> tuple[Group, GroupState]:
    """Return a group, and the state of its partition of `__consumer_offsets`.

    Raises ApiError: GROUP_AUTHORIZATION_FAILED if the client may not perform the operation,
    GROUP_ID_NOT_FOUND; COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR.
    """
    call.check(operation, ResourceType.GROUP, group_id)
    shards = call.observed.broker.coordinators.groups.shards
    if not shards.is_open:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    state = shards.of(group_id).state
    return state.any_group(group_id), state
