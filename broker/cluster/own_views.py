"""What a node shows that is its own: the groups that it coordinates, its replicas, its settings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.route import Handler
from odradek.broker.security.operations import ResourceType
from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.describe_configs import DescribeConfigsResponse
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsResponse
from odradek.protocol.messages.list_groups import ListGroupsResponse
from odradek.protocol.messages.list_transactions import ListTransactionsResponse
from odradek.protocol.schema import replace

from .of_node import OfNode


class OwnViews:
    """Handlers whose answers are of one node only."""

    def __init__(self, node: OfNode) -> None:
        self._node = node

    def around(self, handlers: Mapping[ApiKey, Handler]) -> dict[ApiKey, Handler]:
        """Those handlers, without what other nodes have."""
        return {
            key: _changing(handlers[key], change)
            for key, change in (
                (ApiKey.LIST_GROUPS, self._own_groups),
                (ApiKey.LIST_TRANSACTIONS, self._own_transactions),
                (ApiKey.DESCRIBE_LOG_DIRS, self._own_replicas),
                (ApiKey.DESCRIBE_CONFIGS, self._own_settings),
            )
        }

    def _own_groups(
        self, context: RequestContext, response: ListGroupsResponse
    ) -> ListGroupsResponse:
        coordinates = partial(self._node.coordinates, context, ResourceType.GROUP)
        own = [group for group in response.groups if coordinates(group.group_id)]
        return replace(response, groups=own)

    def _own_transactions(
        self, context: RequestContext, response: ListTransactionsResponse
    ) -> ListTransactionsResponse:
        coordinates = partial(self._node.coordinates, context, ResourceType.TRANSACTIONAL_ID)
        own = [each for each in response.transaction_states if coordinates(each.transactional_id)]
        return replace(response, transaction_states=own)

    def _own_replicas(
        self,
        context: RequestContext,  # noqa: ARG002 # as the others
        response: DescribeLogDirsResponse,
    ) -> DescribeLogDirsResponse:
        results = []
        for result in response.results:
            topics = []
            for topic in result.topics:
                own = [
                    partition
                    for partition in topic.partitions
                    if self._node.has_replica(topic.name, partition.partition_index)
                ]
                if own:
                    topics.append(replace(topic, partitions=own))
            results.append(replace(result, topics=topics))
        return replace(response, results=results)

    def _own_settings(
        self,
        context: RequestContext,  # noqa: ARG002 # as the others
        response: DescribeConfigsResponse,
    ) -> DescribeConfigsResponse:
        """The settings that each node has of its own."""
        rack = self._node.cluster.racks[self._node.node_id]
        own = {
            "node.id": str(self._node.node_id),
            "broker.id": str(self._node.node_id),
            "broker.rack": rack,
        }
        for result in response.results:
            if result.resource_type == ConfigResourceType.BROKER and result.resource_name:
                for position, config in enumerate(result.configs):
                    if config.name in own:
                        result.configs[position] = replace(config, value=own[config.name])
        return response


def _changing(handle: Handler, change: Callable[[RequestContext, Any], Any]) -> Handler:
    """The handler, and `change` of what it answers."""

    @wraps(handle)
    def serve(context: RequestContext, request: Any) -> Any:
        response = handle(context, request)
        if inspect.isawaitable(response):
            return change_later(context, response)
        return change(context, response)

    async def change_later(context: RequestContext, pending: Any) -> Any:
        return change(context, await pending)

    return serve
