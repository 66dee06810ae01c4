"""The handlers of one node of a played cluster.

They are those of a broker, with what only a node of several has around them: partitions that other
nodes lead, groups and transactions that they coordinate, replicas, elections.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any

from odradek.broker.broker import Broker
from odradek.broker.fetching.preferred_replica import PreferredReplicaError
from odradek.broker.producing.single_batch import SingleBatch
from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.error_responses import error_response
from odradek.broker.requests.named_leaders import naming_leaders
from odradek.broker.requests.route import Handler
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.broker.security.session import Session
from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsPartition,
    AlterPartitionReassignmentsPartitionResponse,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterPartitionReassignmentsTopicResponse,
)
from odradek.protocol.messages.describe_configs import DescribeConfigsResponse
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsResponse
from odradek.protocol.messages.elect_leaders import (
    ElectLeadersPartitionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ElectLeadersTopicResult,
)
from odradek.protocol.messages.fetch import FetchRequest
from odradek.protocol.messages.list_groups import ListGroupsResponse
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsOngoingPartition,
    ListPartitionReassignmentsOngoingTopic,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from odradek.protocol.messages.list_transactions import ListTransactionsResponse
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from odradek.protocol.schema import Message, replace
from odradek.storage.log import PartitionLog
from odradek.storage.topic_partition import TopicPartition

from .cluster import Cluster
from .cluster_nodes import ClusterNodes
from .coordinator_checks import checking_coordinators, shards_of
from .node_view import Check, NodeParts, node_broker, node_fetching
from .replication import when_replicated

FIRST_FETCH_FROM_FOLLOWERS = 11
PREFERRED = 0
UNCLEAN = 1
ALL_IN_SYNC = -1
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


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
        self._selects_by_rack = (
            broker.config.texts.get("replica.selector.class") == RACK_AWARE_SELECTOR
        )
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
        isr = self._cluster.roles(log.topic, log.partition).isr
        needed = self._cluster.min_isr(log.topic, log.partition)
        if len(isr) < needed:
            text = f"{len(isr)} replicas of {log.name} are in sync, {needed} are needed"
            raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, text)

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
        for key in (ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FOR_LEADER_EPOCH):
            table[key] = self._knowing_epochs(table[key])
        table[ApiKey.WRITE_TXN_MARKERS] = self._marking(table[ApiKey.WRITE_TXN_MARKERS])
        for key, change in (
            (ApiKey.LIST_GROUPS, self._own_groups),
            (ApiKey.LIST_TRANSACTIONS, self._own_transactions),
            (ApiKey.DESCRIBE_LOG_DIRS, self._own_replicas),
            (ApiKey.DESCRIBE_CONFIGS, self._own_settings),
        ):
            table[key] = _changing(table[key], change)
        table[ApiKey.ELECT_LEADERS] = self._elect
        table[ApiKey.ALTER_PARTITION_REASSIGNMENTS] = self._reassign
        table[ApiKey.LIST_PARTITION_REASSIGNMENTS] = self._list_reassignments
        return naming_leaders(table)

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
            response = handle(context, whole)
            if isinstance(response, bytearray):  # no log of it holds records back
                return response
            return when_replicated(context, whole, response)

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
        if self._leads(topic, index) or not self._has_replica(topic, index):
            return False
        return leader_epoch > self._topics[topic].partitions[index].leader_epoch

    def _marking(self, handle: Handler) -> Handler:
        @wraps(handle)
        def serve(context: RequestContext, request: WriteTxnMarkersRequest) -> Any:
            for marker in request.markers:
                for topic in marker.topics:
                    for index in topic.partition_indexes:
                        if not self._leads(topic.name, index):
                            return self._refused_markers(context, request, topic.name, index)
            return handle(context, request)

        return serve

    def _refused_markers(
        self, context: RequestContext, request: WriteTxnMarkersRequest, topic: str, index: int
    ) -> Message:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self._has_replica(topic, index):
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        text = f"node {self._node_id} does not lead {topic}-{index}"
        return error_response(request, context.api_version, code, text)

    def _coordinates(self, context: RequestContext, kind: ResourceType, wanted: str) -> bool:
        shards = shards_of(context, kind)
        if not shards.is_open:
            return True  # the handler says that there is no coordinator
        return self._leads(shards.topic, shards.partition_of(wanted))

    def _leads(self, topic: str, index: int) -> bool:
        return self._cluster.leader(topic, index) == self._node_id

    # -- what a node shows of the cluster ----------------------------------------------------------

    def _own_groups(
        self, context: RequestContext, response: ListGroupsResponse
    ) -> ListGroupsResponse:
        coordinates = partial(self._coordinates, context, ResourceType.GROUP)
        own = [group for group in response.groups if coordinates(group.group_id)]
        return replace(response, groups=own)

    def _own_transactions(
        self, context: RequestContext, response: ListTransactionsResponse
    ) -> ListTransactionsResponse:
        coordinates = partial(self._coordinates, context, ResourceType.TRANSACTIONAL_ID)
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
                    if self._has_replica(topic.name, partition.partition_index)
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
        rack = self._cluster.racks[self._node_id]
        own = {"node.id": str(self._node_id), "broker.id": str(self._node_id), "broker.rack": rack}
        for result in response.results:
            if result.resource_type == ConfigResourceType.BROKER and result.resource_name:
                for position, config in enumerate(result.configs):
                    if config.name in own:
                        result.configs[position] = replace(config, value=own[config.name])
        return response

    def _has_replica(self, topic: str, index: int) -> bool:
        try:
            return self._node_id in self._cluster.roles(topic, index).replicas
        except ApiError:
            return False  # it has just been deleted

    # -- elections and reassignments ---------------------------------------------------------------

    def _elect(self, context: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
        context.check_cluster(AclOperation.ALTER)
        if request.election_type not in (PREFERRED, UNCLEAN):
            text = f"there is no election type {request.election_type}"
            return _no_such_type(request, ApiError(ErrorCode.INVALID_REQUEST, text))
        elect = (
            self._cluster.elect_preferred
            if request.election_type == PREFERRED
            else self._cluster.elect_unclean
        )
        is_for_all = request.topic_partitions is None
        wanted = (
            [
                (topic.name, list(topic.partitions))
                for topic in context.broker.metadata.topics.values()
            ]
            if request.topic_partitions is None
            else [(topic.topic, topic.partitions) for topic in request.topic_partitions]
        )
        results = []
        for name, indexes in wanted:
            of_topic = [
                ElectLeadersPartitionResult(
                    partition_id=index,
                    error_code=error.code if error else ErrorCode.NONE,
                    error_message=error.message if error else None,
                )
                for index in indexes
                for error in [_error_of(partial(elect, name, index))]
                if not (is_for_all and error and error.code is ErrorCode.ELECTION_NOT_NEEDED)
            ]
            results.append(ElectLeadersTopicResult(topic=name, partition_result=of_topic))
        return ElectLeadersResponse(replica_election_results=results)

    def _reassign(
        self, context: RequestContext, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        context.check_cluster(AclOperation.ALTER)
        return AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=request.allow_replication_factor_change,
            responses=[
                AlterPartitionReassignmentsTopicResponse(
                    name=topic.name,
                    partitions=[
                        self._reassign_partition(request, topic.name, partition)
                        for partition in context.sliced(topic.partitions)
                    ],
                )
                for topic in context.sliced(request.topics)
            ],
        )

    def _reassign_partition(
        self,
        request: AlterPartitionReassignmentsRequest,
        topic: str,
        wanted: AlterPartitionReassignmentsPartition,
    ) -> AlterPartitionReassignmentsPartitionResponse:
        index = wanted.partition_index
        may_change = request.allow_replication_factor_change
        reassign = partial(
            self._cluster.reassign, topic, index, wanted.replicas, may_change_factor=may_change
        )
        error = _error_of(reassign)
        return AlterPartitionReassignmentsPartitionResponse(
            partition_index=index,
            error_code=error.code if error else ErrorCode.NONE,
            error_message=error.message if error else None,
        )

    def _list_reassignments(
        self, context: RequestContext, request: ListPartitionReassignmentsRequest
    ) -> ListPartitionReassignmentsResponse:
        context.check_cluster(AclOperation.DESCRIBE)
        wanted = _named(request)
        topics: dict[str, list[ListPartitionReassignmentsOngoingPartition]] = {}
        for (topic, index), roles in self._cluster.reassignments():
            if wanted is None or (topic, index) in wanted:
                topics.setdefault(topic, []).append(
                    ListPartitionReassignmentsOngoingPartition(
                        partition_index=index,
                        replicas=list(roles.replicas),
                        adding_replicas=list(roles.adding),
                        removing_replicas=list(roles.removing),
                    )
                )
        return ListPartitionReassignmentsResponse(
            topics=[
                ListPartitionReassignmentsOngoingTopic(name=name, partitions=partitions)
                for name, partitions in topics.items()
            ]
        )


def _named(request: ListPartitionReassignmentsRequest) -> set[TopicPartition] | None:
    if request.topics is None:
        return None
    return {
        TopicPartition(topic.name, index)
        for topic in request.topics
        for index in topic.partition_indexes
    }


def _no_such_type(request: ElectLeadersRequest, error: ApiError) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        error_code=error.code,
        replica_election_results=[
            ElectLeadersTopicResult(
                topic=topic.topic,
                partition_result=[
                    ElectLeadersPartitionResult(
                        partition_id=index, error_code=error.code, error_message=error.message
                    )
                    for index in topic.partitions
                ],
            )
            for topic in request.topic_partitions or []
        ],
    )


def _name_of(topic: Any) -> str:
    """The name of a topic, which ListOffsets and OffsetForLeaderEpoch call differently."""
    name: str = topic.topic if hasattr(topic, "topic") else topic.name
    return name


def _index_of(partition: Any) -> int:
    """The index of a partition, by either of its names."""
    index: int = getattr(partition, "partition_index", -1)
    return index if index >= 0 else partition.partition


def _error_of(call: Callable[[], object]) -> ApiError | None:
    try:
        call()
    except ApiError as error:
        return error.with_traceback(None)
    return None


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
