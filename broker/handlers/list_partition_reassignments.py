"""ListPartitionReassignments (key 46, v0).

The list is always empty: there are no other brokers to move replicas to. DescribeLogDirs reports
moves between the log directories of this broker."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def handle(
    context: RequestContext,
    request: ListPartitionReassignmentsRequest,  # noqa: ARG001 # a handler's signature
) -> ListPartitionReassignmentsResponse:
    context.check_cluster(AclOperation.DESCRIBE)
    return ListPartitionReassignmentsResponse()
