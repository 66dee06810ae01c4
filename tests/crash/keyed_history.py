"""What was written to a compacted topic, and what is wrong with what a reader finds there.

Every record has an id of its own, in a header. A reader, which may have missed what was compacted
away, must find for each key the newest committed record. If that is a tombstone, it may be gone,
but then together with all that it has deleted.
"""

import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto
from typing import NamedTuple


class Fate(Enum):
    """What has become of a transaction, as far as its producer knows."""

    OPEN = auto()
    UNKNOWN = auto()  # a commit was not answered
    COMMITTED = auto()
    ABORTED = auto()


class Transaction:
    """Records that are committed together, or not at all."""

    def __init__(self, fate: Fate = Fate.OPEN) -> None:
        self.fate = fate


class Written(NamedTuple):
    """A record that a producer has sent. Without transaction it is committed at once."""

    id: bytes
    partition: int
    key: bytes
    value: bytes | None
    transaction: Transaction | None


class Found(NamedTuple):
    """A record as a reader gets it."""

    partition: int
    offset: int
    id: bytes
    key: bytes
    value: bytes | None


class History:
    """All records that were sent to a topic. The threads of its producers write to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._written: dict[bytes, Written] = {}
        self._offsets: dict[bytes, int] = {}

    def send(self, records: Iterable[Written]) -> None:
        """A producer is about to send these."""
        with self._lock:
            self._written |= {record.id: record for record in records}

    def acknowledge(self, records: Sequence[Written], base_offset: int) -> None:
        """The broker said that it holds the records there."""
        with self._lock:
            for offset, record in enumerate(records, base_offset):
                assert self._offsets.setdefault(record.id, offset) == offset, record

    def __len__(self) -> int:
        return len(self._written)

    def open_from(self, partition: int) -> int | None:
        """The first offset of the open transactions in a partition."""
        offsets = [
            offset
            for offset, record in self._acknowledged()
            if record.partition == partition and has_fate(record, Fate.OPEN)
        ]
        return min(offsets, default=None)

    def settle(self, found: Iterable[Found]) -> None:
        """Take note of the transactions of which a reader has found committed records."""
        for each in found:
            record = self._written.get(each.id)
            if record is not None and has_fate(record, Fate.UNKNOWN):
                assert record.transaction is not None
                record.transaction.fate = Fate.COMMITTED

    def faults(
        self,
        found: Sequence[Found],
        ends: Sequence[int],
        *,
        committed_only: bool,
        while_cleaning: bool,
    ) -> Iterator[str]:
        """What is wrong with what a reader has found up to the ends of the partitions.

        Nothing is written meanwhile. `while_cleaning`: a tombstone may vanish behind a reader that
        has seen what it deletes.
        """
        strange = list(self._strange(found, committed_only=committed_only))
        if strange:
            yield from strange
            return
        present = {record.id for record in found}
        held = [each for each in self._acknowledged() if each[0] < ends[each[1].partition]]
        newest = {place_of(record): (at, record) for at, record in held if is_committed(record)}
        unclear = {
            place_of(record): at
            for at, record in held
            if has_fate(record, Fate.UNKNOWN) and record.value is None
        }
        for place, (at, record) in newest.items():
            may_be_deleted = record.value is None or unclear.get(place, -1) > at
            if record.id not in present and not may_be_deleted:
                yield f"lost: {record} at {at}"
        if not committed_only:
            for at, record in held:
                if has_fate(record, Fate.OPEN) and record.id not in present:
                    yield f"lost from an open transaction: {record} at {at}"
        for each in found if not while_cleaning else ():
            at, record = newest.get((each.partition, each.key), (-1, None))
            is_deleted = at > each.offset and record is not None and record.value is None
            if is_deleted and record.id not in present and is_committed(self._written[each.id]):
                yield f"{each} is there without its tombstone, {record} at {at}"

    def _acknowledged(self) -> list[tuple[int, Written]]:
        """Offsets and records, in the order of the offsets."""
        by_offset = sorted(self._offsets.items(), key=lambda item: item[1])
        return [(offset, self._written[record_id]) for record_id, offset in by_offset]

    def _strange(self, found: Iterable[Found], *, committed_only: bool) -> Iterator[str]:
        """Records that nobody may see."""
        last: defaultdict[int, int] = defaultdict(lambda: -1)
        ids: set[bytes] = set()
        for each in found:
            if each.offset <= last[each.partition]:
                yield f"{each} comes after offset {last[each.partition]}"
            last[each.partition] = each.offset
            record = self._written.get(each.id)
            if record is None or each != Found(
                record.partition, each.offset, record.id, record.key, record.value
            ):
                yield f"{each} was written as {record}"
                continue
            if self._offsets.get(each.id, each.offset) != each.offset or each.id in ids:
                yield f"{each} was acknowledged at {self._offsets.get(each.id)}, or is there twice"
            ids.add(each.id)
            fate = Fate.COMMITTED if record.transaction is None else record.transaction.fate
            if committed_only and fate not in (Fate.COMMITTED, Fate.UNKNOWN):
                yield f"{each} of a transaction that is {fate.name.lower()}"


def place_of(record: Written) -> tuple[int, bytes]:
    """Where only the newest one counts."""
    return record.partition, record.key


def is_committed(record: Written) -> bool:
    """Whether every reader must see it, until a newer one has its key."""
    return record.transaction is None or has_fate(record, Fate.COMMITTED)


def has_fate(record: Written, fate: Fate) -> bool:
    """Whether its transaction has it."""
    return record.transaction is not None and record.transaction.fate is fate
