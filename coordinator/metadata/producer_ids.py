"""Producer ids: who asks gets one that nobody had before, in this life of the broker or another.

They come from blocks of 1,000. The record that takes a block is in the log before its first id
leaves, so a restart goes on with the next block: what was left of the old one is lost, which costs
nothing. Kafka: ProducerIdControlManager, RPCProducerIdManager.
"""

from collections.abc import Callable

from odradek.coordinator.outcome import JournalRecord, Outcome
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.cluster_metadata import ProducerIdsRecord

from .cluster_metadata import ClusterMetadata

BLOCK_SIZE = 1000
MAX_PRODUCER_ID = 0x7FFFFFFFFFFFFFFF


def take_block(metadata: ClusterMetadata, node_id: int) -> Outcome[range]:
    """The next block of ids, for this broker alone.

    Raises UNKNOWN_SERVER_ERROR when no block of an int64 is left.
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
    """Hands out ids. `next_block` commits `take_block` and returns the range."""

    def __init__(self, next_block: Callable[[int], range]) -> None:
        self._next_block = next_block
        self._block = iter(range(0))

    def take(self, now_ms: int) -> int:
        """An id that nobody had before. Raises the ApiError of a journal that cannot be written."""
        for producer_id in self._block:
            return producer_id
        self._block = iter(self._next_block(now_ms))
        return next(self._block)
