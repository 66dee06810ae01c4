"""Requests to change the voters of the metadata log (KIP-853): all get one of Kafka's errors.

This node is the only voter. Static voters cannot be added or removed by a request. The only dynamic
voter is already in the set and cannot leave it, and there is no other to remove. The addition of
another node is refused as in a cluster without this feature.

Kafka: KafkaRaftClient.handleAddVoterRequest, AddVoterHandler, RemoveVoterHandler, VoterSet.
"""

from collections.abc import Collection

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.primitives import ZERO_UUID, uuid_text

from .quorum import Quorum, QuorumMember


def refuse_to_add(
    quorum: Quorum,
    me: QuorumMember,
    voter_id: int,
    directory_id: bytes,
    listeners: Collection[str],
) -> ApiError:
    """Return why this voter with these listener names is not added.

    INVALID_REQUEST, UNSUPPORTED_VERSION or DUPLICATE_VOTER.
    """
    if not _is_voter_key(voter_id, directory_id):
        return _invalid("The request names no voter that could be added.")
    if me.endpoint.name not in listeners:
        text = f"The request names no endpoint for the listener {me.endpoint.name}."
        return _invalid(text)
    if quorum.voters is None:
        return _unsupported("added")
    if voter_id == me.node_id:
        text = f"Node {voter_id} is the voter of this cluster already."
        return ApiError(ErrorCode.DUPLICATE_VOTER, text)
    text = "No voter can be added: this cluster has one node."
    return ApiError(ErrorCode.UNSUPPORTED_VERSION, text)


def refuse_to_remove(
    quorum: Quorum, me: QuorumMember, voter_id: int, directory_id: bytes
) -> ApiError:
    """Return why this voter is not removed.

    INVALID_REQUEST, UNSUPPORTED_VERSION or VOTER_NOT_FOUND.
    """
    if not _is_voter_key(voter_id, directory_id):
        return _invalid("The request names no voter that could be removed.")
    if quorum.voters is None:
        return _unsupported("removed")
    text = (
        f"Node {voter_id} with directory {uuid_text(directory_id)} cannot be removed: the only"
        f" voter is node {me.node_id} with directory {uuid_text(me.directory_id)}, and it stays."
    )
    return ApiError(ErrorCode.VOTER_NOT_FOUND, text)


def check_cluster(asked: str | None, cluster_id: str) -> None:
    """Raise INCONSISTENT_CLUSTER_ID if the request names another cluster."""
    if asked not in (None, cluster_id):
        text = f"The request is for cluster {asked}, and this is cluster {cluster_id}."
        raise ApiError(ErrorCode.INCONSISTENT_CLUSTER_ID, text)


def _is_voter_key(voter_id: int, directory_id: bytes) -> bool:
    return voter_id >= 0 and directory_id != ZERO_UUID


def _unsupported(done: str) -> ApiError:
    text = f"No voter can be {done}, because kraft.version is 0: the voters are configured."
    return ApiError(ErrorCode.UNSUPPORTED_VERSION, text)


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)
