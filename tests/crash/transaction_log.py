"""The batches and markers of a partition in which transactions were written, and their faults."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from odradek.protocol.batch_header import MAX_SEQUENCE, NO_SEQUENCE
from odradek.protocol.records.control import ControlRecordType, control_type
from odradek.storage.log_reader import LogReader
from tests.crash.ledger import Stored

Marker = Literal["commit", "abort"]
Outcome = Literal["commit", "abort", "open"]
_MARKERS: dict[ControlRecordType | None, Marker] = {
    ControlRecordType.COMMIT: "commit",
    ControlRecordType.ABORT: "abort",
}


class Batch(NamedTuple):
    """A batch of records, or a marker, which has none here."""

    base_offset: int
    last_offset: int
    producer_id: int
    epoch: int
    base_sequence: int
    is_transactional: bool
    marker: Marker | None
    records: Sequence[Stored]


def read_log(directory: Path) -> list[Batch]:
    """All batches of a partition's directory."""
    batches = []
    for stored in LogReader(directory).batches():
        header, records = stored.header, list(stored.records())
        marker = _MARKERS[control_type(records[0].key)] if header.is_control else None
        batches.append(
            Batch(
                header.base_offset,
                header.last_offset,
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
                header.is_transactional,
                marker,
                [] if marker else [Stored(each.offset, each.value or b"") for each in records],
            )
        )
    return batches


def outcomes(batches: Iterable[Batch]) -> dict[int, Outcome]:
    """How the transaction of each record ended, by offset."""
    found: dict[int, Outcome] = {}
    undecided: dict[int, list[int]] = {}  # offsets by producer id
    for batch in batches:
        if batch.marker is not None:
            offsets = undecided.pop(batch.producer_id, [])
            found |= dict.fromkeys(offsets, batch.marker)
        elif batch.is_transactional:
            offsets = [record.offset for record in batch.records]
            undecided.setdefault(batch.producer_id, []).extend(offsets)
            found |= dict.fromkeys(offsets, "open")
        else:
            found |= dict.fromkeys((record.offset for record in batch.records), "commit")
    return found


@dataclass(slots=True)
class _Producer:
    """What the batches so far say of a producer."""

    epoch: int
    next_sequence: int = 0
    is_open: bool = False
    raises_epochs: bool = False  # each transaction has an epoch of its own (KIP-890)
    last_marker: Marker | None = None


def log_faults(batches: Iterable[Batch]) -> Iterator[str]:
    """Gaps of offsets or sequences, fenced epochs, markers without data, and open transactions.

    An abort may have no data: a client may fail after it has added a partition to its transaction
    and before it has written there. A commit may only repeat the one before: the coordinator writes
    all markers again if it was killed before it had completed the transaction.
    """
    producers: dict[int, _Producer] = {}
    end = 0
    for batch in batches:
        if batch.base_offset != end:
            yield f"a gap: {batch.base_offset} follows {end - 1}"
        end = batch.last_offset + 1
        if batch.producer_id < 0:
            continue
        producer = producers.setdefault(batch.producer_id, _Producer(batch.epoch))
        check = _data_faults if batch.marker is None else _marker_faults
        yield from (f"{each}, at offset {batch.base_offset}" for each in check(producer, batch))
    for producer_id, producer in producers.items():
        if producer.is_open:
            yield f"the transaction of producer {producer_id} was never ended"


def _data_faults(producer: _Producer, batch: Batch) -> Iterator[str]:
    who = f"producer {batch.producer_id} of epoch {batch.epoch}"
    if batch.epoch < producer.epoch:
        yield f"{who} has written after epoch {producer.epoch}"
        return
    expected = producer.next_sequence if batch.epoch == producer.epoch else 0
    if batch.base_sequence not in (expected, NO_SEQUENCE):
        yield f"{who} has written sequence {batch.base_sequence} instead of {expected}"
    if producer.is_open and (batch.epoch != producer.epoch or not batch.is_transactional):
        yield f"{who} has written while the transaction of epoch {producer.epoch} was open"
    if batch.base_sequence != NO_SEQUENCE:  # the offsets of a group have none
        count = batch.last_offset - batch.base_offset + 1
        producer.next_sequence = (batch.base_sequence + count) % (MAX_SEQUENCE + 1)
    producer.epoch = batch.epoch
    producer.is_open = batch.is_transactional


def _marker_faults(producer: _Producer, batch: Batch) -> Iterator[str]:
    who = f"producer {batch.producer_id}"
    if batch.epoch < producer.epoch:
        yield f"a marker of epoch {batch.epoch} of {who} came after epoch {producer.epoch}"
        return
    repeats = producer.last_marker == "commit" and producer.epoch == batch.epoch
    if batch.marker == "commit" and not producer.is_open and not repeats:
        yield f"a commit marker of {who} ends no data"
    if batch.epoch > producer.epoch:
        producer.next_sequence = 0
        producer.raises_epochs |= batch.marker == "commit"
    elif batch.marker == "commit" and producer.is_open and producer.raises_epochs:
        yield f"the marker of the last transaction of {who} ends the next, of epoch {batch.epoch}"
    producer.epoch = batch.epoch
    producer.is_open = False
    producer.last_marker = batch.marker
