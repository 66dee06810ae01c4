"""SaslHandshake (key 17): choose the SASL mechanism. No version is flexible."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Int16, Message, String


class SaslHandshakeRequest(Message, key=ApiKey.SASL_HANDSHAKE, versions="0-1"):
    mechanism: String


class SaslHandshakeResponse(Message, key=ApiKey.SASL_HANDSHAKE, versions="0-1"):
    error_code: Int16 = 0
    mechanisms: list[String] = []
