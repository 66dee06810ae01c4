"""Writes the rows of a task once, however often the task runs. Does not depend on Spark.

A task with many rows begins its transaction before the last has arrived, so that rows are made and
sent at the same time. If another attempt fences it, or if the rest is slow, it collects all rows
and then begins another transaction.
"""

import logging
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import pyarrow as pa

from .collected_rows import CollectedRows
from .division import SAME_DIVISION, Division, other_topics, out_of_date
from .ended_queries import check_not_ended
from .marks import GroupReader, Mark, MarkGroup, Place, UnsettledError
from .row_sender import FencedError, RowSender
from .rows import OutgoingBatch, WriteError, distinct_topics, outgoing_batch
from .rows_digest import RowsDigest
from .task_name import TaskName
from .task_transaction import TaskTransaction, timeout_s_of
from .turns import Clock, Turns
from .write_options import Delivery, WriteOptions
from .written_batches import WrittenBatch, last_batch, places_of, topics_of

_logger = logging.getLogger(__name__)

_MANY_BYTES: Final = 4 << 20  # a task with more rows does not wait for the last
# A transaction that waits for rows holds back readers of committed records. When rows arrive later
# than that, it is aborted. If none arrive, the broker ends it.
_OPEN_AT_MOST_S: Final = 30.0
_ENDED_AFTER_S: Final = 120.0
# An attempt that commits marks for longer than that may be dead.
_UNSETTLED_S: Final = 5.0


class Written(NamedTuple):
    """How many rows were written, by this attempt or another, and to which topics."""

    rows: int
    topics: frozenset[str]


class TaskRows(Protocol):
    """All rows of a task, in batches: see CollectedRows."""

    @property
    def count(self) -> int: ...

    @property
    def are_complete(self) -> bool: ...

    def collect(self) -> None: ...

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...


def write_rows(
    options: WriteOptions,
    task: TaskName,
    batches: Iterable[pa.RecordBatch],
    clock: Clock = Clock(),  # noqa: B008 - a value
) -> Written:
    """Write all rows. Raises WriteError, and what the iterator raises."""
    if options.delivery is Delivery.AT_LEAST_ONCE:
        return Written(_send(options, batches), frozenset())
    with CollectedRows(batches) as rows:
        if options.topic is None:
            rows.collect()
        else:
            rows.collect(_MANY_BYTES)
        return write_once(options, task, rows, clock)


def write_once(
    options: WriteOptions,
    task: TaskName,
    rows: TaskRows,
    clock: Clock = Clock(),  # noqa: B008 - a value
) -> Written:
    """Write the rows, unless another attempt has. Raises WriteError, and what makes the rows."""
    reader = GroupReader(options.client)
    topics = _topics(options, task, rows, reader)
    if topics:
        places = places_of(topics)
        with (
            MarkGroup(options.client, task.name) as group,
            Division(options, task, places, clock, reader) as division,
        ):
            _Writing(options, task, rows, clock, group, reader, division, places).run()
    return Written(rows.count, frozenset(topics))


@dataclass(frozen=True, slots=True)
class _Writing:
    """One attempt of a task. Its marks are at `places`."""

    options: WriteOptions
    task: TaskName
    rows: TaskRows
    clock: Clock
    group: MarkGroup
    reader: GroupReader
    division: Division
    places: Sequence[Place]

    def run(self) -> None:
        """Return when this attempt or another has committed the batch."""
        turns = Turns(timeout_s_of(self.options.client), self.clock)
        # An attempt of a batch that is written must not fence those of the next batch.
        while not self._is_done(marks := self._settled_marks()):
            wait_s, were_complete = 0.0, self.rows.are_complete
            transaction = self._transaction()
            try:
                if self._write(transaction, self._passed(marks)):
                    return
            except FencedError:
                if were_complete:
                    transaction.check_timeout()
                if turns.are_over:
                    raise
                if not transaction.has_timed_out:
                    wait_s = turns.next_wait_s(transaction.open_for_s)
            finally:
                transaction.close()
            self.rows.collect()
            if wait_s:
                turns.has_changed(lambda: self._marks_or(marks), marks, wait_s)

    def _transaction(self) -> TaskTransaction:
        return TaskTransaction(
            self.options.client,
            self.task.name,
            [topic for topic, _ in self.places],
            self.clock,
            as_columns=self.options.send_columns,
            timeout_s=math.inf if self.rows.are_complete else _ENDED_AFTER_S,
        )

    def _write(self, transaction: TaskTransaction, written: WrittenBatch | None) -> bool:
        """Return whether the batch is written now; else its rows are slow, or a mark may say so.

        If an earlier run has written it, its mark becomes one of this run.
        """
        open_at_most_s = min(_OPEN_AT_MOST_S, transaction.timeout_s / 2)
        try:
            transaction.take_over()
            if not self.task.ends and written is None:
                self.division.require_same()
            transaction.begin()
            if self._passed(self._marks()) != written:
                transaction.abort()
                return False
            if written is not None:  # the other tasks wait for the mark
                written = written._replace(run=self.task.run)
                transaction.commit(self.group, written.as_marks(self.places))
                return True
            if self.task.ends:
                check_not_ended(self.options.client, self.task.query, self.places)
            if self.options.topic is None:
                self._check_topics()
            digest = RowsDigest()
            for batch in _outgoing(self.options, self.rows):
                if not self.rows.are_complete and transaction.open_for_s > open_at_most_s:
                    transaction.abort()
                    return False
                digest.add(batch)
                transaction.send_batch(batch)
            marks = self._batch(digest).as_marks(self.places)
            transaction.commit(self.group, marks, self._check_division)
        except FencedError:
            raise
        except BaseException:
            transaction.abort()
            raise
        return True

    def _check_topics(self) -> None:
        """Raise WriteError if the batch is written, to topics that the rows do not name now."""
        task = self.task
        (marks,) = self.reader.read([task.name], ()).values()
        last = self._passed(marks)
        if last is not None:
            topics = topics_of(last.batch_id, marks)
            raise WriteError(other_topics(task.name, last.batch_id, topics, self.places))

    def _check_division(self) -> None:
        if not self.task.ends:
            self.division.require_claim()

    def _batch(self, digest: RowsDigest) -> WrittenBatch:
        task = self.task
        return WrittenBatch(task.batch_id, digest.rows, digest.text(), task.run)

    def _marks(self) -> list[Mark]:
        return self.group.read(self.places)

    def _marks_or(self, otherwise: list[Mark]) -> list[Mark]:
        """Return the marks, or `otherwise` if they cannot be read now."""
        try:
            return self.group.read(self.places, within_s=0)
        except UnsettledError:
            return otherwise

    def _settled_marks(self) -> list[Mark]:
        """Return the marks, also if an attempt has died between marks and commit.

        The broker would end its transaction only after the transaction's timeout. If the
        coordinator does not answer, it is awaited: another attempt may be alive.
        """
        try:
            return self.group.read(self.places, within_s=_UNSETTLED_S)
        except UnsettledError:
            if self._are_in_transaction():
                with closing(self._transaction()) as transaction:
                    transaction.take_over()
            return self._marks()

    def _are_in_transaction(self) -> bool:
        """Whether the marks cannot be read although the coordinator answers."""
        with MarkGroup(self.options.client, self.task.name, settled=False) as unsettled:
            return self._can_read(unsettled) and not self._can_read(self.group)

    def _can_read(self, group: MarkGroup) -> bool:
        try:
            group.read(self.places, within_s=0)
        except UnsettledError:
            return False
        return True

    def _is_done(self, marks: Collection[Mark]) -> bool:
        """Whether there is nothing to write. Raises WriteError if another batch is written."""
        last, task = self._passed(marks), self.task
        if last is None:
            return not self.rows.count
        if last.batch_id > task.batch_id:
            raise WriteError(out_of_date(task.name, last.batch_id, task.batch_id))
        digest = RowsDigest()
        for batch in _outgoing(self.options, self.rows):
            digest.add(batch)
        if not last.has_rows_of(self._batch(digest)):
            text = _other_rows(task, last.rows, digest.rows)
            if not self.options.keep_written or digest.rows >= last.rows:
                raise WriteError(text)
            _logger.warning("%s. What is written is kept (changedRows)", text)
        return last.run == task.run

    def _passed(self, marks: Collection[Mark]) -> WrittenBatch | None:
        """Return the last batch that was written, if it is this one or a later one."""
        last = last_batch(marks)
        return None if last is None or last.batch_id < self.task.batch_id else last


def _other_rows(task: TaskName, before: int, now: int) -> str:
    """Return what may have changed the rows of a task that has written its batch, and what helps.

    A task does not know what its rows are made of. It has fewer if its source has lost records, and
    also if the batch is divided into more tasks. Then `keep-written` would write rows twice.
    """
    text = (
        f"{task.name} wrote {before} rows of batch {task.batch_id} before, and has {now} rows now, "
        "which are not the same: "
    )
    if now < before:
        text += (
            "the source has lost records since then (a compacted topic, retention; then "
            "changedRows=keep-written goes on if it is odradek's and the query has no shuffle; "
            "with files it would write rows twice), or "
        )
    return text + (
        f"the batch is divided into different tasks (start the query with {SAME_DIVISION}), or the "
        "query is not deterministic (delivery=at-least-once accepts that, and writes rows again)"
    )


def _topics(options: WriteOptions, task: TaskName, rows: TaskRows, reader: GroupReader) -> set[str]:
    """Return the topics that the rows are written to, or were if there are none now."""
    if options.topic is not None:
        return {options.topic}
    topics = set[str]().union(*map(distinct_topics, rows))
    # It may have had rows when it ran before. Then it is refused, or others wait for it.
    if not topics and task.name in reader.groups():
        (marks,) = reader.read([task.name], ()).values()
        topics = {mark.topic for mark in marks if mark.offset > task.batch_id}
    return topics


def _send(options: WriteOptions, batches: Iterable[pa.RecordBatch]) -> int:
    """Send all rows, wait until they are acknowledged, and return their number."""
    count = 0
    with closing(RowSender(options.client)) as sender:
        for batch in _outgoing(options, batches):
            if not count and len(batch.value_column):
                sender.connect(batch.topic or next(batch.rows())[0])
            sender.send_batch(batch)
            count += len(batch.value_column)
        sender.flush()
    return count


def _outgoing(options: WriteOptions, batches: Iterable[pa.RecordBatch]) -> Iterator[OutgoingBatch]:
    for batch in batches:
        yield outgoing_batch(batch, options.topic, with_timestamp=options.with_timestamp)
