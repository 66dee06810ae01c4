"""UnregisterController (key 94): remove the registration of a controller that is gone."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Int16, Int32, Message, String


class UnregisterControllerRequest(
    Message, key=ApiKey.UNREGISTER_CONTROLLER, versions="0", flexible="0+"
):
    controller_id: Int32


class UnregisterControllerResponse(
    Message, key=ApiKey.UNREGISTER_CONTROLLER, versions="0", flexible="0+"
):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
