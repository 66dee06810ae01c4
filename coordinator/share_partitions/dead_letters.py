"""Records that a group gives up, and that its dead-letter queue gets (KIP-1191).

    ACQUIRED -> ARCHIVING     is stored; then the records are written to the queue
             -> ARCHIVED      is stored when they are written, or cannot be

After a crash in between, they are written when the share-partition is opened again (`unfinished`).
So the queue may have a record twice.

Kafka: SharePartition.initiateDLQAndArchive, maybeResumeDlqArchiving.
"""

from enum import StrEnum
from typing import NamedTuple

from odradek.coordinator.runtime.steps import Step, no_step, stepping

from .in_flight import RecordState
from .share_partition import SharePartition


class Cause(StrEnum):
    """Why a group has given a record up. A header of the queue has this text."""

    REJECTED = "Offset rejected by client."
    DELIVERED_TOO_OFTEN = "Offset delivery count exceeded the threshold."


class DeadLetters(NamedTuple):
    """Offsets, both ends included, with one delivery count and one cause."""

    first_offset: int
    last_offset: int
    delivery_count: int
    cause: Cause

    @property
    def record_count(self) -> int:
        return self.last_offset - self.first_offset + 1


def unfinished(
    partition: SharePartition, max_delivery_count: int, step: Step = no_step
) -> list[DeadLetters]:
    """The records that have not been archived yet. Why they were given up is not stored."""
    return [
        DeadLetters(
            first,
            last,
            state.delivery_count,
            Cause.DELIVERED_TOO_OFTEN
            if state.delivery_count >= max_delivery_count
            else Cause.REJECTED,
        )
        for batch in stepping(list(partition.batches), step)
        for first, last, state in batch.states()
        if state.state is RecordState.ARCHIVING
    ]
