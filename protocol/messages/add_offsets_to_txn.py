"""AddOffsetsToTxn (key 25): add a group's offsets to a transaction."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Int16, Int32, Int64, Message, String


class AddOffsetsToTxnRequest(Message, key=ApiKey.ADD_OFFSETS_TO_TXN, versions="0-4", flexible="3+"):
    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    group_id: String


class AddOffsetsToTxnResponse(
    Message, key=ApiKey.ADD_OFFSETS_TO_TXN, versions="0-4", flexible="3+"
):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
