"""RemoveRaftVoter (key 81, v0).

Removes a voter from the quorum of the metadata log. The request is always refused, because this
node is the only voter: see coordinator/metadata/voter_changes.py."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.authorizer import CLUSTER_NAME
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.metadata.voter_changes import check_cluster, refuse_to_remove
from odradek.protocol.messages.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)


def handle(context: RequestContext, request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
    controller = context.broker.controller
    # Unlike the other requests for the controller, this one has the common message in Kafka.
    context.check(AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
    check_cluster(request.cluster_id, context.broker.log_manager.cluster_id)
    raise refuse_to_remove(
        controller.quorum, controller.me, request.voter_id, request.voter_directory_id
    )
