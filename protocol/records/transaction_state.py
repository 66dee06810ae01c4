"""The records of `__transaction_state`: each has the whole state of one transactional id.

coordinator/runtime/record_codec frames the records. The finalised `transaction.version` determines
the version of the value: 0 if it is 0, else 1. On disk: never renumber.

Kafka: TransactionLog, org.apache.kafka.coordinator.transaction.generated.
"""

from collections.abc import Mapping
from typing import Annotated

from odradek.protocol.schema import (
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    String,
    Struct,
    since,
    tagged,
)


class TransactionLogKey(Message, versions="0"):
    transactional_id: String


class PartitionsSchema(Struct):
    topic: String
    partition_ids: list[Int32]


class TransactionLogValue(Message, versions="0-1", flexible="1+"):
    """`transaction_status` is the number of Kafka's TransactionState.

    `transaction_partitions` is null, not empty, while no transaction has begun (state Empty). If
    version 0 is written, the four fields of version 1 must have their defaults. Kafka 4.3 defines
    `next_producer_epoch` but never writes it.
    """

    producer_id: Int64
    previous_producer_id: Annotated[Int64, since(1), tagged(0, since=1)] = -1
    next_producer_id: Annotated[Int64, since(1), tagged(1, since=1)] = -1
    producer_epoch: Int16
    next_producer_epoch: Annotated[Int16, since(1), tagged(3, since=1)] = -1
    transaction_timeout_ms: Int32
    transaction_status: Int8
    transaction_partitions: list[PartitionsSchema] | None
    transaction_last_update_timestamp_ms: Int64
    transaction_start_timestamp_ms: Int64
    client_transaction_version: Annotated[Int16, since(1), tagged(2, since=1)] = 0


RECORD_TYPES: Mapping[int, tuple[type[Message], type[Message]]] = {
    0: (TransactionLogKey, TransactionLogValue)
}
