"""AddRaftVoter (key 80): add a voter to the metadata quorum (KIP-853)."""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Bool, Int16, Int32, Message, String, Struct, Uint16, Uuid, since


class AddRaftVoterListener(Struct):
    name: String
    host: String
    port: Uint16


class AddRaftVoterRequest(Message, key=ApiKey.ADD_RAFT_VOTER, versions="0-1", flexible="0+"):
    cluster_id: String | None
    timeout_ms: Int32
    voter_id: Int32
    voter_directory_id: Uuid
    listeners: list[AddRaftVoterListener]
    ack_when_committed: Annotated[Bool, since(1)] = True


class AddRaftVoterResponse(Message, key=ApiKey.ADD_RAFT_VOTER, versions="0-1", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
