"""What is wrong with a history, by the names of Jepsen's workload for Kafka. Linear in its length.

lost write             a reader got past the place where an acknowledged record must be, or it was
                       read once, and is gone in the end
unseen                 it was acknowledged, and the final readers end before it
duplicate              one value has two offsets
inconsistent offsets   one offset has two values
aborted read           a committed record is of a transaction that was not; or nobody has sent it
precommitted read      it was read before its transaction asked for its commit, also by itself
torn transaction       some of its records are there, and some are not
poll skip              a reader's next record is not the next one that is there
nonmonotonic poll      a reader's next record lies before its last one
nonmonotonic send      a producer's next record lies before its last one
G0, G1c, G2            cycles of dependencies, which are not all wrong: see `CYCLES`

and those of groups and topics:

double owner           two members of one generation have one partition, or the broker says so
offset goes back       the broker confirmed a group's offset, and says later that it is a lower one
settled twice          a record of a share group was confirmed to be done, and comes again
resurrected            a record of a topic that was deleted is in the one that was created again

Transactions of Kafka isolate readers from what is not committed, and nothing else. Records of two
of them may stand in one order in one partition and in another in the next (G0), each may read what
the other had not yet written (G2), and G1c over such edges says no more. Jepsen allows them for the
same reason. A faithful broker is not free of them. Only a cycle of reads alone (wr) is an anomaly:
two transactions that have each read what the other had committed.

Jepsen's reports of 2024 and later tell of torn transactions, and of lost and aborted writes, with
clients of Apache Kafka itself: up to transaction version 1, a request to end a transaction does not
say which one. One that is delayed until its client has gone on ends the next; KIP-890 gives each an
epoch. A faithful broker inherits this for clients of version 1, librdkafka and aiokafka. Such a
finding is to be compared with Apache Kafka (`ODRADEK_TEST_BROKER=kafka`) before it is called ours.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from .components import components
from .history import (
    FINAL,
    NEVER_NS,
    Key,
    Kind,
    Operation,
    Outcome,
    Polled,
    Sent,
    renewals,
)

CYCLES = ("G0", "G1c", "G2")  # inherited from what transactions are in Kafka


class Record(NamedTuple):
    """A record that was sent, and by which operation (its index)."""

    sent: Sent
    operation: int


class History:
    """Operations, and what several questions need to know of them."""

    def __init__(self, history: Sequence[Operation]) -> None:
        self.renewals = renewals(history)
        self.all = history
        self.work = [each for each in history if each.kind is Kind.WORK]
        self.writer: dict[str, Record] = {}
        """By value."""
        self.final: defaultdict[Key, list[Polled]] = defaultdict(list)
        """What the final readers got, by offset. Topics that were made again are not among it."""
        for index, each in enumerate(self.work):
            for sent in each.sends:
                self.writer[sent.value] = Record(sent, index)
            if each.process == FINAL:
                for polled in each.polls:
                    if not self.is_renewed(polled.key):
                        self.final[polled.key].append(polled)
        self.present = {polled.value for found in self.final.values() for polled in found}
        self.offsets = {
            key: sorted(polled.offset for polled in found) for key, found in self.final.items()
        }

    def is_renewed(self, key: Key) -> bool:
        """Whether the topic was deleted and created again."""
        return key.topic in self.renewals

    def polls(self) -> Iterator[tuple[Operation, Polled]]:
        """All that was read, of topics that are one and the same."""
        for each in self.work:
            for polled in each.polls:
                if not self.is_renewed(polled.key):
                    yield each, polled

    def sends(self) -> Iterator[tuple[Operation, Sent]]:
        """All that was sent to topics that are one and the same."""
        for each in self.work:
            for sent in each.sends:
                if not self.is_renewed(sent.key):
                    yield each, sent

    def last_offset(self, key: Key) -> int:
        """That of the last record that is there in the end."""
        return self.offsets[key][-1] if key in self.offsets else -1

    def by_process(self) -> dict[str, list[Operation]]:
        """The operations of each process, in the order of their beginning."""
        found: defaultdict[str, list[Operation]] = defaultdict(list)
        for each in self.all:
            found[each.process].append(each)
        return found


# -- records ---------------------------------------------------------------------------------------


def lost_write(history: History) -> Iterator[str]:
    """Written or read, and not there, though later ones are."""
    for each, sent, offset in _missing(history):
        if offset is None or offset < history.last_offset(sent.key):
            yield f"{sent} of {each.process}"


def unseen(history: History) -> Iterator[str]:
    """Written or read, and the final readers end before it."""
    for each, sent, offset in _missing(history):
        if offset is not None and offset >= history.last_offset(sent.key):
            yield f"{sent} of {each.process}"


def _missing(history: History) -> Iterator[tuple[Operation, Sent, int | None]]:
    """What must be there and is not, with its offset, if that is known."""
    read = {polled.value: polled.offset for _, polled in history.polls()}
    for each, sent in history.sends():
        must_be = each.is_written or (sent.value in read and not each.is_undone)
        if must_be and sent.value not in history.present:
            yield each, sent, read.get(sent.value, sent.offset)


def duplicate(history: History) -> Iterator[str]:
    """A value at two places."""
    first: dict[str, tuple[Key, int]] = {}
    for key, offset, value in _places(history):
        if first.setdefault(value, (key, offset)) != (key, offset):
            yield f"{value}: {first[value]} and {(key, offset)}"


def inconsistent_offsets(history: History) -> Iterator[str]:
    """A place with two values."""
    first: dict[tuple[Key, int], str] = {}
    for key, offset, value in _places(history):
        if first.setdefault((key, offset), value) != value:
            yield f"{(key, offset)}: {first[key, offset]} and {value}"


def _places(history: History) -> Iterator[tuple[Key, int, str]]:
    for _, polled in history.polls():
        yield polled.key, polled.offset, polled.value
    for _, sent in history.sends():
        if sent.offset is not None:
            yield sent.key, sent.offset, sent.value


def aborted_read(history: History) -> Iterator[str]:
    """Read as committed, and not committed, or never sent."""
    for each, polled in history.polls():
        record = history.writer.get(polled.value)
        if record is None:
            yield f"{each.process} read {polled}, which nobody has sent"
        elif history.work[record.operation].is_undone:
            yield f"{each.process} read {polled} of {history.work[record.operation].process}"


def precommitted_read(history: History) -> Iterator[str]:
    """Read before the commit was asked for."""
    for each, polled in history.polls():
        record = history.writer.get(polled.value)
        if record is None:
            continue
        writer = history.work[record.operation]
        commit_ns = writer.commit_ns
        # Work with polls ends after them: of a transaction, only its own records tell.
        if writer is each or (commit_ns is not None and each.completed_ns < commit_ns):
            yield f"{each.process} read {polled}"


def torn_transaction(history: History) -> Iterator[str]:
    """Of a transaction, some records are there and some are not."""
    for each in history.work:
        values = {sent.value for sent in each.sends if not history.is_renewed(sent.key)}
        there = values & history.present
        if each.is_transaction and there and there != values:
            yield f"{each.process}: {sorted(there)}, and not {sorted(values - there)}"


def poll_skip(history: History) -> Iterator[str]:
    """Between a reader's record and the next one is another."""
    for process, last, polled in _steps(history):
        offsets = history.offsets.get(polled.key, [])
        skipped = bisect_left(offsets, polled.offset) - bisect_left(offsets, last + 1)
        if skipped > 0:
            yield f"{process}: {skipped} records between {last} and {polled}"


def nonmonotonic_poll(history: History) -> Iterator[str]:
    """A reader's record lies before its last one."""
    for process, last, polled in _steps(history):
        if polled.offset <= last:
            yield f"{process}: {polled} after {last}"


def _steps(history: History) -> Iterator[tuple[str, int, Polled]]:
    """Records, each with the offset before which its reader was in this partition."""
    for process, done in history.by_process().items():
        last: dict[Key, int] = {}
        for each in done:
            for key in each.new:
                if each.from_beginning:
                    last[key] = -1
                else:
                    last.pop(key, None)
            for polled in each.polls:
                if history.is_renewed(polled.key):
                    continue
                if polled.key in last:
                    yield process, last[polled.key], polled
                last[polled.key] = polled.offset


def nonmonotonic_send(history: History) -> Iterator[str]:
    """A producer's record lies before the one that it sent before."""
    offset_of = {polled.value: polled.offset for _, polled in history.polls()}
    last: dict[tuple[str, Key], int] = {}
    for each, sent in history.sends():
        offset = offset_of.get(sent.value, sent.offset)
        if offset is None:
            continue
        place = each.process, sent.key
        if offset <= last.get(place, -1):
            yield f"{each.process}: {sent} at {offset} after {last[place]}"
        last[place] = offset


# -- cycles ----------------------------------------------------------------------------------------

Edges = set[tuple[int, int]]


def _ww(history: History) -> Edges:
    """The writer of a record, and that of the next one in its partition."""
    found: Edges = set()
    for records in history.final.values():
        writers = [history.writer.get(polled.value) for polled in records]
        for one, next_one in pairwise(writers):
            if one and next_one and one.operation != next_one.operation:
                found.add((one.operation, next_one.operation))
    return found


def _wr(history: History) -> Edges:
    """The writer of a record, and who reads it."""
    found: Edges = set()
    for index, each in enumerate(history.work):
        for polled in each.polls:
            record = history.writer.get(polled.value)
            if record and record.operation != index:
                found.add((record.operation, index))
    return found


def _rw(history: History) -> Edges:
    """Who reads the last record that it knows, and the writer of the next one."""
    found: Edges = set()
    for index, each in enumerate(history.work):
        ends: dict[Key, int] = {}
        for polled in each.polls:
            ends[polled.key] = max(ends.get(polled.key, -1), polled.offset)
        for key, offset in ends.items():
            at = bisect_left(history.offsets.get(key, []), offset + 1)
            record = None
            if at < len(history.final.get(key, ())):
                record = history.writer.get(history.final[key][at].value)
            if record and record.operation != index:
                found.add((index, record.operation))
    return found


def write_cycle(history: History) -> Iterator[str]:
    """G0: writers of which each has written before the next one."""
    yield from _cycles(history, set(), _ww(history))


def information_cycle(history: History) -> Iterator[str]:
    """G1c: the same, or each has read what the last one has written."""
    yield from _cycles(history, _ww(history), _wr(history))


def read_cycle(history: History) -> Iterator[str]:
    """G1c of reads alone."""
    yield from _cycles(history, set(), _wr(history))


def anti_dependency_cycle(history: History) -> Iterator[str]:
    """G2: the same, or each has not read what the next one has written."""
    yield from _cycles(history, _ww(history) | _wr(history), _rw(history))


def _cycles(history: History, some: Edges, needed: Edges) -> Iterator[str]:
    """The strongly connected components that have an edge of those that are needed."""
    place = {
        node: number
        for number, component in enumerate(components(some | needed))
        for node in component
    }
    sizes = Counter(place.values())
    found = {place[one] for one, other in needed if place[one] == place[other]}
    for number in sorted(found):
        names = [history.work[node].process for node, at in place.items() if at == number]
        yield f"{sizes[number]} operations: {', '.join(names[:5])}"


# -- groups and topics -----------------------------------------------------------------------------


def double_owner(history: History) -> Iterator[str]:
    """A partition with two members."""
    owner: dict[tuple[str, int, Key], str] = {}
    for each in history.all:
        if each.kind is Kind.ASSIGN and each.generation is not None:
            for key in each.keys:
                place = each.group, each.generation, key
                if owner.setdefault(place, each.member) != each.member:
                    yield f"{place}: {owner[place]} and {each.member}"
        elif each.kind is Kind.OWNERS:
            counts = Counter(key for keys in each.owners.values() for key in keys)
            for key, count in counts.items():
                if count > 1:
                    yield f"{each.group} has {key} {count} times: {each.owners}"


def offset_goes_back(history: History) -> Iterator[str]:
    """A group has a lower offset than the broker had confirmed before it was asked."""
    kinds = (Kind.COMMIT, Kind.COMMITTED, Kind.RESET, Kind.WORK)
    told = [each for each in history.all if each.offsets and each.kind in kinds]
    ends = sorted(
        (each for each in told if each.outcome is Outcome.OK), key=lambda each: each.completed_ns
    )
    resets = [each for each in told if each.kind is Kind.RESET]
    bound: dict[tuple[str, Key], int] = {}
    ended = iter(ends)
    end = next(ended, None)
    for each in sorted(told, key=lambda each: each.invoked_ns):
        while end is not None and end.completed_ns < each.invoked_ns:
            for key, offset in end.offsets.items():
                place = end.group, key
                is_reset = end.kind is Kind.RESET
                bound[place] = offset if is_reset else max(bound.get(place, -1), offset)
            end = next(ended, None)
        if each.kind is not Kind.COMMITTED or each.outcome is not Outcome.OK:
            continue
        for key, offset in each.offsets.items():
            least = bound.get((each.group, key), -1)
            if offset < least and not any(_overlap(each, reset) for reset in resets):
                yield f"{each.group} {key}: {offset} after {least}"


def _overlap(one: Operation, other: Operation) -> bool:
    return one.group == other.group and other.invoked_ns <= one.completed_ns <= other.completed_ns


def settled_twice(history: History) -> Iterator[str]:
    """A record of a share group that is done is settled or delivered again."""
    done: dict[tuple[str, Key, int], int] = {}
    for each in history.all:
        if each.kind is Kind.SETTLED and each.outcome is Outcome.OK:
            for record in each.records:
                place = each.group, *record
                if place in done:
                    yield f"{place} is settled twice"
                done[place] = min(done.get(place, NEVER_NS), each.completed_ns)
    for each in history.all:
        if each.kind is Kind.DELIVERED:
            for record in each.records:
                if done.get((each.group, *record), NEVER_NS) < each.invoked_ns:
                    yield f"{(each.group, *record)} was done and comes again"


def resurrected(history: History) -> Iterator[str]:
    """In the last life of a topic: a record of an earlier one, or none of what it has taken."""
    if not history.renewals:
        return
    there = {
        polled.value for each in history.work if each.process == FINAL for polled in each.polls
    }
    for each in history.work:
        for sent in each.sends:
            renewal = history.renewals.get(sent.key.topic)
            if renewal is None:
                continue
            if sent.value in there and each.completed_ns < renewal.delete_ns:
                yield f"{sent} was sent before its topic was deleted"
            is_sure = each.is_written and each.invoked_ns > renewal.created_ns
            if is_sure and sent.value not in there:
                yield f"{sent} is lost from a topic that was created again"


Check = Callable[[History], Iterable[str]]

ANOMALIES: dict[str, Check] = {
    "lost write": lost_write,
    "unseen": unseen,
    "duplicate": duplicate,
    "inconsistent offsets": inconsistent_offsets,
    "aborted read": aborted_read,
    "precommitted read": precommitted_read,
    "torn transaction": torn_transaction,
    "poll skip": poll_skip,
    "nonmonotonic poll": nonmonotonic_poll,
    "nonmonotonic send": nonmonotonic_send,
    "G0": write_cycle,
    "G1c": information_cycle,
    "G1c of reads": read_cycle,
    "G2": anti_dependency_cycle,
    "double owner": double_owner,
    "offset goes back": offset_goes_back,
    "settled twice": settled_twice,
    "resurrected": resurrected,
}


def anomalies(history: Sequence[Operation]) -> dict[str, list[str]]:
    """All that is found, by its name."""
    known = History(history)
    found = {name: list(check(known)) for name, check in ANOMALIES.items()}
    return {name: each for name, each in found.items() if each}
