"""UnregisterBroker (key 64): remove the registration of a broker that is gone."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Int16, Int32, Message, String


class UnregisterBrokerRequest(Message, key=ApiKey.UNREGISTER_BROKER, versions="0", flexible="0+"):
    broker_id: Int32


class UnregisterBrokerResponse(Message, key=ApiKey.UNREGISTER_BROKER, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
