"""DescribeCluster (key 60, v0-2).

The cluster is this one broker, which is also its controller, or the nodes that it plays
(odradek.nodes).
v1 can ask for controllers instead of brokers, which is refused · v2 can ask for fenced brokers,
which only a played cluster has."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import NOT_REQUESTED
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS = 1
CONTROLLERS = 2


def handle(context: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    check_endpoint_type(request.endpoint_type)
    broker = context.broker
    nodes = context.nodes()
    if request.include_fenced_brokers:
        session = context.session
        nodes += broker.nodes.fenced(session.listener, session.local_host)
    return DescribeClusterResponse(
        cluster_id=broker.log_manager.cluster_id,
        controller_id=broker.nodes.controller_id,
        brokers=[
            DescribeClusterBroker(
                broker_id=node.id,
                host=node.host,
                port=node.port,
                rack=node.rack,
                is_fenced=node.is_fenced,
            )
            for node in sorted(nodes)
        ],
        cluster_authorized_operations=context.authorized_cluster_operations()
        if request.include_cluster_authorized_operations
        else NOT_REQUESTED,
    )


def check_endpoint_type(endpoint_type: int) -> None:
    if endpoint_type == CONTROLLERS:
        text = "The request asks for controllers, and this endpoint is a broker's."
        raise ApiError(ErrorCode.MISMATCHED_ENDPOINT_TYPE, text)
    if endpoint_type != BROKERS:
        text = f"The endpoint type {endpoint_type} is not supported."
        raise ApiError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, text)
