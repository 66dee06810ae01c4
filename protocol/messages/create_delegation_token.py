"""CreateDelegationToken (key 38): create a delegation token (KIP-48)."""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Bytes, Int16, Int32, Int64, Message, String, Struct, since


class CreateDelegationTokenRenewer(Struct):
    principal_type: String
    principal_name: String


class CreateDelegationTokenRequest(
    Message, key=ApiKey.CREATE_DELEGATION_TOKEN, versions="1-3", flexible="2+"
):
    owner_principal_type: Annotated[String | None, since(3)] = ""
    owner_principal_name: Annotated[String | None, since(3)] = ""
    renewers: list[CreateDelegationTokenRenewer]
    max_lifetime_ms: Int64


class CreateDelegationTokenResponse(
    Message, key=ApiKey.CREATE_DELEGATION_TOKEN, versions="1-3", flexible="2+"
):
    error_code: Int16 = 0
    principal_type: String = ""
    principal_name: String = ""
    token_requester_principal_type: Annotated[String, since(3)] = ""
    token_requester_principal_name: Annotated[String, since(3)] = ""
    issue_timestamp_ms: Int64 = 0
    expiry_timestamp_ms: Int64 = 0
    max_timestamp_ms: Int64 = 0
    token_id: String = ""
    hmac: Bytes = b""
    throttle_time_ms: Int32 = 0
