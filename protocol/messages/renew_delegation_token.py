"""RenewDelegationToken (key 39): extend the lifetime of a delegation token."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Bytes, Int16, Int32, Int64, Message


class RenewDelegationTokenRequest(
    Message, key=ApiKey.RENEW_DELEGATION_TOKEN, versions="1-2", flexible="2+"
):
    hmac: Bytes
    renew_period_ms: Int64


class RenewDelegationTokenResponse(
    Message, key=ApiKey.RENEW_DELEGATION_TOKEN, versions="1-2", flexible="2+"
):
    error_code: Int16 = 0
    expiry_timestamp_ms: Int64 = 0
    throttle_time_ms: Int32 = 0
