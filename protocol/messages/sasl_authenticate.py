"""SaslAuthenticate (key 36): one step of the SASL exchange."""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import IGNORABLE, Bytes, Int16, Int64, Message, String, since


class SaslAuthenticateRequest(Message, key=ApiKey.SASL_AUTHENTICATE, versions="0-2", flexible="2+"):
    auth_bytes: Bytes


class SaslAuthenticateResponse(
    Message, key=ApiKey.SASL_AUTHENTICATE, versions="0-2", flexible="2+"
):
    error_code: Int16 = 0
    error_message: String | None = None
    auth_bytes: Bytes = b""
    session_lifetime_ms: Annotated[Int64, since(1), IGNORABLE] = 0
