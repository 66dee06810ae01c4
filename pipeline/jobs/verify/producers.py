"""Sequence numbers of idempotent producers: each batch goes on where the last one ended.

    the same epoch      the next sequence; after 2**31-1 comes 0
    a newer epoch       0
    an older epoch      never

That is what the log's own check is when a batch is appended (storage/producer_entry.py). Where the
cleaner has been, batches may be missing, so that sequences skip; they never repeat or go back. A
producer that was silent for a day may have been forgotten, and begin anywhere.

A task sees one segment. What it tells of each producer, its first batch and its last, is joined
with that of the segments before it: pieces within a segment, and segments, in the same way.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from odradek.pipeline.decoding.batch_table import BatchTable
from odradek.pipeline.decoding.varints import Ints
from odradek.protocol.batch_header import MAX_SEQUENCE, increment_sequence

_FORGOTTEN_MS = 86_400_000  # producer.id.expiration.ms
_HALF = 1 << 30


class ProducerBatch(NamedTuple):
    """A batch as its producer numbered it."""

    epoch: int
    base_sequence: int
    last_sequence: int
    base_offset: int
    position: int
    timestamp_ms: int


class ProducerEdges(NamedTuple):
    """The first and the last batch of one producer in some stretch of a log."""

    first: ProducerBatch
    last: ProducerBatch


class Misstep(NamedTuple):
    """A batch that does not go on where its producer was, at the batch of offset `since`.

    `skips`: sequences are missing in between, as they are where batches have gone.
    """

    what: str
    since: int
    offset: int
    position: int
    skips: bool


class Producers:
    """The producers of a stretch of a log: of a segment, or of a partition so far."""

    def __init__(self) -> None:
        self.edges: dict[int, ProducerEdges] = {}

    def see(self, table: BatchTable) -> Iterator[Misstep]:
        """The next batches; what is wrong among them, and between them and those before."""
        table = table.where(
            (table.producer_id >= 0) & (table.base_sequence >= 0) & ~table.is_control
        )
        if not table.height:
            return
        order = np.argsort(table.producer_id, kind="stable")
        yield from _missteps_within(table, order)
        producer_id = table.producer_id[order]
        first = np.flatnonzero(np.diff(producer_id, prepend=-1))
        last = np.append(first[1:], producer_id.size) - 1
        for head, tail in zip(order[first].tolist(), order[last].tolist(), strict=True):
            edges = ProducerEdges(_batch(table, head), _batch(table, tail))
            yield from self._join(int(table.producer_id[head]), edges)

    def join(self, following: dict[int, ProducerEdges]) -> Iterator[Misstep]:
        """The edges of the stretch behind this one."""
        for producer_id, edges in following.items():
            yield from self._join(producer_id, edges)

    def _join(self, producer_id: int, following: ProducerEdges) -> Iterator[Misstep]:
        known = self.edges.get(producer_id)
        if known is None:
            self.edges[producer_id] = following
            return
        misstep = _misstep(producer_id, known.last, following.first)
        if misstep is not None:
            yield misstep
        self.edges[producer_id] = ProducerEdges(known.first, following.last)


def _missteps_within(table: BatchTable, order: Ints) -> Iterator[Misstep]:
    epoch, sequence = table.producer_epoch[order], table.base_sequence[order]
    span = (table.last_offset - table.base_offset)[order]
    same = np.diff(table.producer_id[order]) == 0
    going_on = (epoch[1:] == epoch[:-1]) & (
        sequence[1:] == (sequence[:-1] + span[:-1] + 1) & MAX_SEQUENCE
    )
    begun_anew = (epoch[1:] > epoch[:-1]) & (sequence[1:] == 0)
    for at in np.flatnonzero(same & ~going_on & ~begun_anew).tolist():
        before, row = int(order[at]), int(order[at + 1])
        producer_id = int(table.producer_id[row])
        misstep = _misstep(producer_id, _batch(table, before), _batch(table, row))
        if misstep is not None:
            yield misstep


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


def _misstep(producer_id: int, before: ProducerBatch, batch: ProducerBatch) -> Misstep | None:
    if batch.timestamp_ms - before.timestamp_ms >= _FORGOTTEN_MS:
        return None
    who = f"producer {producer_id}: "
    where = f"behind the batch at offset {before.base_offset}"
    if batch.epoch < before.epoch:
        what = f"{who}epoch {batch.epoch} {where} of epoch {before.epoch}"
        return Misstep(what, before.base_offset, batch.base_offset, batch.position, skips=False)
    expected = 0 if batch.epoch > before.epoch else increment_sequence(before.last_sequence, 1)
    ahead = (batch.base_sequence - expected) & MAX_SEQUENCE
    if not ahead:
        return None
    what = f"{who}sequence {batch.base_sequence} of epoch {batch.epoch} {where}, not {expected}"
    is_ahead = ahead < _HALF or batch.epoch > before.epoch
    return Misstep(what, before.base_offset, batch.base_offset, batch.position, skips=is_ahead)
