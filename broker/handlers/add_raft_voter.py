"""AddRaftVoter (key 80, v0-1).

Adds a voter to the quorum of the metadata log. The request is always refused, because this node is
the only voter: see coordinator/metadata/voter_changes.py."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.authorizer import CLUSTER_NAME
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.metadata.voter_changes import check_cluster, refuse_to_add
from odradek.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse


def handle(context: RequestContext, request: AddRaftVoterRequest) -> AddRaftVoterResponse:
    controller = context.broker.controller
    # Not `context.check_cluster`: here Kafka's message does not name the request and the operation.
    context.check(AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
    check_cluster(request.cluster_id, context.broker.log_manager.cluster_id)
    raise refuse_to_add(
        controller.quorum,
        controller.me,
        request.voter_id,
        request.voter_directory_id,
        [listener.name for listener in request.listeners],
    )
