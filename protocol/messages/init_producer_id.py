"""InitProducerId (key 22): get a producer's id and epoch. v3 can keep the id (KIP-360).

v6 (two-phase commit, KIP-939) is supported but not advertised: it is unstable in Kafka.
"""

from typing import Annotated

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Bool, Int16, Int32, Int64, Message, String, since


class InitProducerIdRequest(
    Message, key=ApiKey.INIT_PRODUCER_ID, versions="0-6", flexible="2+", advertised="0-5"
):
    transactional_id: String | None
    transaction_timeout_ms: Int32
    producer_id: Annotated[Int64, since(3)] = -1
    producer_epoch: Annotated[Int16, since(3)] = -1
    enable2_pc: Annotated[Bool, since(6)] = False
    keep_prepared_txn: Annotated[Bool, since(6)] = False


class InitProducerIdResponse(
    Message, key=ApiKey.INIT_PRODUCER_ID, versions="0-6", flexible="2+", advertised="0-5"
):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = -1
    producer_epoch: Int16 = 0
    ongoing_txn_producer_id: Annotated[Int64, since(6)] = -1
    ongoing_txn_producer_epoch: Annotated[Int16, since(6)] = -1
