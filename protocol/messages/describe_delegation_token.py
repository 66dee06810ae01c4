"""DescribeDelegationToken (key 41): the delegation tokens of these owners; null: of all."""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Bytes, Int16, Int32, Int64, Message, String, Struct, since


class DescribeDelegationTokenOwner(Struct):
    principal_type: String
    principal_name: String


class DescribeDelegationTokenRequest(
    Message, key=ApiKey.DESCRIBE_DELEGATION_TOKEN, versions="1-3", flexible="2+"
):
    owners: list[DescribeDelegationTokenOwner] | None


class DescribeDelegationTokenRenewer(Struct):
    principal_type: String
    principal_name: String


class DescribeDelegationTokenToken(Struct):
    principal_type: String
    principal_name: String
    token_requester_principal_type: Annotated[String, since(3)] = ""
    token_requester_principal_name: Annotated[String, since(3)] = ""
    issue_timestamp: Int64
    expiry_timestamp: Int64
    max_timestamp: Int64
    token_id: String
    hmac: Bytes
    renewers: list[DescribeDelegationTokenRenewer]


class DescribeDelegationTokenResponse(
    Message, key=ApiKey.DESCRIBE_DELEGATION_TOKEN, versions="1-3", flexible="2+"
):
    error_code: Int16 = 0
    tokens: list[DescribeDelegationTokenToken] = []
    throttle_time_ms: Int32 = 0
