"""Names a partition's leader in answers with an error about leaders (KIP-951).

A client then sends its request to that node at once, without asking for the metadata. The broker
names itself to clients that have an older leader epoch, or ask before the partition is recovered.
Kafka: KafkaApis.getCurrentLeader.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

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
from odradek.protocol.messages.share_acknowledge import (
    ShareAcknowledgeLeaderIdAndEpoch,
    ShareAcknowledgeResponse,
)
from odradek.protocol.messages.share_fetch import (
    ShareFetchLeaderIdAndEpoch,
    ShareFetchResponse,
)
from odradek.protocol.schema import replace

from .context import RequestContext

R = TypeVar("R", FetchResponse, ProduceResponse, ShareAcknowledgeResponse, ShareFetchResponse)
OF_PRODUCE = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER})
OF_FETCH = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


class _Form(NamedTuple):
    """The first version with leaders, the errors that have one, and the names of the fields.

    An empty `topic_name`: topics have an id only.
    """

    first_version: int
    errors: frozenset[ErrorCode]
    topic_name: str
    partitions_name: str
    index_name: str
    leader: Callable[..., Any]


FORMS = {
    ApiKey.PRODUCE: _Form(
        10, OF_PRODUCE, "name", "partition_responses", "index", ProduceLeaderIdAndEpoch
    ),
    ApiKey.FETCH: _Form(
        16, OF_FETCH, "topic", "partitions", "partition_index", FetchLeaderIdAndEpoch
    ),
    ApiKey.SHARE_FETCH: _Form(
        1, OF_FETCH, "", "partitions", "partition_index", ShareFetchLeaderIdAndEpoch
    ),
    ApiKey.SHARE_ACKNOWLEDGE: _Form(
        1, OF_FETCH, "", "partitions", "partition_index", ShareAcknowledgeLeaderIdAndEpoch
    ),
}


def note_leader_error(context: RequestContext, code: int) -> None:
    """Note that a partition has an error which names the leader, for `named`."""
    if code in OF_FETCH:
        context.names_leaders = True


def named(context: RequestContext, response: R, key: ApiKey, *, is_of_follower: bool = False) -> R:
    """The response with the leaders, if it has an error that was noted.

    As in Kafka, followers do not get the addresses.
    """
    if not context.names_leaders:
        return response
    form = FORMS[key]
    if context.api_version < form.first_version:
        return response
    leaders = _name_leaders(context, response, form)
    return response if is_of_follower else cast(R, _with_endpoints(context, response, leaders))


def _name_leaders(context: RequestContext, response: Any, form: _Form) -> set[int]:
    """Set the leader of each partition with an error that has one. Returns their node ids."""
    leaders: set[int] = set()
    for answered in response.responses:
        name = getattr(answered, form.topic_name) if form.topic_name else ""
        partitions = getattr(answered, form.partitions_name)
        for position, partition in enumerate(context.sliced(partitions)):
            if partition.error_code in form.errors:
                topic = _topic(context, name, answered.topic_id)
                leader_id, epoch = _leader(context, topic, getattr(partition, form.index_name))
                leaders.add(leader_id)
                leader = form.leader(leader_id=leader_id, leader_epoch=epoch)
                partitions[position] = replace(partition, current_leader=leader)
    return leaders


def _topic(context: RequestContext, name: str, topic_id: bytes) -> Topic | None:
    topics = context.broker.metadata.topics
    return topics.get(name) if name else topics.by_id.get(topic_id)


def _leader(context: RequestContext, topic: Topic | None, index: int) -> tuple[int, int]:
    """The node id and epoch of the leader; -1, -1: the topic is deleted."""
    if topic is None or index not in topic.partitions:
        return -1, -1
    partition = topic.partitions[index]
    node_id = context.broker.nodes.leader(partition.leader, topic.name, index)
    # A log of an earlier life of the directory may have a newer epoch than the metadata.
    log = context.broker.log_manager.find(topic.name, index)
    log_epoch = log.leader_epoch if log is not None else -1
    return node_id, max(partition.leader_epoch, log_epoch)


def _with_endpoints(context: RequestContext, response: Any, leaders: set[int]) -> Any:
    if not leaders:
        return response
    endpoints = [
        NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
        for node in context.nodes()
        if node.id in leaders
    ]
    return replace(response, node_endpoints=endpoints)
