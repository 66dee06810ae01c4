"""Names the leader in answers of a node that does not lead the partition (KIP-951).

A client then sends its request to that node at once, without asking for the metadata.
Kafka: KafkaApis.getCurrentLeader.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.route import Handler
from odradek.coordinator.metadata.topics import Topic
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import (
    FetchLeaderIdAndEpoch,
    FetchResponse,
)
from odradek.protocol.messages.node_endpoint import NodeEndpoint
from odradek.protocol.messages.produce import (
    ProduceLeaderIdAndEpoch,
    ProduceResponse,
)
from odradek.protocol.messages.share_fetch import (
    ShareFetchLeaderIdAndEpoch,
    ShareFetchResponse,
)
from odradek.protocol.schema import replace

Response = TypeVar("Response", ProduceResponse, FetchResponse, ShareFetchResponse)

FIRST_PRODUCE_VERSION = 10
FIRST_FETCH_VERSION = 16
FIRST_SHARE_FETCH_VERSION = 1
OF_PRODUCE = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER})
OF_FETCH = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


def naming_leaders(handlers: Mapping[ApiKey, Handler]) -> Mapping[ApiKey, Handler]:
    """The handlers, with the leaders in the answers to Produce, Fetch and ShareFetch."""
    named = {
        key: _with_leaders(handlers[key], first_version, name)
        for key, first_version, name in (
            (ApiKey.PRODUCE, FIRST_PRODUCE_VERSION, _name_in_produce),
            (ApiKey.FETCH, FIRST_FETCH_VERSION, _name_in_fetch),
            (ApiKey.SHARE_FETCH, FIRST_SHARE_FETCH_VERSION, _name_in_share_fetch),
        )
    }
    return {**handlers, **named}


def _with_leaders(
    handle: Handler, first_version: int, name: Callable[[RequestContext, Any], Any]
) -> Handler:
    @wraps(handle)
    def serve(context: RequestContext, request: Any) -> Any:
        response = handle(context, request)
        if context.api_version < first_version or response.__class__ is bytearray:
            return response
        if isinstance(response, ProduceResponse | FetchResponse | ShareFetchResponse):
            return name(context, response)
        if isinstance(response, Awaitable):
            return name_later(context, response)
        return response  # none

    async def name_later(context: RequestContext, pending: Awaitable[Any]) -> Any:
        response = await pending
        return None if response is None else name(context, response)

    return serve


def _name_in_produce(context: RequestContext, response: ProduceResponse) -> ProduceResponse:
    leaders: set[int] = set()
    for answered in response.responses:
        partitions = answered.partition_responses
        for position, partition in enumerate(partitions):
            if partition.error_code in OF_PRODUCE:
                topic = _topic(context, answered.name, answered.topic_id)
                leader_id, epoch = _leader(context, topic, partition.index)
                leaders.add(leader_id)
                leader = ProduceLeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch)
                partitions[position] = replace(partition, current_leader=leader)
    return _with_endpoints(context, response, leaders)


def _name_in_fetch(context: RequestContext, response: FetchResponse) -> FetchResponse:
    leaders: set[int] = set()
    for answered in response.responses:
        partitions = answered.partitions
        for position, partition in enumerate(partitions):
            if partition.error_code in OF_FETCH:
                topic = _topic(context, answered.topic, answered.topic_id)
                leader_id, epoch = _leader(context, topic, partition.partition_index)
                leaders.add(leader_id)
                leader = FetchLeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch)
                partitions[position] = replace(partition, current_leader=leader)
    return _with_endpoints(context, response, leaders)


def _name_in_share_fetch(
    context: RequestContext, response: ShareFetchResponse
) -> ShareFetchResponse:
    leaders: set[int] = set()
    for answered in response.responses:
        partitions = answered.partitions
        for position, partition in enumerate(partitions):
            if partition.error_code in OF_FETCH:
                topic = _topic(context, "", answered.topic_id)
                leader_id, epoch = _leader(context, topic, partition.partition_index)
                leaders.add(leader_id)
                leader = ShareFetchLeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch)
                partitions[position] = replace(partition, current_leader=leader)
    return _with_endpoints(context, response, leaders)


def _topic(context: RequestContext, name: str, topic_id: bytes) -> Topic | None:
    topics = context.broker.metadata.topics
    return topics.get(name) if name else topics.by_id.get(topic_id)


def _leader(context: RequestContext, topic: Topic | None, index: int) -> tuple[int, int]:
    """The node id and epoch of the leader that the metadata has; -1, -1: the topic is deleted."""
    if topic is None or index not in topic.partitions:
        return -1, -1
    partition = topic.partitions[index]
    node_id = context.broker.nodes.leader(partition.leader, topic.name, index)
    return node_id, partition.leader_epoch


def _with_endpoints(context: RequestContext, response: Response, leaders: set[int]) -> Response:
    if not leaders:
        return response
    endpoints = [
        NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
        for node in context.nodes()
        if node.id in leaders
    ]
    return replace(response, node_endpoints=endpoints)
