"""Completes the transactions that are prepared: writes their markers, then the Complete record.

The first markers are written in the turn of the event loop in which the transaction was prepared,
and usually these are all, so no client sees a transaction that is committed in one partition and
not in another. If there are many more, the others are written in later turns. Some partitions must
wait: a log may still be recovered after a start, or its directory may be offline. Until all markers
are written the transaction stays prepared, and clients get CONCURRENT_TRANSACTIONS.

Once all markers are written, the producer may begin its next transaction. The Complete record is
written with the next record of the shard, such as the one that begins that transaction. If none
comes, or many transactions are completed before, such records are written alone. A crash before
that leaves a prepared transaction: its markers are written again, which changes nothing.

With `flush.messages` each step waits until the step before it is synced. After a power cut no
marker may be on the disk whose decision is lost: the transaction would be aborted in the other
partitions. And none may be lost whose transaction is completed. In Kafka an append itself syncs.

Kafka: TransactionMarkerChannelManager.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from odradek.coordinator.runtime.shards import Shard
from odradek.coordinator.runtime.timers import DeadlineQueue, KeyedDeadlines, Now
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

# Markers are written for so long in one turn, and at least so many: those of a small transaction
# should be visible at once. Most take 10 µs, one that rolls a segment takes half a millisecond.
TURN_MS = 1
MIN_MARKERS = 10
# The delays before the next markers are written, and before a sync is checked again. A deadline of
# the current millisecond is not served in this turn of the event loop, but in the next.
NEXT_MS = 0
SYNC_RETRY_MS = 2
# At most this many markers are checked in one turn.
MAX_CHECKED = 1000
# The delay before markers that could not be written are tried again. It doubles with each try: a
# log directory may stay offline, and a transaction may have thousands of partitions. Complete
# records, for which usually nothing waits, are tried again after the longest delay.
RETRY_MS = 100
LONGEST_RETRY_MS = 5_000
# The longest time for which Complete records wait for another record of their shard, and the number
# of those that wait. It takes a millisecond to write so many.
COMPLETE_RECORD_MS = 100
MAX_COMPLETED = 50
# How many transactions whose Complete records cannot be written are named in the log.
LOGGED_COMPLETED = 10


@dataclass(slots=True)
class MarkersLeft:
    """What is left to do for the markers of a prepared transaction.

    `transaction` is as it was when its end was decided. It may have a next producer id. The stored
    one, made from its record, has none with transaction.version 0: that record has no such field.
    `missing`: the partitions whose markers are to be written, the next one last.
    `refused`: the partitions whose markers could not be written, each with the reason.
    `unsynced`: the markers that are written and not yet synced, in the order of writing; each with
    its partition, log and offset.
    """

    transaction: Transaction
    missing: list[TopicPartition] = field(init=False)
    refused: dict[TopicPartition, str] = field(default_factory=dict)
    unsynced: deque[tuple[TopicPartition, PartitionLog, int]] = field(default_factory=deque)
    _retry_ms: int = RETRY_MS

    def __post_init__(self) -> None:
        self.missing = list(self.transaction.partitions)  # to sort thousands takes milliseconds

    def retry_refused(self) -> int:
        """Move what was refused to `missing`. Returns the delay before the next try."""
        where, reason = next(iter(self.refused.items()))
        logger.log(
            logging.INFO if self._retry_ms == RETRY_MS else logging.DEBUG,
            "no marker of %s yet in %d partitions, the first is %s-%d: %s",
            self.transaction.transactional_id,
            len(self.refused),
            *where,
            reason,
        )
        self.missing, self.refused = list(reversed(self.refused)), {}
        return self.next_delay_ms()

    def next_delay_ms(self) -> int:
        """Return the delay before the next try, twice as long as the last one."""
        delay_ms, self._retry_ms = self._retry_ms, min(2 * self._retry_ms, LONGEST_RETRY_MS)
        return delay_ms


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
        clock: Callable[[], Now],
    ) -> None:
        """`serving` iterates over the shards that are served."""
        self._serving = serving
        self._markers = markers
        self._transaction_version = transaction_version
        self._clock = clock
        self._retries = KeyedDeadlines(deadlines, self._retry)
        self._records_due = KeyedDeadlines(deadlines, self._write_completed)
        # What is scheduled in `_retries`; None: it has not been begun since its shard was loaded.
        self._left: dict[Waiting, MarkersLeft | None] = {}

    def begin(self, shard: TransactionShard, transaction: Transaction, now: Now) -> None:
        """Complete a transaction that is prepared, now or when it becomes possible."""
        left = MarkersLeft(transaction)
        again_ms: int | None = now.timer_ms + RETRY_MS  # if an unexpected error ends this try
        try:
            again_ms = self._try(shard, left, now)
        finally:
            if again_ms is not None:
                waiting = Waiting(shard, transaction.transactional_id)
                self._left[waiting] = left
                self._retries.schedule(waiting, again_ms)

    def resume(self, shard: TransactionShard, transactional_id: str, now: Now) -> None:
        """Complete a prepared transaction of a shard that was loaded, in one of the next turns."""
        waiting = Waiting(shard, transactional_id)
        self._left.setdefault(waiting, None)
        self._retries.schedule_if_absent(waiting, now.timer_ms)

    def cancel(self, shard: TransactionShard) -> None:
        """Stop completing the transactions of a shard, because its log is not served any more."""
        for waiting in [each for each in self._left if each.shard is shard]:
            self._retries.cancel(waiting)
            del self._left[waiting]
        self._records_due.cancel(shard)
        shard.state.completed.clear()

    def close(self, now: Now) -> None:
        """Write the Complete records that are not written yet, and stop."""
        for shard in self._serving():
            self._write_completed(shard, now)
            self.cancel(shard)

    def _write_completed(self, shard: TransactionShard, now: Now) -> int | None:
        """Write the Complete records of a shard. Returns the time of the next try, if it failed."""
        completed = shard.state.completed
        if not completed:
            return None
        outcome = shard.state.write_completed(self._transaction_version())
        try:
            shard.journal.commit(outcome, now.wall_ms)
        except ApiError as error:
            logger.warning(
                "cannot complete %d transactions yet, among them %s: %s",
                len(completed),
                ", ".join(islice(completed, LOGGED_COMPLETED)),
                error,
            )
            return now.timer_ms + LONGEST_RETRY_MS
        return None

    def _retry(self, waiting: Waiting, now: Now) -> int | None:
        shard, transactional_id = waiting
        transaction = shard.state.by_id.get(transactional_id)
        again_ms = None
        if transaction is not None and transaction.state in PREPARED:
            left = self._left.get(waiting) or MarkersLeft(transaction)
            self._left[waiting] = left
            again_ms = self._try(shard, left, now)
        if again_ms is None:
            self._left.pop(waiting, None)
        return again_ms

    def _try(self, shard: TransactionShard, left: MarkersLeft, now: Now) -> int | None:
        """Write some markers. Returns the time of the next try; None if nothing is left."""
        transactional_id = left.transaction.transactional_id
        if not is_synced(shard.journal.log, shard.state.record_offsets[transactional_id]):
            return now.timer_ms + SYNC_RETRY_MS
        self._write_markers(shard, left, now)
        if left.missing:
            return now.timer_ms + NEXT_MS
        _check_unsynced(left)
        if left.refused:
            return now.timer_ms + left.retry_refused()
        if left.unsynced:
            return now.timer_ms + SYNC_RETRY_MS
        completed = shard.state.completed
        if len(completed) >= MAX_COMPLETED:  # their records could not be written
            return now.timer_ms + left.next_delay_ms()
        completed[transactional_id] = complete(left.transaction, now.wall_ms)
        self._records_due.schedule_if_absent(shard, now.timer_ms + COMPLETE_RECORD_MS)
        if len(completed) == MAX_COMPLETED:
            self._write_completed(shard, now)
        return None

    def _write_markers(self, shard: TransactionShard, left: MarkersLeft, now: Now) -> None:
        """Write the next markers that are missing, as many as fit into one turn."""
        transaction = left.transaction
        marker = EndMarker(
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            is_commit=transaction.state is TransactionState.PREPARE_COMMIT,
            coordinator_epoch=shard.journal.log.leader_epoch,
            transaction_version=transaction.client_version,
        )
        ends_ms = now.timer_ms + TURN_MS
        for number in range(len(left.missing)):
            if number >= MIN_MARKERS and self._clock().timer_ms >= ends_ms:
                break
            where = left.missing[-1]
            try:
                log = self._markers.write(marker, where, now.wall_ms)
            except ApiError as error:
                left.refused[where] = str(error)
            else:
                if log is not None and not is_synced(log, log.log_end_offset - 1):
                    left.unsynced.append((where, log, log.log_end_offset - 1))
            # Only now: after an unexpected error the marker is still missing, and is tried again.
            left.missing.pop()


def _check_unsynced(left: MarkersLeft) -> None:
    """Forget the first markers, up to one that is not synced yet.

    Those whose log is offline become `refused`.
    """
    for where, log, offset in list(islice(left.unsynced, MAX_CHECKED)):
        if not log.is_online:
            left.refused[where] = f"{log.name} is offline"
        elif not is_synced(log, offset):
            return
        left.unsynced.popleft()


def is_synced(log: PartitionLog, offset: int) -> bool:
    """Whether the record at an offset is synced, or need not be.

    The high watermark tells: with `flush.messages` it passes a record only after the sync.
    """
    return log.high_watermark > offset
