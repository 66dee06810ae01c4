"""ListPartitionReassignments (key 46, v0).

None is ever under way: there are no other brokers to move replicas to. (Moves between the log
directories of this one are told by DescribeLogDirs.)"""

from odradek.broker.requests.context import RequestContext
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def handle(
    context: RequestContext,  # noqa: ARG001 # a handler's signature
    request: ListPartitionReassignmentsRequest,  # noqa: ARG001 # a handler's signature
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse()
