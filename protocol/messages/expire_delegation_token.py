"""ExpireDelegationToken (key 40): set a delegation token's expiry time."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Bytes, Int16, Int32, Int64, Message


class ExpireDelegationTokenRequest(
    Message, key=ApiKey.EXPIRE_DELEGATION_TOKEN, versions="1-2", flexible="2+"
):
    hmac: Bytes
    expiry_time_period_ms: Int64


class ExpireDelegationTokenResponse(
    Message, key=ApiKey.EXPIRE_DELEGATION_TOKEN, versions="1-2", flexible="2+"
):
    error_code: Int16 = 0
    expiry_timestamp_ms: Int64 = 0
    throttle_time_ms: Int32 = 0
