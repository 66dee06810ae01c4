"""What is archived, by partition: ranges of offsets, and the batches at their ends.

Offsets alone do not identify records. After a power cut a broker may lose the end of a log, and
give the same offsets to other records. So for the newest ranges the leader epoch and the checksum
of the last batch are kept (BatchMark), and the next run compares them with the log.

The state is stored in a file of JSON, which each commit of the table names (see archive_table.py).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import msgspec

from odradek.pipeline.jobs import JobError, OvertakenError
from odradek.pipeline.jobs.offset_spans import Span, merge_spans, overlap, without
from odradek.storage.topic_partition import TopicPartition

_FORMAT = 3
_MAX_MARKS = 16


class PartitionKey(msgspec.Struct, frozen=True, kw_only=True):
    """A partition of a topic id. A topic that is created again has another id and begins at 0."""

    topic: str
    topic_id: str  # in hexadecimal digits; "" if the log directory does not contain it
    partition: int

    @property
    def without_id(self) -> TopicPartition:
        """The partition without the topic id."""
        return TopicPartition(self.topic, self.partition)


class BatchMark(msgspec.Struct, frozen=True, kw_only=True):
    """Identifies the batch that contained offset `end` - 1 when it was archived."""

    end: int
    leader_epoch: int
    crc: int


class ArchivedRange(NamedTuple):
    """Offsets [start, end) were read, and their records are in the table.

    `lost` are the ranges that were deleted before they could be read, `skipped` those that could
    not be read. `dropped_values`: only the fields of the values were archived.
    """

    of: PartitionKey
    start: int
    end: int
    mark: BatchMark | None = None
    records: int = 0
    dead_letters: int = 0
    lost: tuple[Span, ...] = ()
    skipped: tuple[Span, ...] = ()
    dropped_values: bool = False

    @property
    def absent(self) -> int:
        """How many offsets have no record: control records, aborted and compacted ones."""
        unread = sum(span.size for span in (*self.lost, *self.skipped))
        return self.end - self.start - self.records - self.dead_letters - unread


class PartitionState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is archived of a partition. `marks` are the newest, in order of offset.

    Offsets that are `skipped` could not be read, those that are `lost` were deleted before; they
    are covered, too. With `dropped_values`, a null in the column `value` may have been a value in
    the topic. Rows before `changed_before` may have been changed by another writer, which the user
    has accepted. `log_start` is where the log began when the first of its ranges was planned; None
    in a state of an earlier version. `repairs` are the offsets from which on records were replaced
    because the log had lost them, the oldest repair first.
    """

    of: PartitionKey
    covered: tuple[Span, ...] = ()
    marks: tuple[BatchMark, ...] = ()
    skipped: tuple[Span, ...] = ()
    lost: tuple[Span, ...] = ()
    dropped_values: bool = False
    changed_before: int = 0
    log_start: int | None = None
    repairs: tuple[int, ...] = ()

    @property
    def start(self) -> int:
        """The first archived offset."""
        return self.covered[0].start if self.covered else 0

    @property
    def wanted_start(self) -> int:
        """The first offset that is archived or is to be."""
        return self.start if self.log_start is None else min(self.start, self.log_start)

    @property
    def end(self) -> int:
        """The offset after the last archived one."""
        return self.covered[-1].end if self.covered else 0

    @property
    def read(self) -> list[Span]:
        """The offsets that were read, skipped ones included."""
        return [part for each in self.covered for part in without(each, self.lost)]

    def with_range(self, archived: ArchivedRange) -> Self:
        """Return the state with one more range. Raises OvertakenError.

        Offsets that one process has found lost may have been read by another before.
        """
        span = Span(archived.start, archived.end)
        read_before, read_now = self.read, without(span, archived.lost)
        if twice := overlap(read_now, read_before):
            offsets = ", ".join(f"{each.start} to {each.end - 1}" for each in twice)
            raise OvertakenError(
                f"another process is archiving to the same table: it has archived "
                f"{self.of.without_id}, offsets {offsets}, at the same time. "
                f"Nothing is missing, nothing is there twice; run this again when it has ended"
            )
        marks = {mark.end: mark for mark in self.marks}
        if archived.mark is not None:
            marks[archived.mark.end] = archived.mark
        newest = sorted(marks.values(), key=lambda mark: mark.end)[-_MAX_MARKS:]
        covered = tuple(merge_spans([*self.covered, span]))
        return msgspec.structs.replace(
            self,
            covered=covered,
            marks=tuple(newest),
            skipped=tuple(merge_spans([*self.skipped, *archived.skipped])),
            lost=tuple(
                part
                for each in merge_spans([*self.lost, *archived.lost])
                for part in without(each, [*read_before, *read_now])
            ),
            dropped_values=self.dropped_values or archived.dropped_values,
        )

    def with_log_start(self, log_start: int) -> Self:
        """Return the state of a log that began there. It may have begun earlier before."""
        return msgspec.structs.replace(self, log_start=min(log_start, self.wanted_start))

    def before(self, offset: int, marks: Iterable[BatchMark]) -> Self:
        """Return the state without the offsets from this one on, and with these marks."""
        covered, skipped, lost = (
            tuple(merge_spans(Span(span.start, min(span.end, offset)) for span in spans))
            for spans in (self.covered, self.skipped, self.lost)
        )
        return msgspec.structs.replace(
            self,
            covered=covered,
            skipped=skipped,
            lost=lost,
            marks=tuple(marks),
            changed_before=min(self.changed_before, offset),
        )

    def missing(self, wanted: Span) -> list[Span]:
        """Return the wanted offsets that are not archived."""
        return without(wanted, self.covered)


class _Stored(msgspec.Struct, kw_only=True):
    """The JSON. `commit_id` makes the states of two commits differ."""

    format: int
    commit_id: str
    table_version: int
    accepted_changes: tuple[str, ...]
    partitions: list[PartitionState]
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class ArchiveState:
    """All partitions, those of the newest topic ids last; `counts` is how many a topic has.

    `table_version` is the table's version that the commit of this state was made on: it has the
    records of the state before. `accepted_changes` name the commits of other writers that have
    changed records, and that the user has accepted.
    """

    partitions: Mapping[PartitionKey, PartitionState] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    table_version: int = 0
    accepted_changes: tuple[str, ...] = ()

    def of(self, key: PartitionKey) -> PartitionState:
        """Return what is archived of a partition."""
        return self.partitions.get(key) or PartitionState(of=key)

    def with_ranges(
        self,
        ranges: Iterable[ArchivedRange],
        counts: Mapping[str, int] | None = None,
        log_starts: Mapping[PartitionKey, int] | None = None,
    ) -> "ArchiveState":
        """Return the state after these ranges. Raises OvertakenError.

        `counts` are those of the topics as they are now: a topic of a new id may have fewer.
        `log_starts` are those of the logs when the ranges were planned.
        """
        ranges = list(ranges)
        known_ids = {(key.topic, key.topic_id) for key in self.partitions}
        recreated = {
            each.of.topic for each in ranges if (each.of.topic, each.of.topic_id) not in known_ids
        }
        partitions = dict(self.partitions)
        for each in ranges:
            known = partitions.get(each.of) or PartitionState(of=each.of)
            known = known.with_range(each)
            if log_starts and each.of in log_starts:
                known = known.with_log_start(log_starts[each.of])
            partitions[each.of] = known
        largest = dict(self.counts)
        for topic, count in (counts or {}).items():
            before = 0 if topic in recreated else largest.get(topic, 0)
            largest[topic] = max(count, before)
        return replace(self, partitions=partitions, counts=largest)

    def with_partition(self, partition: PartitionState) -> "ArchiveState":
        """Return the state with one partition replaced."""
        return replace(self, partitions={**self.partitions, partition.of: partition})

    def with_accepted(self, changes: Iterable[str]) -> "ArchiveState":
        """Return the state that knows changes of other writers."""
        partitions = {
            key: msgspec.structs.replace(each, changed_before=each.end)
            for key, each in self.partitions.items()
        }
        return replace(
            self, partitions=partitions, accepted_changes=(*self.accepted_changes, *changes)
        )

    def newest(self, topic: str) -> Sequence[PartitionState]:
        """Return the partitions of a topic's newest id. Raises JobError if there is none."""
        all_ids = [each for each in self.partitions.values() if each.of.topic == topic]
        if not all_ids:
            raise JobError(f"the archive does not contain topic {topic}")
        newest = all_ids[-1].of.topic_id
        found = [each for each in all_ids if each.of.topic_id == newest]
        return sorted(found, key=lambda each: each.of.partition)

    def encoded(self, commit_id: str, table_version: int) -> bytes:
        """Return the state as JSON, for a commit on this version of the table."""
        stored = _Stored(
            format=_FORMAT,
            commit_id=commit_id,
            table_version=table_version,
            accepted_changes=self.accepted_changes,
            partitions=list(self.partitions.values()),
            counts=dict(self.counts),
        )
        return msgspec.json.encode(stored)

    @classmethod
    def decoded(cls, data: bytes, place: str) -> Self:
        """Parse a state. Raises JobError."""
        try:
            stored = msgspec.json.decode(data, type=_Stored)
        except msgspec.DecodeError as error:
            raise JobError(f"{place} is not the state of an archive: {error}") from error
        if stored.format != _FORMAT:
            raise JobError(f"{place} has format {stored.format}; this version reads {_FORMAT}")
        return cls(
            {each.of: each for each in stored.partitions},
            stored.counts,
            stored.table_version,
            stored.accepted_changes,
        )
