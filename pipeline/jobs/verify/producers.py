"""Checks the sequence numbers of idempotent producers. Each batch continues the one before it:

    the same epoch      the next sequence; 0 follows 2**31-1
    a newer epoch       0
    an older epoch      is an error

The broker makes the same check when a batch is appended (storage/producer_entry.py). After
cleaning, batches may be missing, so a sequence may skip numbers, but never repeat or go back. A
producer that was silent for a day may have expired, and may continue with any sequence.

A task checks one segment. The first batch of each producer in a chunk is compared with its last
batch in the chunks before. The driver compares segments in the same way.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from odradek.pipeline.decoding.batch_table import BatchTable
from odradek.pipeline.decoding.varints import Ints
from odradek.protocol.batch_header import MAX_SEQUENCE, increment_sequence

_EXPIRATION_MS = 86_400_000  # producer.id.expiration.ms
_HALF = 1 << 30


class ProducerBatch(NamedTuple):
    """The epoch and sequence numbers of a batch, and where it is."""

    epoch: int
    base_sequence: int
    last_sequence: int
    base_offset: int
    position: int
    timestamp_ms: int


class ProducerBatches(NamedTuple):
    """The first and last batch of one producer in a part of a log."""

    first: ProducerBatch
    last: ProducerBatch


class SequenceViolation(NamedTuple):
    """A batch that does not continue the producer's batch at offset `since`.

    `is_gap`: sequence numbers are missing in between, as after batches have been removed.
    """

    what: str
    since: int
    offset: int
    position: int
    is_gap: bool


class Producers:
    """The producers of a part of a log: of a segment, or of a partition so far."""

    def __init__(self) -> None:
        self.batches: dict[int, ProducerBatches] = {}

    def check(self, table: BatchTable) -> Iterator[SequenceViolation]:
        """Check the next batches against each other and those before."""
        table = table.where(
            (table.producer_id >= 0) & (table.base_sequence >= 0) & ~table.is_control
        )
        if not table.height:
            return
        order = np.argsort(table.producer_id, kind="stable")
        yield from _violations_within(table, order)
        producer_id = table.producer_id[order]
        first = np.flatnonzero(np.diff(producer_id, prepend=-1))
        last = np.append(first[1:], producer_id.size) - 1
        rows = zip(order[first].tolist(), order[last].tolist(), strict=True)
        yield from self.join(
            {
                int(table.producer_id[head]): ProducerBatches(
                    _batch(table, head), _batch(table, tail)
                )
                for head, tail in rows
            }
        )

    def join(self, following: dict[int, ProducerBatches]) -> Iterator[SequenceViolation]:
        """Append the part that follows this one, and check where they meet."""
        for producer_id, batches in following.items():
            known = self.batches.get(producer_id, batches)
            if known is not batches:
                yield from _violation(producer_id, known.last, batches.first)
            self.batches[producer_id] = ProducerBatches(known.first, batches.last)


def _violations_within(table: BatchTable, order: Ints) -> Iterator[SequenceViolation]:
    epoch, sequence = table.producer_epoch[order], table.base_sequence[order]
    span = (table.last_offset - table.base_offset)[order]
    same = np.diff(table.producer_id[order]) == 0
    continued = (epoch[1:] == epoch[:-1]) & (
        sequence[1:] == (sequence[:-1] + span[:-1] + 1) & MAX_SEQUENCE
    )
    restarted = (epoch[1:] > epoch[:-1]) & (sequence[1:] == 0)
    for index in np.flatnonzero(same & ~continued & ~restarted).tolist():
        before, row = int(order[index]), int(order[index + 1])
        producer_id = int(table.producer_id[row])
        yield from _violation(producer_id, _batch(table, before), _batch(table, row))


def _batch(table: BatchTable, row: int) -> ProducerBatch:
    sequence = int(table.base_sequence[row])
    span = int(table.last_offset[row] - table.base_offset[row])
    return ProducerBatch(
        epoch=int(table.producer_epoch[row]),
        base_sequence=sequence,
        last_sequence=increment_sequence(sequence, span),
        base_offset=int(table.base_offset[row]),
        position=int(table.position[row]),
        timestamp_ms=int(table.max_timestamp[row]),
    )


def _violation(
    producer_id: int, before: ProducerBatch, batch: ProducerBatch
) -> Iterator[SequenceViolation]:
    """Yield a violation if `batch` does not continue `before`, the producer's previous batch."""
    if batch.timestamp_ms - before.timestamp_ms >= _EXPIRATION_MS:
        return
    expected = 0 if batch.epoch > before.epoch else increment_sequence(before.last_sequence, 1)
    ahead = (batch.base_sequence - expected) & MAX_SEQUENCE
    where = f"after the batch at offset {before.base_offset}"
    if batch.epoch < before.epoch:
        what = f"epoch {batch.epoch} {where}, which has epoch {before.epoch}"
        is_gap = False
    elif ahead:
        what = f"sequence {batch.base_sequence} of epoch {batch.epoch} {where}; expected {expected}"
        is_gap = ahead < _HALF or batch.epoch > before.epoch
    else:
        return
    what = f"producer {producer_id}: {what}"
    yield SequenceViolation(what, before.base_offset, batch.base_offset, batch.position, is_gap)
