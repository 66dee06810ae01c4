"""What the requests that describe groups of one modern type have in common.

They are ConsumerGroupDescribe, ShareGroupDescribe and StreamsGroupDescribe. A group is described
only to a client that may describe all of its topics, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from odradek.broker.security.operations import NOT_REQUESTED, AclOperation, ResourceType
from odradek.protocol.errors import ApiError, ErrorCode

from .context import RequestContext

# Kafka's text for groups whose members subscribe to topics.
TOPIC_REFUSED_TEXT = (
    "The group has described topic(s) that the client is not authorized to describe."
)

D = TypeVar("D")
# Makes the entry of a group that is not described: its id, the error, and a message.
Refuse = Callable[[str, ErrorCode, str | None], D]


class DescribeRequest(Protocol):
    """One of these requests."""

    @property
    def group_ids(self) -> Sequence[str]: ...

    @property
    def include_authorized_operations(self) -> bool: ...


def describe_groups(
    context: RequestContext,
    request: DescribeRequest,
    *,
    is_served: bool,
    describe: Callable[[str, int], D],
    topics_of: Callable[[D], Iterable[str]],
    refuse: Refuse[D],
    topic_refused_text: str = TOPIC_REFUSED_TEXT,
) -> list[D]:
    """Describe the groups of a request. One fails without the others.

    `describe` takes a group id and the client's operations on the group, and raises ApiError.
    `topics_of` returns the topics of a description; some may repeat.
    """

    def entry(group_id: str) -> D:
        if not is_served:
            return refuse(group_id, ErrorCode.UNSUPPORTED_VERSION, None)
        if not context.authorize(AclOperation.DESCRIBE, ResourceType.GROUP, group_id):
            return refuse(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED, None)
        if not group_id:
            return refuse(group_id, ErrorCode.INVALID_GROUP_ID, None)
        operations = (
            context.authorized_operations(ResourceType.GROUP, group_id)
            if request.include_authorized_operations
            else NOT_REQUESTED
        )
        try:
            description = describe(group_id, operations)
        except ApiError as error:
            not_found = error.code is ErrorCode.GROUP_ID_NOT_FOUND
            return refuse(group_id, error.code, error.message if not_found else None)
        for name in context.sliced(dict.fromkeys(context.sliced(topics_of(description)))):
            if not context.authorize(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
                return refuse(group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, topic_refused_text)
        return description

    return [entry(group_id) for group_id in context.sliced(request.group_ids)]
