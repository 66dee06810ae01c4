"""What a ConsumerGroupHeartbeat must say, before anybody looks at its group.

The member epoch tells what the request is: 0 joins (and must say everything), a positive one goes
on, -1 leaves, -2 leaves for a while as a static member does. From version 1 on it is the client
that draws the member id.

Kafka: GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid.
"""

from collections.abc import Collection

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

from .member import JOINING_EPOCH, LEAVING_EPOCH, LEAVING_STATIC_EPOCH

FIRST_WITH_MEMBER_ID_OF_CLIENT = 1
NO_TIMEOUT = -1
# What Java's String.trim takes off.
BLANKS = "".join(map(chr, range(33)))


def check_heartbeat(
    request: ConsumerGroupHeartbeatRequest, api_version: int, assignors: Collection[str]
) -> None:
    """Raises ApiError: INVALID_REQUEST, UNSUPPORTED_ASSIGNOR."""
    epoch = request.member_epoch
    client_draws_id = api_version >= FIRST_WITH_MEMBER_ID_OF_CLIENT
    if client_draws_id or epoch > JOINING_EPOCH or epoch == LEAVING_EPOCH:
        _check_not_blank("a member id", request.member_id)
    _check_not_blank("a group id", request.group_id)
    _check_not_blank("an instance id", request.instance_id)
    _check_not_blank("a rack id", request.rack_id)
    if epoch == JOINING_EPOCH:
        _check_join(request)
    elif epoch == LEAVING_STATIC_EPOCH:
        if request.instance_id is None:
            raise _invalid("only a member with an instance id leaves for a while")
    elif epoch < LEAVING_STATIC_EPOCH:
        raise _invalid(f"{epoch} is no member epoch")
    assignor = request.server_assignor
    if assignor is not None and assignor not in assignors:
        raise ApiError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"{assignor!r} is not one of the assignors here: {', '.join(assignors)}",
        )


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    """Who joins says all there is to say; a subscription to nothing is one too."""
    if request.rebalance_timeout_ms == NO_TIMEOUT:
        raise _invalid("a member that joins gives its rebalance timeout")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("a member that joins owns nothing, and says so")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid("a member that joins subscribes to topic names or to a regular expression")


def _check_not_blank(what: str, text: str | None) -> None:
    if text is not None and not text.strip(BLANKS):
        raise _invalid(f"{what} is not blank")


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)
