"""DescribeQuorum (key 55, v0-2).

Describes the quorum of the metadata log: this node is the leader and the only voter. If this
process plays a cluster of several nodes for tests of clients (odradek.nodes), its other nodes are
observers. As in Kafka, only a request for exactly `__cluster_metadata-0` is served.
v1 adds the times of the last fetch · v2 adds directory ids, error messages, and the endpoints of
the voters as they are recorded in the quorum. No controller listens at these endpoints."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.authorizer import refusal
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_quorum import (
    DescribeQuorumListener,
    DescribeQuorumNode,
    DescribeQuorumReplicaState,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
)
from odradek.protocol.primitives import ZERO_UUID
from odradek.storage.topic_names import CLUSTER_METADATA_TOPIC

FIRST_VERSION_WITH_DIRECTORIES = 2
UNKNOWN_TEXT = "This server does not host this topic-partition."


def handle(context: RequestContext, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    if not context.authorize_cluster(AclOperation.DESCRIBE):
        error = refusal(ResourceType.CLUSTER)
        return DescribeQuorumResponse(error_code=error.code, error_message=error.message)
    requested = [
        (
            topic.topic_name,
            [partition.partition_index for partition in context.sliced(topic.partitions)],
        )
        for topic in context.sliced(request.topics)
    ]
    if requested != [(CLUSTER_METADATA_TOPIC, [0])]:
        return unknown(context, request)
    quorum = DescribeQuorumResponseTopicData(
        topic_name=CLUSTER_METADATA_TOPIC, partitions=[partition_data(context)]
    )
    return DescribeQuorumResponse(
        topics=[quorum],
        nodes=[this_node(context)] if context.api_version >= FIRST_VERSION_WITH_DIRECTORIES else [],
    )


def this_node(context: RequestContext) -> DescribeQuorumNode:
    me = context.broker.controller.me
    endpoint = DescribeQuorumListener(
        name=me.endpoint.name, host=me.endpoint.host, port=me.endpoint.port
    )
    return DescribeQuorumNode(node_id=me.node_id, listeners=[endpoint])


def partition_data(context: RequestContext) -> DescribeQuorumResponsePartitionData:
    broker = context.broker
    log = broker.controller.log
    return DescribeQuorumResponsePartitionData(
        partition_index=0,
        error_message="",
        leader_id=broker.config.node_id,
        leader_epoch=broker.controller.quorum_epoch,
        high_watermark=log.high_watermark,
        current_voters=[
            DescribeQuorumReplicaState(
                replica_id=broker.config.node_id,
                replica_directory_id=directory_id(context),
                log_end_offset=log.log_end_offset,
                last_fetch_timestamp=context.now_ms,
                last_caught_up_timestamp=context.now_ms,
            )
        ],
        observers=[
            DescribeQuorumReplicaState(
                replica_id=node_id,
                log_end_offset=log.log_end_offset,
                last_fetch_timestamp=context.now_ms,
                last_caught_up_timestamp=context.now_ms,
            )
            for node_id in broker.nodes.replica_ids
            if node_id != broker.config.node_id
        ],
    )


def directory_id(context: RequestContext) -> bytes:
    """The voter's directory id. It is zero before v2, and for static voters, which have none."""
    voters = context.broker.controller.quorum.voters
    if voters is None or context.api_version < FIRST_VERSION_WITH_DIRECTORIES:
        return ZERO_UUID
    return voters.voters[0].voter_directory_id


def unknown(context: RequestContext, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(
        topics=[
            DescribeQuorumResponseTopicData(
                topic_name=topic.topic_name,
                partitions=[
                    DescribeQuorumResponsePartitionData(
                        partition_index=partition.partition_index,
                        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                        error_message=UNKNOWN_TEXT,
                        leader_id=0,
                        leader_epoch=0,
                        high_watermark=0,
                        current_voters=[],
                        observers=[],
                    )
                    for partition in context.sliced(topic.partitions)
                ],
            )
            for topic in context.sliced(request.topics)
        ]
    )
