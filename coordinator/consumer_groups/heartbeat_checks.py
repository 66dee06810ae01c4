"""Validates the fields of a ConsumerGroupHeartbeat, without looking at the group.

The member epoch gives the kind of request: 0 joins (all fields are required), a positive epoch is a
heartbeat, -1 leaves, -2 leaves temporarily (static members only). From version 1 on the client
chooses the member id.

Kafka: GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid.
"""

from collections.abc import Collection

from odradek.coordinator.modern_groups.heartbeat_fields import (
    NO_TIMEOUT,
    check_not_blank,
    invalid_request,
)
from odradek.coordinator.modern_groups.member import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    LEAVING_STATIC_EPOCH,
)
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

FIRST_WITH_MEMBER_ID_OF_CLIENT = 1


def check_heartbeat(
    request: ConsumerGroupHeartbeatRequest, api_version: int, assignors: Collection[str]
) -> None:
    """Raise ApiError INVALID_REQUEST or UNSUPPORTED_ASSIGNOR for a request that is not valid."""
    epoch = request.member_epoch
    client_draws_id = api_version >= FIRST_WITH_MEMBER_ID_OF_CLIENT
    if client_draws_id or epoch > JOINING_EPOCH or epoch == LEAVING_EPOCH:
        check_not_blank("a member id", request.member_id)
    check_not_blank("a group id", request.group_id)
    check_not_blank("an instance id", request.instance_id)
    check_not_blank("a rack id", request.rack_id)
    if epoch == JOINING_EPOCH:
        _check_join(request)
    elif epoch == LEAVING_STATIC_EPOCH:
        if request.instance_id is None:
            raise invalid_request(
                "only a member with an instance id may leave temporarily (epoch -2)"
            )
    elif epoch < LEAVING_STATIC_EPOCH:
        raise invalid_request(f"{epoch} is not a member epoch")
    assignor = request.server_assignor
    if assignor is not None and assignor not in assignors:
        raise ApiError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"{assignor!r} is not one of the assignors here: {', '.join(assignors)}",
        )


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    """Check a join. A subscription to no topics is valid."""
    if request.rebalance_timeout_ms == NO_TIMEOUT:
        raise invalid_request("a joining member must set its rebalance timeout")
    if request.topic_partitions is None or request.topic_partitions:
        raise invalid_request("a joining member must send an empty list of owned partitions")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise invalid_request(
            "a joining member must subscribe to topic names or to a regular expression"
        )
