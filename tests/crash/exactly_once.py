"""Finds what is wrong with the copy of a topic that was made in transactions.

Every record of the copy names its origin (partition, offset and number of a record of the source),
its transaction, and how many records the transaction has. So the copy can be judged from four
sides: by the source, by the log itself (batches and markers), by what readers saw, and by the
offsets that the copying group has committed.

The judgement needs a run that has ended: no transaction is open.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.crash.ledger import Stored
from tests.crash.transaction_log import Batch, log_faults, outcomes

MAX_SHOWN = 20


class Copied(NamedTuple):
    """What the value of a record of the copy says, in this order, separated by spaces."""

    partition: int  # of the source, as the next two
    offset: int
    number: int
    transaction: str
    size: int  # records in the transaction

    @classmethod
    def parse(cls, value: bytes) -> "Copied":
        """Raises ValueError."""
        partition, offset, number, transaction, size = value.decode().split()
        return cls(int(partition), int(offset), int(number), transaction, int(size))


View = Mapping[int, Sequence[Stored]]  # by partition


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """All that is known of one copy when it is complete."""

    written: Sequence[int]  # the numbers that were committed to the source, in this order
    source: View  # what readers of committed records find there: the numbers as text
    source_log: Mapping[int, Sequence[Batch]]
    log: Mapping[int, Sequence[Batch]]  # of the copy
    committed: View  # the copy as readers of committed records see it
    uncommitted: View
    # What readers have seen by the time at which the copy was complete, of either isolation level.
    early_committed: Sequence[View] = ()
    early_uncommitted: Sequence[View] = ()
    offsets: Mapping[int, int] = field(default_factory=dict)  # by partition of the source
    # Transactions of which the copying client was told that they are committed or aborted.
    told_committed: frozenset[str] = frozenset()
    told_aborted: frozenset[str] = frozenset()

    def copies(self) -> Iterator[Copied]:
        """What readers of committed records see of the copy."""
        return (Copied.parse(seen.value) for view in self.committed.values() for seen in view)


def faults(history: History) -> list[str]:
    """All that is wrong, most basic first; empty if the copy is exact."""
    found: list[str] = []
    for name, log in (("source", history.source_log), ("copy", history.log)):
        for partition, batches in log.items():
            found += (f"{name}-{partition}: {each}" for each in log_faults(batches))
    found += _source_faults(history)
    found += _view_faults(history)
    found += _early_faults("read_committed", history.early_committed, history.committed)
    found += _early_faults("read_uncommitted", history.early_uncommitted, history.uncommitted)
    found += _transaction_faults(history)
    found += _copy_faults(history)
    found += _order_faults(history.committed)
    found += _offset_faults(history)
    if len(found) > MAX_SHOWN:
        found[MAX_SHOWN:] = [f"and {len(found) - MAX_SHOWN} more"]
    return found


def _source_faults(history: History) -> Iterator[str]:
    numbers = [int(seen.value) for view in history.source.values() for seen in view]
    yield from _difference("source", Counter(history.written), Counter(numbers))
    for partition, view in history.source.items():
        last = -1
        for seen in view:
            if int(seen.value) < last:
                yield f"source-{partition}: order: {int(seen.value)} comes after {last}"
            last = int(seen.value)


def _difference(where: str, wanted: Counter[int], found: Counter[int]) -> Iterator[str]:
    for number in wanted - found:
        yield f"{where}: lost: {number}"
    for number in found - wanted:
        yield f"{where}: {'doubled' if number in wanted else 'not committed'}: {number}"


def _view_faults(history: History) -> Iterator[str]:
    """Both views hold what the log says: the transactions' markers decide what is committed."""
    for partition, batches in history.log.items():
        stored = {seen.offset: seen.value for batch in batches for seen in batch.records}
        decided = outcomes(batches)
        committed = {offset for offset in stored if decided[offset] == "commit"}
        yield from _visible(f"copy-{partition}", stored, committed, history.committed[partition])
        everything = [Stored(*each) for each in stored.items()]
        if list(history.uncommitted[partition]) != everything:
            yield f"copy-{partition}: read_uncommitted does not show what is in the log"


def _visible(
    where: str, stored: Mapping[int, bytes], committed: set[int], view: Sequence[Stored]
) -> Iterator[str]:
    shown = {seen.offset for seen in view}
    for offset in sorted(shown - committed):
        yield f"{where}: aborted, yet visible: {offset}: {stored.get(offset)!r}"
    for offset in sorted(committed - shown):
        yield f"{where}: committed, yet invisible: {offset}: {stored[offset]!r}"
    for before, after in itertools.pairwise(view):
        if after.offset <= before.offset:
            yield f"{where}: a reader got offset {after.offset} after {before.offset}"
    for seen in view:
        if stored.get(seen.offset, seen.value) != seen.value:
            yield f"{where}: a reader got other bytes than are in the log: {seen}"


def _early_faults(isolation: str, early: Iterable[View], final: View) -> Iterator[str]:
    for view in early:
        for partition, seen in view.items():
            length = len(seen)
            if list(seen) != list(final[partition][:length]):
                wrong = next(
                    (
                        (then, now)
                        for then, now in zip(seen, final[partition], strict=False)
                        if then != now
                    ),
                    (seen[-1], "nothing"),
                )
                yield f"copy-{partition}: {isolation} has shown {wrong[0]}, and later {wrong[1]}"


def _transaction_faults(history: History) -> Iterator[str]:
    sizes: dict[str, int] = {}
    visible: Counter[str] = Counter()
    for copied in history.copies():
        sizes[copied.transaction] = copied.size
        visible[copied.transaction] += 1
    for transaction, size in sizes.items():
        if visible[transaction] != size:
            yield f"torn: {transaction} shows {visible[transaction]} of {size} records"
    for transaction in sorted(history.told_committed - visible.keys()):
        yield f"committed, yet invisible: {transaction}, of which the client was told"
    for transaction in sorted(history.told_aborted & visible.keys()):
        yield f"aborted, yet visible: {transaction}, of which the client was told"


def _copy_faults(history: History) -> Iterator[str]:
    source = {
        (partition, seen.offset): int(seen.value)
        for partition, view in history.source.items()
        for seen in view
    }
    copies: defaultdict[tuple[int, int], list[Copied]] = defaultdict(list)
    for copied in history.copies():
        copies[copied.partition, copied.offset].append(copied)
    for (partition, offset), number in source.items():
        found = copies.get((partition, offset), [])
        if not found:
            yield f"lost: {number}, which is source-{partition} at {offset}"
        elif len(found) > 1:
            transactions = ", ".join(copied.transaction for copied in found)
            yield f"doubled: {number}, which is source-{partition} at {offset}: {transactions}"
        elif found[0].number != number:
            yield f"source-{partition} at {offset} is {number}; its copy is {found[0]}"
    for partition, offset in copies.keys() - source.keys():
        yield f"a copy of source-{partition} at {offset}, where no committed record is"


def _order_faults(committed: View) -> Iterator[str]:
    for partition, view in committed.items():
        last: dict[int, int] = {}
        for seen in view:
            copied = Copied.parse(seen.value)
            before = last.get(copied.partition, -1)
            if copied.offset < before:
                what = f"source-{copied.partition} at {copied.offset} comes after {before}"
                yield f"copy-{partition}: order: {what}"
            last[copied.partition] = copied.offset


def _offset_faults(history: History) -> Iterator[str]:
    copied: defaultdict[int, set[int]] = defaultdict(set)
    for each in history.copies():
        copied[each.partition].add(each.offset)
    for partition, view in history.source.items():
        committed = history.offsets.get(partition, 0)
        passed = {seen.offset for seen in view if seen.offset < committed}
        if passed != copied[partition]:
            differing = min(passed ^ copied[partition])
            yield (
                f"offsets: {committed} is committed for source-{partition}, which does not fit the"
                f" copy at {differing}"
            )
