"""What a node answers about partitions that it does not lead, where it is not NOT_LEADER alone."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import wraps
from typing import Any

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.error_responses import error_response
from odradek.broker.requests.route import Handler
from odradek.coordinator.metadata.topics import Topics
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from odradek.protocol.schema import Message, replace

from .of_node import OfNode


class LeaderAnswers:
    """Handlers of ListOffsets, OffsetForLeaderEpoch and WriteTxnMarkers of one node."""

    def __init__(self, node: OfNode, topics: Topics) -> None:
        self._node = node
        self._topics = topics

    def around(self, handlers: Mapping[ApiKey, Handler]) -> dict[ApiKey, Handler]:
        """Those handlers, which know what the node does not lead."""
        return {
            ApiKey.LIST_OFFSETS: self._knowing_epochs(handlers[ApiKey.LIST_OFFSETS]),
            ApiKey.OFFSET_FOR_LEADER_EPOCH: self._knowing_epochs(
                handlers[ApiKey.OFFSET_FOR_LEADER_EPOCH]
            ),
            ApiKey.WRITE_TXN_MARKERS: self._marking(handlers[ApiKey.WRITE_TXN_MARKERS]),
        }

    def _knowing_epochs(self, handle: Handler) -> Handler:
        """The handler; a follower says that a client knows a newer leader than it does."""

        @wraps(handle)
        def serve(context: RequestContext, request: Any) -> Any:
            newer = {
                (_name_of(topic), _index_of(partition))
                for topic in request.topics
                for partition in topic.partitions
                if self._is_newer(
                    _name_of(topic), _index_of(partition), partition.current_leader_epoch
                )
            }
            if not newer:
                return handle(context, request)
            return with_newer(handle(context, request), newer)

        def with_newer(response: Any, newer: set[tuple[str, int]]) -> Any:
            if inspect.isawaitable(response):
                return with_newer_later(response, newer)
            for topic in response.topics:
                for position, partition in enumerate(topic.partitions):
                    if (_name_of(topic), _index_of(partition)) in newer:
                        code = ErrorCode.UNKNOWN_LEADER_EPOCH
                        topic.partitions[position] = replace(partition, error_code=code)
            return response

        async def with_newer_later(pending: Any, newer: set[tuple[str, int]]) -> Any:
            return with_newer(await pending, newer)

        return serve

    def _is_newer(self, topic: str, index: int, leader_epoch: int) -> bool:
        """Whether this node follows the partition, and does not know a leader epoch yet."""
        if self._node.leads(topic, index) or not self._node.has_replica(topic, index):
            return False
        return leader_epoch > self._topics[topic].partitions[index].leader_epoch

    def _marking(self, handle: Handler) -> Handler:
        @wraps(handle)
        def serve(context: RequestContext, request: WriteTxnMarkersRequest) -> Any:
            for marker in request.markers:
                for topic in marker.topics:
                    for index in context.sliced(topic.partition_indexes):
                        if not self._node.leads(topic.name, index):
                            return self._refused_markers(context, request, topic.name, index)
            return handle(context, request)

        return serve

    def _refused_markers(
        self, context: RequestContext, request: WriteTxnMarkersRequest, topic: str, index: int
    ) -> Message:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self._node.has_replica(topic, index):
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        text = f"node {self._node.node_id} does not lead {topic}-{index}"
        return error_response(request, context.api_version, code, text, context.step)


def _name_of(topic: Any) -> str:
    """The name of a topic, which ListOffsets and OffsetForLeaderEpoch call differently."""
    name: str = topic.topic if hasattr(topic, "topic") else topic.name
    return name


def _index_of(partition: Any) -> int:
    """The index of a partition, by either of its names."""
    index: int = getattr(partition, "partition_index", -1)
    return index if index >= 0 else partition.partition
