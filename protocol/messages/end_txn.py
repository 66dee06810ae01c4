"""EndTxn (key 26): commit or abort a transaction.

From v5 on, the response has the new producer epoch (KIP-890).
"""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import IGNORABLE, Bool, Int16, Int32, Int64, Message, String, since


class EndTxnRequest(Message, key=ApiKey.END_TXN, versions="0-5", flexible="3+"):
    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    committed: Bool


class EndTxnResponse(Message, key=ApiKey.END_TXN, versions="0-5", flexible="3+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Annotated[Int64, since(5), IGNORABLE] = -1
    producer_epoch: Annotated[Int16, since(5), IGNORABLE] = -1
