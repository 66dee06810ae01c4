"""What a task does: its rows are written, once however often it runs. No Spark here."""

import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import NamedTuple, Protocol

import pyarrow as pa

from .batch_marks import BatchMark, MarkedGroup
from .collected_rows import CollectedRows
from .row_sender import FencedError, RowSender
from .rows import OutgoingRow, WriteError, outgoing
from .task_transaction import NoTransactionsError, TaskTransaction
from .write_options import Delivery, WriteOptions

_LOOK_EVERY_S = 0.5
# Spark's workers serve many tasks; each would ask again.
_without_transactions: set[str] = set()


class TaskName(NamedTuple):
    """The same whenever the task runs: `odradek-<query>-<task>`, and the batch it writes."""

    name: str
    batch_id: int


def names_of(options: WriteOptions, query: str) -> str:
    """What the names of a query's tasks begin with; the task's number follows."""
    return f"{options.prefix}-{query}-"


class AllRows(Protocol):
    """The rows of a task, none missing: how many, and the batches of them."""

    @property
    def count(self) -> int: ...

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...


class TaskWritten(NamedTuple):
    """How many rows are there, whichever attempt has written them, and what was promised."""

    rows: int
    delivery: Delivery


def write_rows(
    options: WriteOptions, task: TaskName, batches: Iterable[pa.RecordBatch]
) -> TaskWritten:
    """Write all of them. Raises WriteError, and whatever their source raises."""
    if not _may_be_once(options):
        return TaskWritten(_send(options, batches), Delivery.AT_LEAST_ONCE)
    with CollectedRows(batches) as rows:
        return write_all(options, task, rows)


def write_all(options: WriteOptions, task: TaskName, rows: AllRows) -> TaskWritten:
    """The same, given that nothing is missing. Raises WriteError.

    The attempt that begins ends what the others have begun; so none may begin that cannot go on to
    the end, as one whose rows have not all come.
    """
    if not rows.count:
        return TaskWritten(0, options.delivery)
    try:
        mark = _written_by_anybody(options, task, rows)
    except NoTransactionsError as error:
        if options.delivery is Delivery.EXACTLY_ONCE:
            raise WriteError(
                f"the broker gives no transactions ({error}); delivery=at-least-once does "
                "without them"
            ) from error
        _without_transactions.add(options.client["bootstrap.servers"])
        return TaskWritten(_send(options, rows), Delivery.AT_LEAST_ONCE)
    _check_same(mark, task, rows.count)
    return TaskWritten(rows.count, Delivery.EXACTLY_ONCE)


def _may_be_once(options: WriteOptions) -> bool:
    if options.delivery is Delivery.AUTO:
        return options.client["bootstrap.servers"] not in _without_transactions
    return options.delivery is Delivery.EXACTLY_ONCE


def _written_by_anybody(options: WriteOptions, task: TaskName, rows: AllRows) -> BatchMark:
    """By this attempt, an earlier one, or another that has taken over."""
    with closing(MarkedGroup(options.client, task.name)) as group:
        transaction = TaskTransaction(options.client, task.name, group)
        try:
            transaction.begin()
            mark = group.newest()
            if mark is None or mark.batch_id < task.batch_id:
                for some in rows:
                    transaction.send(_outgoing(options, some))
                mark = BatchMark(task.batch_id, rows.count)
                transaction.commit(mark)
        except FencedError as error:
            transaction.check_in_time()
            mark = _await_other(task, group, transaction.timeout_s, error)
        except BaseException:
            transaction.abort()
            raise
        finally:
            transaction.close()
    return mark


def _await_other(
    task: TaskName, group: MarkedGroup, timeout_s: float, fenced: FencedError
) -> BatchMark:
    """What the attempt has written that has taken over; it cannot take longer than that."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        mark = group.newest()
        if mark is not None and mark.batch_id >= task.batch_id:
            return mark
        time.sleep(_LOOK_EVERY_S)
    raise fenced


def _check_same(mark: BatchMark, task: TaskName, rows: int) -> None:
    if mark.batch_id > task.batch_id:
        raise WriteError(
            f"{task.name} has written batch {mark.batch_id} already, and batch {task.batch_id} is "
            "to be written now: the checkpoint is older than what it led to. Begin with a new one"
        )
    if mark.rows not in (rows, None):
        raise WriteError(
            f"{task.name} has written {mark.rows} rows of batch {task.batch_id}, and has {rows} "
            "rows now: the batch was not cut into the same tasks, or its query is not "
            "deterministic. With .coalesce(1) the first cannot happen"
        )


def _send(options: WriteOptions, batches: Iterable[pa.RecordBatch]) -> int:
    """How many rows there were; all are acknowledged."""
    count = 0
    with closing(RowSender(options.client)) as sender:
        for batch in batches:
            sender.send(_outgoing(options, batch))
            count += batch.num_rows
        sender.flush()
    return count


def _outgoing(options: WriteOptions, batch: pa.RecordBatch) -> Iterator[OutgoingRow]:
    return outgoing(batch, options.topic, with_timestamp=options.with_timestamp)
