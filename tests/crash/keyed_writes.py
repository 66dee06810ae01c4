"""What was written to compacted topics, and what a reader from their start must find.

Every write here was answered, so its offset is known. The fate of a transaction is known unless it
is open.
"""

from collections.abc import Iterator, Sequence
from threading import Lock
from typing import NamedTuple


class Transaction:
    """`is_committed` is None while it is open."""

    def __init__(self) -> None:
        self.is_committed: bool | None = None


class KeyedRecord(NamedTuple):
    """A record of a log. A value of None is a tombstone."""

    offset: int
    key: bytes
    value: bytes | None


class Written(NamedTuple):
    """A record that was acknowledged, and its transaction if any."""

    record: KeyedRecord
    transaction: Transaction | None

    @property
    def is_aborted(self) -> bool:
        return self.transaction is not None and self.transaction.is_committed is False

    @property
    def is_open(self) -> bool:
        return self.transaction is not None and self.transaction.is_committed is None


class Reading(NamedTuple):
    """All records that a reader found, and the offset at which it stopped."""

    records: Sequence[KeyedRecord]
    end_offset: int


class KeyedWrites:
    """All writes to one partition. Producers' threads add to it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._written: dict[int, Written] = {}
        self.faults: list[str] = []

    def __len__(self) -> int:
        return len(self._written)

    def add(
        self,
        base_offset: int,
        records: Sequence[tuple[bytes, bytes | None]],
        transaction: Transaction | None,
    ) -> None:
        """Add a batch that was acknowledged at this offset."""
        with self._lock:
            for offset, (key, value) in enumerate(records, base_offset):
                if offset in self._written:
                    self.faults.append(f"offset {offset} was given to {value!r} too")
                self._written[offset] = Written(KeyedRecord(offset, key, value), transaction)

    def first_open(self) -> int | None:
        """The first offset of the oldest open transaction."""
        with self._lock:
            begun = [offset for offset, written in self._written.items() if written.is_open]
        return min(begun, default=None)

    def end_offset(self) -> int:
        """Where the log ends if each transaction that has ended has a marker in it."""
        with self._lock:
            transactions = {written.transaction for written in self._written.values()}
            return len(self._written) + sum(
                each is not None and each.is_committed is not None for each in transactions
            )

    def faults_of(
        self, uncommitted: Reading, committed: Reading, *, tombstones_stay: bool | None
    ) -> list[str]:
        """What is wrong with the two readings, made while nobody writes.

        `tombstones_stay`: None if they may be removed while the readings are made.
        """
        last_stable_offset = committed.end_offset
        return [
            *self.faults,
            *self._unknown(uncommitted),
            *(f"committed: {fault}" for fault in self._unknown(committed)),
            *self._not_committed(committed),
            *self._lost(uncommitted, uncommitted.end_offset, tombstones_stay),
            *(
                f"committed: {fault}"
                for fault in self._lost(committed, last_stable_offset, tombstones_stay)
            ),
            *self._lost_above(uncommitted, last_stable_offset),
        ]

    def _unknown(self, reading: Reading) -> Iterator[str]:
        """Records out of order, and records that are not what was written there."""
        before = -1
        for record in reading.records:
            if record.offset <= before:
                yield f"offset {record.offset} comes after {before}"
            before = record.offset
            written = self._written.get(record.offset)
            if written is None or written.record != record:
                yield f"{record} is not what was written: {written}"

    def _not_committed(self, reading: Reading) -> Iterator[str]:
        for record in reading.records:
            written = self._written.get(record.offset)
            if written is not None and (written.is_aborted or written.is_open):
                yield f"a reader of committed records found {record}"

    def _lost(self, reading: Reading, end: int, tombstones_stay: bool | None) -> Iterator[str]:
        """Keys of which the newest record before `end` is missing."""
        found = {record.offset for record in reading.records}
        oldest_found: dict[bytes, int] = {}
        for record in reading.records:
            if not self._written[record.offset].is_aborted:
                oldest_found.setdefault(record.key, record.offset)
        for newest in self._newest(end).values():
            if newest.offset in found:
                continue
            if newest.value is not None or tombstones_stay:
                yield f"{newest} is lost"
            elif tombstones_stay is False and oldest_found.get(newest.key, end) < newest.offset:
                yield f"{newest} is lost, but an older record of its key is not"

    def _newest(self, end: int) -> dict[bytes, KeyedRecord]:
        newest: dict[bytes, KeyedRecord] = {}
        for offset in sorted(self._written):
            written = self._written[offset]
            if offset < end and not written.is_aborted and not written.is_open:
                newest[written.record.key] = written.record
        return newest

    def _lost_above(self, reading: Reading, last_stable_offset: int) -> Iterator[str]:
        """Records from the last stable offset on are not cleaned, so all of them are there."""
        found = {record.offset for record in reading.records}
        for offset, written in self._written.items():
            if (offset >= last_stable_offset or written.is_open) and offset not in found:
                yield f"{written.record} is lost, which must not be cleaned yet"
