"""Producer ids: each is given out once, also across restarts of the broker.

They come from blocks of 1,000. The record that takes a block is in the log before its first id is
given out. A restart continues with the next block; the unused ids of the old one are skipped.
Kafka: ProducerIdControlManager, RPCProducerIdManager.
"""

from collections.abc import Callable

from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.cluster_metadata import ProducerIdsRecord

from .cluster_metadata import ClusterMetadata

BLOCK_SIZE = 1000
MAX_PRODUCER_ID = 0x7FFFFFFFFFFFFFFF


def take_block(metadata: ClusterMetadata, node_id: int) -> Outcome[range]:
    """Take the next block of ids.

    Raises UNKNOWN_SERVER_ERROR when no block is left in an int64.
    """
    first = metadata.next_producer_id
    if first > MAX_PRODUCER_ID - BLOCK_SIZE:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "Exhausted all producerIds.")
    broker = metadata.brokers.get(node_id)
    record = ProducerIdsRecord(
        broker_id=node_id,
        broker_epoch=-1 if broker is None else broker.broker_epoch,
        next_producer_id=first + BLOCK_SIZE,
    )
    return Outcome(reply=range(first, first + BLOCK_SIZE), records=(JournalRecord(record),))


class ProducerIds:
    """Gives out ids. `next_block` commits `take_block` and returns the range."""

    def __init__(self, next_block: Callable[[int], range]) -> None:
        self._next_block = next_block
        self._block = iter(range(0))

    def take(self, now_ms: int) -> int:
        """Return a new id. Raises ApiError if the next block could not be written."""
        for producer_id in self._block:
            return producer_id
        self._block = iter(self._next_block(now_ms))
        return next(self._block)
