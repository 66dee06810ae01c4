"""Checks the sequence numbers of idempotent producers. Each batch continues the one before it:

    the same epoch      the next sequence; 0 follows 2**31-1
    a newer epoch       0
    an older epoch      is an error

The broker makes the same check when a batch is appended (storage/producer_entry.py). After
cleaning, batches may be missing, so a sequence may skip numbers, but never repeat or go back. A
producer that was silent for a day may have expired, and may continue with any sequence.

A task checks one segment. The first and last batch of each producer in a piece are joined with
those of the pieces before. Segments are joined in the same way.
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


class ProducerEdges(NamedTuple):
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
        self.edges: dict[int, ProducerEdges] = {}

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
        for head, tail in zip(order[first].tolist(), order[last].tolist(), strict=True):
            edges = ProducerEdges(_batch(table, head), _batch(table, tail))
            yield from self._join(int(table.producer_id[head]), edges)

    def join(self, following: dict[int, ProducerEdges]) -> Iterator[SequenceViolation]:
        """Append the part that follows this one, and check where they meet."""
        for producer_id, edges in following.items():
            yield from self._join(producer_id, edges)

    def _join(self, producer_id: int, following: ProducerEdges) -> Iterator[SequenceViolation]:
        known = self.edges.get(producer_id)
        if known is None:
            self.edges[producer_id] = following
            return
        violation = _violation(producer_id, known.last, following.first)
        if violation is not None:
            yield violation
        self.edges[producer_id] = ProducerEdges(known.first, following.last)


def _violations_within(table: BatchTable, order: Ints) -> Iterator[SequenceViolation]:
    epoch, sequence = table.producer_epoch[order], table.base_sequence[order]
    span = (table.last_offset - table.base_offset)[order]
    same = np.diff(table.producer_id[order]) == 0
    continued = (epoch[1:] == epoch[:-1]) & (
        sequence[1:] == (sequence[:-1] + span[:-1] + 1) & MAX_SEQUENCE
    )
    restarted = (epoch[1:] > epoch[:-1]) & (sequence[1:] == 0)
    for at in np.flatnonzero(same & ~continued & ~restarted).tolist():
        before, row = int(order[at]), int(order[at + 1])
        producer_id = int(table.producer_id[row])
        violation = _violation(producer_id, _batch(table, before), _batch(table, row))
        if violation is not None:
            yield violation


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
) -> SequenceViolation | None:
    if batch.timestamp_ms - before.timestamp_ms >= _EXPIRATION_MS:
        return None
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
        return None
    what = f"producer {producer_id}: {what}"
    return SequenceViolation(what, before.base_offset, batch.base_offset, batch.position, is_gap)
