"""Follows the transactions of a log from its batches, without a broker.

A log may begin in the middle of a transaction, because retention has deleted its first records.
Only a producer snapshot knows where such a transaction began.

Kafka: ProducerStateManager.ongoingTxns.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from odradek.protocol.batch_header import BatchHeader
from odradek.storage.producer_entry import ProducerEntry


@dataclass(slots=True, kw_only=True)
class OpenTransaction:
    """A transaction that no marker has ended. The epoch is that of its last batch.

    `first_timestamp_ms` is that of its first batch that was added; -1 if none was, because the
    transaction is known from a snapshot only.
    """

    producer_id: int
    producer_epoch: int
    first_offset: int
    first_timestamp_ms: int
    last_timestamp_ms: int


class OpenTransactions:
    """The open transactions of one log, after the batches so far.

    `begin` is the first offset of the log. A transaction may have begun before it.
    """

    def __init__(self, begin: int) -> None:
        self._begin = begin
        self._by_producer: dict[int, OpenTransaction] = {}

    def __iter__(self) -> Iterator[OpenTransaction]:
        """Iterate over them, the oldest first."""
        return iter(sorted(self._by_producer.values(), key=lambda each: each.first_offset))

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of the oldest, or None."""
        return min((each.first_offset for each in self._by_producer.values()), default=None)

    def find(self, producer_id: int) -> OpenTransaction | None:
        """Return the open transaction of a producer."""
        return self._by_producer.get(producer_id)

    def add(self, header: BatchHeader) -> None:
        """Add a batch of records; it is ignored unless it is of a transaction."""
        if not header.is_transactional:
            return
        known = self._by_producer.get(header.producer_id)
        if known is None:
            self._by_producer[header.producer_id] = OpenTransaction(
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                first_offset=header.base_offset,
                first_timestamp_ms=header.max_timestamp,
                last_timestamp_ms=header.max_timestamp,
            )
        else:
            known.producer_epoch = header.producer_epoch
            known.last_timestamp_ms = header.max_timestamp

    def end(self, producer_id: int) -> OpenTransaction | None:
        """End the transaction of a producer, and return it; None if none is open."""
        return self._by_producer.pop(producer_id, None)

    def adopt(self, snapshot: Iterable[ProducerEntry]) -> None:
        """Correct the transactions that began before the log's first offset.

        `snapshot` is a producer snapshot at the current offset. Of these transactions, those that
        it has replace the known ones, and the others are dropped.
        """
        known = {entry.producer_id: entry for entry in snapshot if entry.has_open_transaction}
        for producer_id, each in list(self._by_producer.items()):
            if each.first_offset < self._begin and producer_id not in known:
                del self._by_producer[producer_id]
        for entry in known.values():
            seen = self._by_producer.get(entry.producer_id)
            if entry.txn_first_offset < self._begin or (
                seen is not None and seen.first_offset < self._begin
            ):
                self._replace(entry, seen)

    def reset(self, snapshot: Iterable[ProducerEntry], offset: int) -> None:
        """Replace all transactions by those of a snapshot at `offset`, the current offset.

        From then on, `offset` counts as the first offset of the log.
        """
        self._begin = offset
        seen, self._by_producer = self._by_producer, {}
        for entry in snapshot:
            if entry.has_open_transaction:
                self._replace(entry, seen.get(entry.producer_id))

    def _replace(self, entry: ProducerEntry, seen: OpenTransaction | None) -> None:
        self._by_producer[entry.producer_id] = OpenTransaction(
            producer_id=entry.producer_id,
            producer_epoch=entry.epoch,
            first_offset=entry.txn_first_offset,
            first_timestamp_ms=-1 if seen is None else seen.first_timestamp_ms,
            last_timestamp_ms=entry.last_timestamp_ms,
        )

    def forget_unseen(self) -> None:
        """Forget the transactions that began before the log's first offset.

        Call it at a gap that the cleaner has left. The cleaner does not go beyond the last stable
        offset, so they have ended. Their markers may have been removed.
        """
        for producer_id, each in list(self._by_producer.items()):
            if each.first_offset < self._begin:
                del self._by_producer[producer_id]
