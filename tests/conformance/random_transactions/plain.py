"""Answers and records of transactions without what may differ between two brokers.

As for groups (random_groups/plain.py), and moreover: producer ids go by the order in which the
broker gave them out; of the times of transactions only the sign is kept; and epochs of leaders, and
of coordinators that led since a restart, are left out: Kafka raises them when it stops, too.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from odradek.protocol.any_batch import read_any_header, read_any_records
from odradek.protocol.batch_header import BatchHeader
from odradek.protocol.messages.fetch import FetchPartitionData
from odradek.protocol.record import Record
from odradek.protocol.records.control import control_type, coordinator_epoch_of
from tests.conformance.random_groups.plain import Plain
from tests.conformance.random_transactions.participants import WRONG_ID, TransactionParticipants
from tests.conformance.transcript import whole_batches

PRODUCER_IDS = frozenset({"producer_id", "previous_producer_id", "next_producer_id"})
# Of a marker it is the broker's time; of other records it is given.
CLOCK_FIELDS = frozenset({"last_timestamp", "transaction_last_update_timestamp_ms"})
LEADER_EPOCHS = frozenset({"leader_epoch", "current_leader"})
# Coordinator epochs from here on are no leader's.
FOREIGN_COORDINATOR = 1000
START_TIMES = frozenset({"transaction_start_time_ms", "transaction_start_timestamp_ms"})


class TransactionPlain(Plain):
    """Makes answers of one broker comparable."""

    def __init__(self, participants: TransactionParticipants, port: int) -> None:
        super().__init__(participants)
        self._producers = participants.producer_ids
        self._port = port
        self._unknown: list[int] = []

    def of(self, value: Any, name: str = "") -> Any:
        """The value of a field of that name."""
        if name == "records":
            return [*self.batches(whole_batches(bytes(value or b"")))]
        if name in LEADER_EPOCHS:
            return None
        if name in PRODUCER_IDS and value >= 0:
            return self._producer(value)
        if name in CLOCK_FIELDS:
            return min(value, 0)
        if name == "coordinator_epoch":
            return _coordinator(value)
        if name in START_TIMES:
            return min(value, 1)
        if isinstance(value, FetchPartitionData):
            return super().of(_without_later(value), name)
        if name == "port" and value == self._port:
            return "port"
        return super().of(value, name)

    def batches(self, data: bytes) -> Iterator[str]:
        """The batches of a log or of an answer, each as one line."""
        position = 0
        while position < len(data):
            header = read_any_header(data, position)
            records = read_any_records(data[position : position + header.size_bytes], header)
            yield self.batch(header, list(records))
            position += header.size_bytes

    def batch(self, header: BatchHeader, records: list[Record]) -> str:
        """One batch, as one line."""
        kind = "transactional " if header.is_transactional else ""
        show = _marker if header.is_control else _value
        return (
            f"at {header.base_offset}-{header.last_offset}: {kind}{', '.join(map(show, records))}"
            f" by {self._producer_of(header)} from {header.base_sequence}"
        )

    def batch_of_offsets(self, header: BatchHeader, records: list[Record]) -> str:
        """A marker, or a batch of a transaction in the log of offsets, as one line."""
        what = _kind_of(records[0]) if header.is_control else f"{len(records)} offsets"
        return f"{what} by {self._producer_of(header)}"

    def _producer_of(self, header: BatchHeader) -> str:
        producer = self.of(header.producer_id, "producer_id")
        return f"{producer} epoch {header.producer_epoch}"

    def _producer(self, producer_id: int) -> str:
        if producer_id in self._producers:
            return f"producer {self._producers.index(producer_id) + 1}"
        if producer_id - WRONG_ID in self._producers:
            return f"not {self._producer(producer_id - WRONG_ID)}"
        if producer_id not in self._unknown:
            self._unknown.append(producer_id)
        return f"unknown producer {self._unknown.index(producer_id) + 1}"


def _without_later(partition: FetchPartitionData) -> FetchPartitionData:
    """Without the aborted transactions that begin after the records.

    Kafka's list goes on up to the next entry of an index.
    """
    data, position, end = whole_batches(bytes(partition.records or b"")), 0, 0
    while position < len(data):
        header = read_any_header(data, position)
        position, end = position + header.size_bytes, header.next_offset
    aborted = partition.aborted_transactions
    kept = None if aborted is None else [each for each in aborted if each.first_offset < end]
    changed: FetchPartitionData = msgspec.structs.replace(partition, aborted_transactions=kept)
    return changed


def _value(record: Record) -> str:
    return str(bytes(record.value or b""))


def _marker(record: Record) -> str:
    return f"{_kind_of(record)} of {_coordinator(coordinator_epoch_of(record.value or b''))}"


def _kind_of(record: Record) -> str:
    kind = control_type(record.key)
    assert kind is not None
    return kind.name


def _coordinator(epoch: int) -> int | str:
    """The epoch of a coordinator, which restarts raise; an administrator may give another one."""
    return "a later leader's" if 0 < epoch < FOREIGN_COORDINATOR else epoch
