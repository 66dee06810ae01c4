"""The handlers of one node of a played cluster.

They are those of a broker, with what only a node of several has around them: partitions that other
nodes lead, groups and transactions that they coordinate, replicas, elections.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, wraps
from typing import Any

from odradek.broker.broker import Broker
from odradek.broker.fetching.preferred_replica import PreferredReplicaError
from odradek.broker.producing.single_batch import SingleBatch
from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.route import Handler
from odradek.broker.security.operations import ResourceType
from odradek.broker.security.session import Session
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.fetch import FetchRequest
from odradek.protocol.messages.produce import ProduceRequest
from odradek.storage.log import PartitionLog

from .cluster import Cluster
from .cluster_nodes import ClusterNodes
from .coordinator_checks import checking_coordinators, shards_of
from .elections import Elections
from .leader_answers import LeaderAnswers
from .node_view import Check, NodeParts, node_broker, node_fetching
from .of_node import OfNode
from .own_views import OwnViews
from .replication import last_offset_deltas, when_replicated

FIRST_FETCH_FROM_FOLLOWERS = 11
ALL_IN_SYNC = -1


class NodeHandlers:
    """The handlers of a node, and the views of the broker that they use.

    `broker` is the view with the logs that the node leads.
    """

    def __init__(
        self,
        broker: Broker,
        cluster: Cluster,
        nodes: ClusterNodes,
        handlers: Mapping[ApiKey, Handler],
    ) -> None:
        self._cluster = cluster
        self._node_id = nodes.own_id
        self._selects_by_rack = broker.config.selects_by_rack
        self._coordinators = broker.coordinators
        self._find_log = broker.log_manager.get
        self._name_of = broker.topic_name
        self._topics = broker.metadata.topics
        self._parts = NodeParts(
            nodes, node_fetching(broker), broker.coordinators.add_shares(self._find_led)
        )
        view = partial(node_broker, broker, self._parts)
        self.broker = view(self._check_leader)
        self._view = view
        self._with_all_in_sync = view(self._check_in_sync)
        self._unchecked = view(lambda _: None)
        self._readers: dict[str, Broker] = {}  # by rack
        self.table = self._around(handlers)

    def leader_moved(self) -> None:
        """Let the Fetch requests that wait read again: they may be at the wrong node now."""
        self._parts.shares.leaders_moved()
        self._parts.fetching.waiters.wake_all()

    def release(self) -> None:
        """Answer the requests that wait, because the node stops."""
        self._parts.fetching.waiters.release_all()

    def disconnected(self, session: Session) -> None:
        """End the share session of a connection that has closed."""
        self._parts.shares.disconnected(session)

    def close(self) -> None:
        """Forget what the node has of its own."""
        self._coordinators.remove_shares(self._parts.shares)

    def _find_led(self, topic_id: bytes, partition: int) -> PartitionLog:
        log = self._find_log(self._name_of(topic_id), partition)
        self._check_leader(log)
        return log

    # -- which logs a request may use --------------------------------------------------------------

    def _check_leader(self, log: PartitionLog) -> None:
        if self._cluster.leader(log.topic, log.partition) != self._node_id:
            text = f"node {self._node_id} does not lead {log.name}"
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, text)

    def _check_in_sync(self, log: PartitionLog) -> None:
        """As acks=all needs: the leader, and enough replicas in sync."""
        self._check_leader(log)
        self._cluster.check_in_sync(log)

    def _reader(self, rack: str) -> Broker:
        """The view for consumers of a rack, which may read from followers."""
        reader = self._readers.get(rack)
        if reader is None:
            check: Check = partial(self._check_replica, rack)
            reader = self._readers[rack] = self._view(check)
        return reader

    def _check_replica(self, rack: str, log: PartitionLog) -> None:
        roles = self._cluster.roles(log.topic, log.partition)
        if self._node_id not in roles.replicas:
            text = f"node {self._node_id} has no replica of {log.name}"
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, text)
        if roles.leader != self._node_id or not rack or not self._selects_by_rack:
            return
        racks = self._cluster.racks
        near = [node for node in roles.isr if racks[node] == rack]
        if near and self._node_id not in near:
            raise PreferredReplicaError(log, near[0])

    # -- the table ---------------------------------------------------------------------------------

    def _around(self, handlers: Mapping[ApiKey, Handler]) -> Mapping[ApiKey, Handler]:
        table = checking_coordinators(handlers, self._coordinates)
        table[ApiKey.PRODUCE] = self._producing(table[ApiKey.PRODUCE])
        table[ApiKey.FETCH] = self._reading(table[ApiKey.FETCH])
        for key in (ApiKey.DESCRIBE_PRODUCERS, ApiKey.DESCRIBE_LOG_DIRS):
            table[key] = self._at_any_replica(table[key])
        of_node = OfNode(self._cluster, self._node_id, self._coordinates)
        table |= LeaderAnswers(of_node, self._topics).around(table)
        table |= OwnViews(of_node).around(table)
        table |= Elections(self._cluster).handlers()
        return table

    def _producing(self, handle: Handler) -> Handler:
        @wraps(handle)
        def produce(context: RequestContext, request: ProduceRequest | SingleBatch) -> Any:
            if request.acks not in (0, 1, ALL_IN_SYNC):
                context.broker = self._unchecked  # this is refused before the leader is asked for
            if request.acks != ALL_IN_SYNC:
                return handle(context, request)
            context.broker = self._with_all_in_sync
            if not self._cluster.held_back:
                return handle(context, request)
            whole = request.whole() if isinstance(request, SingleBatch) else request
            deltas = last_offset_deltas(context, whole)
            response = handle(context, request)
            if isinstance(response, bytearray):  # no log of it holds records back
                return response
            find_log = self._unchecked.log_manager.find
            return when_replicated(context, whole.timeout_ms, deltas, response, find_log)

        return produce

    def _reading(self, handle: Handler) -> Handler:
        @wraps(handle)
        def fetch(context: RequestContext, request: FetchRequest) -> Any:
            is_consumer = request.replica_id < 0 and request.replica_state.replica_id < 0
            if context.api_version >= FIRST_FETCH_FROM_FOLLOWERS and is_consumer:
                context.broker = self._reader(request.rack_id)
            return handle(context, request)

        return fetch

    def _at_any_replica(self, handle: Handler) -> Handler:
        @wraps(handle)
        def serve(context: RequestContext, request: Any) -> Any:
            context.broker = self._reader("")
            return handle(context, request)

        return serve

    def _coordinates(self, context: RequestContext, kind: ResourceType, wanted: str) -> bool:
        shards = shards_of(context, kind)
        if not shards.is_open:
            return True  # the handler says that there is no coordinator
        return self._leads(shards.topic, shards.partition_of(wanted))

    def _leads(self, topic: str, index: int) -> bool:
        return self._cluster.leader(topic, index) == self._node_id
