"""Writes the rows of a task once, however often the task runs. Does not depend on Spark."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import pyarrow as pa

from .collected_rows import CollectedRows
from .committed_batches import PLACE_IN_0_1, CommittedBatch, last_batch, places_of
from .ended_queries import check_not_ended
from .marks import Mark, MarkGroup, Place
from .row_sender import FencedError, RowSender
from .rows import OutgoingBatch, WriteError, distinct_topics, outgoing_batch
from .rows_digest import RowsDigest
from .task_transaction import TaskTransaction
from .turns import Clock, Turns
from .write_options import Delivery, WriteOptions


class TaskName(NamedTuple):
    """`odradek-<query>-<task>`, the same for all attempts, and the batch that the task writes.

    `query` is `odradek-<query>` if it is a batch query, which ends.
    """

    name: str
    batch_id: int
    query: str = ""


class Written(NamedTuple):
    """How many rows were written, by this attempt or another, and to which topics."""

    rows: int
    topics: frozenset[str]


class CompleteRows(Protocol):
    """All rows of a task: their number, and their batches."""

    @property
    def count(self) -> int: ...

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...


def write_rows(options: WriteOptions, task: TaskName, batches: Iterable[pa.RecordBatch]) -> Written:
    """Write all rows. Raises WriteError, and what the iterator raises."""
    if options.delivery is Delivery.AT_LEAST_ONCE:
        return Written(_send(options, batches), frozenset())
    with CollectedRows(batches) as rows:
        return write_complete(options, task, rows)


def write_complete(
    options: WriteOptions,
    task: TaskName,
    rows: CompleteRows,
    clock: Clock = Clock(),  # noqa: B008 - a value
) -> Written:
    """Write rows that are known to be complete, unless another attempt has. Raises WriteError.

    The attempt that begins a transaction fences the others. So an attempt that may not be able to
    finish, because some of its rows have not arrived, must not begin.
    """
    topics = _topics(options, rows)
    if topics:
        with MarkGroup(options.client, task.name) as group:
            _Writing(options, task, rows, clock, group, places_of(topics)).run()
    return Written(rows.count, frozenset(topics))


@dataclass(frozen=True, slots=True)
class _Writing:
    """One attempt of a task. Its marks are at `places`."""

    options: WriteOptions
    task: TaskName
    rows: CompleteRows
    clock: Clock
    group: MarkGroup
    places: Sequence[Place]

    def run(self) -> None:
        """Return when this attempt or another has committed the batch."""
        turns: Turns | None = None
        # An attempt of a batch that is written must not fence those of the next batch.
        while not self._is_written(marks := self._marks()) and self.rows.count:
            transaction = TaskTransaction(
                self.options.client, self.task.name, self.places[0][0], self.clock, as_columns=True
            )
            turns = turns or Turns(transaction.timeout_s, self.clock)
            try:
                self._write(transaction)
            except FencedError:
                transaction.check_timeout()
                if turns.are_over:
                    raise
                turns.has_changed(self._marks, marks, turns.next_wait_s(transaction.open_for_s))
            else:
                return
            finally:
                transaction.close()

    def _write(self, transaction: TaskTransaction) -> None:
        """Write the batch in one transaction, unless it has been written in the meantime."""
        try:
            transaction.take_over()
            transaction.begin()
            if self._is_written(self._marks()):
                return transaction.abort()
            if self.task.query:
                check_not_ended(self.options.client, self.task.query, self.places)
            digest = RowsDigest()
            for batch in _outgoing(self.options, self.rows):
                digest.add(batch)
                transaction.send_batch(batch)
            written = CommittedBatch(self.task.batch_id, digest.rows, digest.text())
            transaction.commit(self.group, written.as_marks(self.places))
        except FencedError:
            raise
        except BaseException:
            transaction.abort()
            raise

    def _marks(self) -> list[Mark]:
        return self.group.read(self.places, optional=PLACE_IN_0_1)

    def _is_written(self, marks: Iterable[Mark]) -> bool:
        """Whether a mark says so. Raises WriteError if it was not the same batch."""
        last, task = last_batch(marks), self.task
        if last is None or last.batch_id < task.batch_id:
            return False
        if last.batch_id > task.batch_id:
            raise WriteError(
                f"{task.name} has already written batch {last.batch_id}, which is later than batch "
                f"{task.batch_id}: the checkpoint is out of date. Start with a new checkpoint"
            )
        digest = RowsDigest()
        for batch in _outgoing(self.options, self.rows):
            digest.add(batch)
        if not last.equals(CommittedBatch(task.batch_id, digest.rows, digest.text())):
            raise WriteError(
                f"{task.name} wrote {last.rows} rows of batch {task.batch_id} before, and has "
                f"{digest.rows} rows now, which are not the same: the query is not deterministic, "
                "or the batch was divided into different tasks (.coalesce(1) prevents that). "
                "delivery=at-least-once accepts such queries"
            )
        return True


def _topics(options: WriteOptions, rows: CompleteRows) -> set[str]:
    """Return the topics that the rows are written to."""
    if options.topic is not None:
        return {options.topic}
    return set[str]().union(*map(distinct_topics, rows))


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
