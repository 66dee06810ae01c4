"""Elections and reassignments that clients ask for, at any node."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.route import Handler
from odradek.broker.security.operations import AclOperation
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsPartition,
    AlterPartitionReassignmentsPartitionResponse,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterPartitionReassignmentsTopicResponse,
)
from odradek.protocol.messages.elect_leaders import (
    ElectLeadersPartitionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ElectLeadersTopicResult,
)
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsOngoingPartition,
    ListPartitionReassignmentsOngoingTopic,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from odradek.storage.topic_partition import TopicPartition

from .cluster import Cluster

PREFERRED = 0
UNCLEAN = 1


class Elections:
    """The handlers of ElectLeaders and of reassignments."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def handlers(self) -> dict[ApiKey, Handler]:
        """The handlers by API."""
        return {
            ApiKey.ELECT_LEADERS: self._elect,
            ApiKey.ALTER_PARTITION_REASSIGNMENTS: self._reassign,
            ApiKey.LIST_PARTITION_REASSIGNMENTS: self._list_reassignments,
        }

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
        for name, indexes in context.sliced(wanted):
            of_topic = [
                ElectLeadersPartitionResult(
                    partition_id=index,
                    error_code=error.code if error else ErrorCode.NONE,
                    error_message=error.message if error else None,
                )
                for index in context.sliced(indexes)
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


def _error_of(call: Callable[[], object]) -> ApiError | None:
    try:
        call()
    except ApiError as error:
        return error.with_traceback(None)
    return None
