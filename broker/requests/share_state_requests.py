"""What the requests to the share coordinator have in common: results by topic and partition.

Only brokers send these requests. The whole request is refused without CLUSTER_ACTION; then each
partition has the error. A request without a group, topics or partitions has no results.
Kafka: ShareCoordinatorService.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from odradek.broker.security.authorizer import refusal
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.protocol.errors import ApiError

from .context import RequestContext

P = TypeVar("P")
T = TypeVar("T")


class StateTopic(Protocol):
    """A topic of one of these requests."""

    @property
    def topic_id(self) -> bytes: ...

    @property
    def partitions(self) -> Sequence[Any]: ...


class StateRequest(Protocol):
    """One of these requests."""

    @property
    def group_id(self) -> str: ...

    @property
    def topics(self) -> Sequence[Any]: ...


def results_of(
    context: RequestContext,
    request: StateRequest,
    *,
    serve: Callable[[SharePartitionKey, Any], P],
    refused: Callable[..., P],
    of_topic: Callable[..., T],
) -> list[T]:
    """Serve each partition of a request, and group the results by topic.

    `serve` takes the key and the partition's part of the request, and raises ApiError. `refused`
    makes the result of a partition with an error, and `of_topic` that of a topic, of their fields.
    """
    is_allowed = context.authorize_cluster(AclOperation.CLUSTER_ACTION)
    if is_allowed and is_empty(context, request):
        return []

    def result(topic: StateTopic, partition: Any) -> P:
        try:
            if not is_allowed:
                raise refusal(ResourceType.CLUSTER)
            key = SharePartitionKey(request.group_id, topic.topic_id, partition.partition)
            return serve(key, partition)
        except ApiError as error:
            return refused(
                partition=partition.partition, error_code=error.code, error_message=error.message
            )

    return [
        of_topic(
            topic_id=topic.topic_id,
            partitions=[result(topic, partition) for partition in context.sliced(topic.partitions)],
        )
        for topic in context.sliced(request.topics)
    ]


def is_empty(context: RequestContext, request: StateRequest) -> bool:
    """Whether the group id or a list is empty."""
    return (
        not request.group_id
        or not request.topics
        or not all(topic.partitions for topic in context.sliced(request.topics))
    )
