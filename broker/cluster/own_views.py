"""A node of a played cluster shows only its own groups, transactions, replicas and settings.

All nodes are one broker (odradek.nodes), whose handlers answer with what all of them have.
"""

from __future__ import annotations

import inspect
import re
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

_LISTENERS = ("listeners", "advertised.listeners")
_PORT = re.compile(r"(?<=:)\d+(?=,|$)")  # of a listener in a list of them


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
        context: RequestContext,
        response: DescribeConfigsResponse,
    ) -> DescribeConfigsResponse:
        """The settings that each node has of its own."""
        config, node_id = context.broker.config, self._node.node_id
        own = {
            "node.id": str(node_id),
            "broker.id": str(node_id),
            "broker.rack": self._node.cluster.racks[node_id],
        }

        def own_port(port: re.Match[str]) -> str:
            return str(config.port_of_node(int(port[0]), node_id - config.node_id))

        for result in response.results:
            if result.resource_type != ConfigResourceType.BROKER or not result.resource_name:
                continue
            for position, entry in enumerate(result.configs):
                if entry.name in own:
                    value = own[entry.name]
                elif entry.name in _LISTENERS and entry.value is not None:
                    value = _PORT.sub(own_port, entry.value)
                else:
                    continue
                synonyms = entry.synonyms
                if synonyms:  # the first one is in force
                    synonyms = [replace(synonyms[0], value=value), *synonyms[1:]]
                result.configs[position] = replace(entry, value=value, synonyms=synonyms)
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
