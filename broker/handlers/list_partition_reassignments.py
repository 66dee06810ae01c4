"""ListPartitionReassignments (key 46, v0).

The list is always empty: there are no other brokers to move replicas to. DescribeLogDirs reports
moves between the log directories of this broker."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation
from odradek.protocol.errors import ApiError
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def handle(
    context: RequestContext,
    request: ListPartitionReassignmentsRequest,  # noqa: ARG001 # a handler's signature
) -> ListPartitionReassignmentsResponse:
    try:
        context.check_cluster(AclOperation.DESCRIBE)
    except ApiError as error:
        return ListPartitionReassignmentsResponse(
            error_code=error.code, error_message=error.message
        )
    return ListPartitionReassignmentsResponse()
