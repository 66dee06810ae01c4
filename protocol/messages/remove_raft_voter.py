"""RemoveRaftVoter (key 81): remove a voter from the metadata quorum (KIP-853)."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Int16, Int32, Message, String, Uuid


class RemoveRaftVoterRequest(Message, key=ApiKey.REMOVE_RAFT_VOTER, versions="0", flexible="0+"):
    cluster_id: String | None
    voter_id: Int32
    voter_directory_id: Uuid


class RemoveRaftVoterResponse(Message, key=ApiKey.REMOVE_RAFT_VOTER, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
