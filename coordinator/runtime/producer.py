"""What identifies one instance of a producer: its id, and the epoch that fences older instances."""

from typing import NamedTuple

from odradek.protocol.batch_header import NO_PRODUCER_EPOCH, NO_PRODUCER_ID


class ProducerIdAndEpoch(NamedTuple):
    """A producer id (int64) and its epoch (int16)."""

    producer_id: int
    epoch: int


NO_PRODUCER = ProducerIdAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
