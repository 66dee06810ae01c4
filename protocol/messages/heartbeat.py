"""Heartbeat (key 12): keep a member of a classic group alive; says whether it must rejoin."""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import IGNORABLE, Int16, Int32, Message, String, since


class HeartbeatRequest(Message, key=ApiKey.HEARTBEAT, versions="0-4", flexible="4+"):
    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: Annotated[String | None, since(3)] = None


class HeartbeatResponse(Message, key=ApiKey.HEARTBEAT, versions="0-4", flexible="4+"):
    throttle_time_ms: Annotated[Int32, since(1), IGNORABLE] = 0
    error_code: Int16 = 0
