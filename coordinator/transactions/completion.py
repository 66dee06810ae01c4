"""Completes the transactions that are prepared: writes their markers, then the Complete record.

Usually the markers are written in the turn of the event loop in which the transaction was prepared,
so no client sees a transaction that is committed in one partition and not in another. Some
partitions must wait: a log may still be recovered after a start, or its directory may be offline.
Then the transaction stays prepared, clients get CONCURRENT_TRANSACTIONS, and the rest is tried
again.

Once all markers are written, the producer may begin its next transaction. The Complete record is
written with the next record of the shard, such as the one that begins that transaction, and alone
if none comes. A crash before that leaves a prepared transaction: its markers are written again,
which changes nothing.

With `flush.messages` each step waits until the step before it is synced. After a power cut no
marker may be on the disk whose decision is lost: the transaction would be aborted in the other
partitions. And none may be lost whose transaction is completed. In Kafka an append itself syncs.

Kafka: TransactionMarkerChannelManager.
"""

import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple

from odradek.coordinator.runtime.shards import Shard
from odradek.coordinator.runtime.timers import Deadline, DeadlineQueue, KeyedDeadlines, Now
from odradek.protocol.errors import ApiError
from odradek.storage.append import EndMarker
from odradek.storage.log import PartitionLog
from odradek.storage.topic_partition import TopicPartition

from .ending import complete
from .marker_writer import MarkerWriter
from .states import PREPARED, TransactionState
from .table import TransactionTable
from .transaction import Transaction

logger = logging.getLogger("odradek.transactions")

TransactionShard = Shard[TransactionTable]

# The delay before the rest of the markers is tried again, and a sync is looked for again.
RETRY_MS = 100
SYNC_RETRY_MS = 2
# The longest time for which Complete records wait for another record of their shard.
COMPLETE_RECORD_MS = 100


# The partitions that have their marker, and the marker's log and offset.
Written = dict[TopicPartition, tuple[PartitionLog, int] | None]


class Waiting(NamedTuple):
    """A prepared transaction that waits to be completed, and the shard that has it."""

    shard: TransactionShard
    transactional_id: str

    def __repr__(self) -> str:
        return f"{self.transactional_id} in {self.shard.journal.log.name}"


class Completion:
    """The prepared transactions of all shards."""

    def __init__(
        self,
        *,
        serving: Callable[[], Iterable[TransactionShard]],
        markers: MarkerWriter,
        transaction_version: Callable[[], int],
        deadlines: DeadlineQueue,
    ) -> None:
        """`serving` iterates over the shards that are served."""
        self._serving = serving
        self._markers = markers
        self._transaction_version = transaction_version
        self._deadlines = deadlines
        self._retries = KeyedDeadlines(deadlines, self._retry)
        self._records_due = Deadline(self._write_completed, None)
        self._written: dict[Waiting, Written] = {}

    def begin(self, shard: TransactionShard, transaction: Transaction, now: Now) -> None:
        """Complete a transaction that is prepared, now or when it becomes possible."""
        written: Written = {}
        retry_ms = self._try(shard, transaction, written, now)
        if retry_ms is not None:
            waiting = Waiting(shard, transaction.transactional_id)
            self._written[waiting] = written
            self._retries.schedule(waiting, now.timer_ms + retry_ms)

    def cancel(self, shard: TransactionShard) -> None:
        """Stop completing the transactions of a shard, because its log is not served any more."""
        for transaction in shard.state.prepared():
            waiting = Waiting(shard, transaction.transactional_id)
            self._retries.cancel(waiting)
            self._written.pop(waiting, None)
        shard.state.completed.clear()

    def write_completed(self, now: Now) -> bool:
        """Write the Complete records that are not written yet. Returns whether all are written."""
        all_written = True
        for shard in self._serving():
            completed = shard.state.completed
            if not completed:
                continue
            outcome = shard.state.write_completed(self._transaction_version())
            try:
                shard.journal.commit(outcome, now.wall_ms)
            except ApiError as error:
                all_written = False
                logger.warning("cannot complete %s yet: %s", ", ".join(completed), error)
        return all_written

    def _write_completed(self, _subject: None, now: Now) -> None:
        if not self.write_completed(now):
            self._deadlines.schedule(self._records_due, now.timer_ms + RETRY_MS)

    def _retry(self, waiting: Waiting, now: Now) -> int | None:
        shard, transactional_id = waiting
        transaction = shard.state.by_id.get(transactional_id)
        retry_ms = None
        if transaction is not None and transaction.state in PREPARED:
            retry_ms = self._try(shard, transaction, self._written[waiting], now)
        if retry_ms is None:
            del self._written[waiting]
            return None
        return now.timer_ms + retry_ms

    def _try(
        self, shard: TransactionShard, transaction: Transaction, written: Written, now: Now
    ) -> int | None:
        """Write the markers. Returns the delay before the next try; None if all are written."""
        transactional_id = transaction.transactional_id
        if not _is_synced(shard.journal.log, shard.state.record_offsets[transactional_id]):
            return SYNC_RETRY_MS
        if not self._write_markers(shard, transaction, written, now):
            return RETRY_MS
        for place in written.values():
            if place is not None and not _is_synced(*place):
                return SYNC_RETRY_MS
        shard.state.completed[transactional_id] = complete(transaction, now.wall_ms)
        if self._records_due.at_ms is None:
            self._deadlines.schedule(self._records_due, now.timer_ms + COMPLETE_RECORD_MS)
        return None

    def _write_markers(
        self, shard: TransactionShard, transaction: Transaction, written: Written, now: Now
    ) -> bool:
        """Write the markers that are missing. Returns whether all are written."""
        for where, place in list(written.items()):
            if place is not None and not place[0].is_online:
                del written[where]  # the log was deleted or lost: its marker will not be synced
        marker = EndMarker(
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            is_commit=transaction.state is TransactionState.PREPARE_COMMIT,
            coordinator_epoch=shard.journal.log.leader_epoch,
            transaction_version=transaction.client_version,
        )
        for where in sorted(transaction.partitions - written.keys()):
            try:
                log = self._markers.write(marker, where, now.wall_ms)
            except ApiError as error:
                logger.info("no marker in %s-%d yet: %s", *where, error)
                continue
            written[where] = None if log is None else (log, log.log_end_offset - 1)
        return len(written) == len(transaction.partitions)


def _is_synced(log: PartitionLog, offset: int) -> bool:
    """Whether readers see what is at an offset. If it must be synced, they do not see it before."""
    return log.high_watermark > offset
