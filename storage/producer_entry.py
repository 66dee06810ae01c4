"""A log's state of one idempotent producer, and the check whether its next batch may follow.

A producer numbers its records per partition. A batch has the number of its first record and the
producer's epoch. The log keeps the last five batches, because a producer has at most five in
flight:

    repeats one of the five batches          a duplicate: answer as the first time
    an older epoch                           INVALID_PRODUCER_EPOCH: a newer instance has begun
    a newer epoch                            must start at sequence 0
    this epoch                               must start where the last batch ended; 0 follows
                                             2**31-1
    outside a transaction while one is open  INVALID_TXN_STATE

An unknown producer may start at any sequence, because its state may have been removed by retention
or expiration. After epoch -1 any sequence may follow, because to Kafka that is no epoch.

Kafka: ProducerStateEntry, ProducerAppendInfo, BatchMetadata.
"""

from typing import NamedTuple

from odradek.protocol.batch_header import (
    MAX_SEQUENCE,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    increment_sequence,
)
from odradek.protocol.errors import ApiError, ErrorCode

from .append import EndMarker

BATCHES_KEPT = 5
MAX_EPOCH = (1 << 15) - 1
# The first transaction.version in which each transaction has an epoch of its own (KIP-890).
FIRST_VERSION_WITH_EPOCH_BUMP = 2
NO_OFFSET = -1
NO_COORDINATOR_EPOCH = -1


class BatchSpan(NamedTuple):
    """Sequences and offsets of a batch that was appended."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerEntry:
    """One producer's state in one log. `txn_first_offset` is -1 while no transaction is open."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp_ms",
        "producer_id",
        "txn_first_offset",
    )

    def __init__(
        self,
        producer_id: int,
        epoch: int,
        last_timestamp_ms: int,
        *,
        coordinator_epoch: int = NO_COORDINATOR_EPOCH,
        txn_first_offset: int = NO_OFFSET,
    ) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.last_timestamp_ms = last_timestamp_ms
        self.coordinator_epoch = coordinator_epoch
        self.txn_first_offset = txn_first_offset
        # Oldest first, BATCHES_KEPT at most. A deque would take seven times the memory.
        self.batches: list[BatchSpan] = []

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    @property
    def has_open_transaction(self) -> bool:
        return self.txn_first_offset != NO_OFFSET

    def continues_with(self, header: BatchHeader) -> bool:
        """Whether the batch is the next one of the same epoch, and of the same transaction if any.

        If so, `check` accepts it and `find_duplicate` finds nothing. The offsets of the kept
        batches span less than all sequence numbers. So none of them has the numbers that come next.
        """
        if not self.batches or header.producer_epoch != self.epoch or self.epoch < 0:
            return False
        oldest, newest = self.batches[0], self.batches[-1]
        is_transactional = header.attributes & TRANSACTIONAL_BIT != 0
        return (
            header.base_sequence == (newest.last_sequence + 1) & MAX_SEQUENCE
            and is_transactional == (self.txn_first_offset != NO_OFFSET)
            and newest.last_offset - oldest.last_offset + oldest.offset_delta < MAX_SEQUENCE
        )

    def find_duplicate(self, header: BatchHeader) -> BatchSpan | None:
        """The batch with the same epoch and the same first and last sequence."""
        if header.producer_epoch != self.epoch:
            return None
        last_sequence, offset_delta = header.last_sequence, header.last_offset_delta
        for batch in self.batches:
            if batch.last_sequence == last_sequence and batch.offset_delta == offset_delta:
                return batch
        return None

    def check(self, header: BatchHeader, base_offset: int, *, check_sequence: bool) -> None:
        """Raise ApiError if the batch may not follow, see the module. Changes nothing."""
        if header.producer_epoch < self.epoch:
            raise self._error_of_batch(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                base_offset,
                f"epoch {header.producer_epoch} is older than the last seen, {self.epoch}",
            )
        if check_sequence:
            self._check_sequence(header, base_offset)
        if self.has_open_transaction and not header.is_transactional:
            raise self._error_of_batch(
                ErrorCode.INVALID_TXN_STATE,
                base_offset,
                f"not transactional, but its transaction since {self.txn_first_offset} is open",
            )

    def check_marker(self, marker: EndMarker, base_offset: int) -> None:
        """Raise ApiError if the marker may not end the transaction. Changes nothing.

        In version 2 a marker has a newer epoch than the batches. One of the same epoch is accepted
        if no transaction is open: it repeats the marker that ended it. Raises
        INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED.
        """
        epoch = marker.producer_epoch
        is_late = epoch < self.epoch
        if marker.transaction_version >= FIRST_VERSION_WITH_EPOCH_BUMP and epoch == self.epoch:
            is_late = self.has_open_transaction and epoch != MAX_EPOCH
        if is_late:
            raise self._error_of_batch(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                base_offset,
                f"a marker of epoch {epoch} came after epoch {self.epoch}",
            )
        if marker.coordinator_epoch < self.coordinator_epoch:
            raise self._error_of_batch(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                base_offset,
                f"a marker of coordinator epoch {marker.coordinator_epoch} came after one of epoch"
                f" {self.coordinator_epoch}",
            )

    def expects(self, header: BatchHeader) -> bool:
        """Whether the batch continues where the last one ended."""
        is_same = header.producer_epoch == self.epoch
        return is_same and header.base_sequence == increment_sequence(self.last_sequence, 1)

    def _check_sequence(self, header: BatchHeader, base_offset: int) -> None:
        if self.epoch == NO_PRODUCER_EPOCH:
            return
        if header.producer_epoch != self.epoch:
            expected, which = 0, "the first of a new epoch"
        else:
            last = self.last_sequence
            expected = increment_sequence(last, 1)
            which = f"the last sequence is {last}"
        if header.base_sequence != expected:
            raise self._error_of_batch(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                base_offset,
                f"sequence {header.base_sequence} of epoch {header.producer_epoch} "
                f"came, {expected} was expected: {which}",
            )

    def _error_of_batch(self, code: ErrorCode, base_offset: int, why: str) -> ApiError:
        return ApiError(code, f"producer {self.producer_id} at offset {base_offset}: {why}")

    def add(self, header: BatchHeader, base_offset: int) -> None:
        """Add a batch that was appended (or is replayed) at `base_offset`."""
        sequence, delta = header.base_sequence, header.last_offset_delta
        if sequence != NO_SEQUENCE:  # as `header.last_sequence`, without two calls: a hot path
            sequence = (sequence + delta) & MAX_SEQUENCE
        span = BatchSpan(sequence, base_offset + delta, delta, header.max_timestamp)
        self.add_span(header.producer_epoch, span)

    def add_span(self, epoch: int, span: BatchSpan) -> None:
        """Add a batch of which only the span is known."""
        if epoch != self.epoch:
            self._enter_epoch(epoch)
        if len(self.batches) == BATCHES_KEPT:
            del self.batches[0]
        self.batches.append(span)
        self.last_timestamp_ms = span.timestamp_ms

    def end_transaction(self, epoch: int, coordinator_epoch: int, timestamp_ms: int) -> None:
        """Close the transaction: a commit or abort marker was appended (or is replayed)."""
        self._enter_epoch(epoch)
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp_ms = timestamp_ms
        self.txn_first_offset = NO_OFFSET

    def _enter_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.batches.clear()
            self.epoch = epoch
