"""A ledger of all records that were sent, and what a table of them may have and must have.

A record is known by its whole content, in which a number makes it unique. So the row of a record
whose producer has had no answer is recognised, too.
"""

import threading
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum, auto
from typing import NamedTuple

from odradek.pipeline.jobs.offset_spans import Span

YEAR_10000_MS = 253_402_300_800_000
Headers = tuple[tuple[str, bytes | None], ...]


class Place(NamedTuple):
    """A partition of a topic id (hexadecimal digits)."""

    topic: str
    topic_id: str
    partition: int


class Content(NamedTuple):
    """What the producer of a record decides. `timestamp_ms` is None if the broker does."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int | None


class Row(NamedTuple):
    """A record as it is stored. The type of the timestamp is 1 for LogAppendTime, else 0."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int
    timestamp_type: int

    @property
    def content(self) -> Content:
        """What its producer has decided."""
        return Content(*self[:3], None if self.timestamp_type else self.timestamp_ms)


class Fate(Enum):
    """What has become of a record, as far as its producer knows."""

    OPEN = auto()  # it has had no answer yet, or its transaction has not ended
    UNKNOWN = auto()  # its transaction was to be committed, and the answer is not known
    COMMITTED = auto()
    ABORTED = auto()


class Sent(NamedTuple):
    """What is known of a record. A producer that is not idempotent may have written it twice."""

    fate: Fate
    may_repeat: bool


class Held(NamedTuple):
    """What a table has of a partition, and which offsets it says to have, or to have lost."""

    rows: Mapping[int, Row]
    covered: Collection[Span] = ()
    lost: Collection[Span] = ()


class SentRecords:
    """All records of a life, by partition. Producers' threads write to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent: defaultdict[Place, dict[Content, Sent]] = defaultdict(dict)
        self._acknowledged: defaultdict[Place, dict[int, Row]] = defaultdict(dict)
        self._unknown: list[list[tuple[Place, Content]]] = []  # transactions
        self.failures: list[str] = []

    def send(self, place: Place, content: Content, *, may_repeat: bool) -> None:
        """A producer is about to send it."""
        with self._lock:
            assert content not in self._sent[place]
            self._sent[place][content] = Sent(Fate.OPEN, may_repeat)

    def acknowledge(self, place: Place, offset: int, row: Row) -> None:
        """The broker said that it holds the record there."""
        with self._lock:
            before = self._acknowledged[place].setdefault(offset, row)
        if before != row:
            self.failures.append(f"{place}: offset {offset} was given to {before} and to {row}")

    def settle(self, contents: Collection[tuple[Place, Content]], fate: Fate) -> None:
        """Note what has become of a transaction, or of records without one."""
        with self._lock:
            self._settle(contents, fate)
            if fate is Fate.UNKNOWN:
                self._unknown.append([*contents])

    def resolve(self, held: Mapping[Place, Held]) -> list[str]:
        """Decide what was unknown by what readers of committed records have.

        Returns the transactions of which only a part is there. Of compacted partitions, a missing
        record says nothing: they cover nothing.
        """
        faults: list[str] = []
        with self._lock:
            undecided, self._unknown = self._unknown, []
            there = {
                place: {row.content for row in each.rows.values()} for place, each in held.items()
            }
            for transaction in undecided:
                found = [each for each in transaction if each[1] in there.get(each[0], ())]
                missing = [
                    (place, offset)
                    for place, offset in self._offsets(transaction)
                    if place in held
                    and self._acknowledged[place][offset].content not in there[place]
                    and _within(offset, held[place].covered)
                    and not _within(offset, held[place].lost)
                ]
                if found and missing:
                    faults.append(f"of a transaction, {found} are there, and {missing} are not")
                elif found or missing:
                    self._settle(transaction, Fate.COMMITTED if found else Fate.ABORTED)
                else:
                    self._unknown.append(transaction)
        return faults

    def fate(self, place: Place, content: Content) -> Fate | None:
        """What has become of a record; None if it was never sent."""
        with self._lock:
            known = self._sent[place].get(content)
        return None if known is None else known.fate

    def __len__(self) -> int:
        with self._lock:
            return sum(map(len, self._sent.values()))

    def expected(self, place: Place, *, committed_only: bool) -> dict[int, Row]:
        """The acknowledged records that a reader sees if all of them are still there."""
        with self._lock:
            sent = self._sent[place]
            return {
                offset: row
                for offset, row in self._acknowledged[place].items()
                if not committed_only or sent[row.content].fate is Fate.COMMITTED
            }

    def faults(
        self, place: Place, held: Held, *, committed_only: bool, compacted: bool
    ) -> Iterator[str]:
        """What is wrong with what a table has of a partition: too much, too little, or changed."""
        with self._lock:
            sent, acknowledged = dict(self._sent[place]), dict(self._acknowledged[place])
        newest = _newest((*acknowledged.items(), *held.rows.items()), sent)

        def fault(offset: int, what: str, row: Row) -> str:
            known = sent.get(row.content)
            return (
                f"{place}: offset {offset} {what}: {row}; it is "
                f"{known.fate.name.lower() if known else 'unknown to all'}, and the newest of its "
                f"key that is not aborted has offset {newest.get(row.key)}"
            )

        repeated = Counter(row.content for row in held.rows.values())
        for offset, row in held.rows.items():
            known = sent.get(row.content)
            if acknowledged.get(offset, row) != row:
                yield fault(offset, f"is {row}, and was", acknowledged[offset])
            elif known is None:
                yield fault(offset, "was never sent", row)
            elif committed_only and known.fate is Fate.ABORTED:
                yield fault(offset, "was aborted", row)
            elif repeated[row.content] > 1 and not known.may_repeat:
                yield fault(offset, f"is there {repeated[row.content]} times", row)
        for offset, row in self.expected(place, committed_only=committed_only).items():
            if offset in held.rows or not _within(offset, held.covered):
                continue
            if _within(offset, held.lost):
                continue
            may_be_cleaned = (
                row.value is None
                or sent[row.content].fate in (Fate.ABORTED, Fate.UNKNOWN)
                or newest.get(row.key, offset + 1) > offset
            )
            if not (compacted and may_be_cleaned):
                yield fault(offset, "is missing", row)

    def _settle(self, contents: Iterable[tuple[Place, Content]], fate: Fate) -> None:
        for place, content in contents:
            self._sent[place][content] = self._sent[place][content]._replace(fate=fate)

    def _offsets(self, transaction: Iterable[tuple[Place, Content]]) -> Iterator[tuple[Place, int]]:
        """Where the records are that were acknowledged."""
        wanted = set(transaction)
        for place in {place for place, _ in wanted}:
            for offset, row in self._acknowledged[place].items():
                if (place, row.content) in wanted:
                    yield place, offset


def _newest(
    rows: Iterable[tuple[int, Row]], sent: Mapping[Content, Sent]
) -> dict[bytes | None, int]:
    """Of each key, the last offset of a record that is not known to be aborted."""
    newest: dict[bytes | None, int] = {}
    for offset, row in rows:
        if row.content in sent and sent[row.content].fate is not Fate.ABORTED:
            newest[row.key] = max(offset, newest.get(row.key, -1))
    return newest


def _within(offset: int, spans: Iterable[Span]) -> bool:
    return any(span.start <= offset < span.end for span in spans)
