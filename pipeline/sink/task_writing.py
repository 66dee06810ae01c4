"""Writes the rows of a task once, however often the task runs. Does not depend on Spark."""

import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import NamedTuple, Protocol

import pyarrow as pa

from .collected_rows import CollectedRows
from .committed_batches import CommittedBatch, TaskConsumerGroup
from .row_sender import FencedError, RowSender
from .rows import OutgoingRow, WriteError, outgoing_rows
from .task_transaction import TaskTransaction
from .write_options import Delivery, WriteOptions

_POLL_EVERY_S = 0.5


class TaskName(NamedTuple):
    """`odradek-<query>-<task>`, the same for all attempts, and the batch that the task writes."""

    name: str
    batch_id: int


class CompleteRows(Protocol):
    """All rows of a task: their number, and their batches."""

    @property
    def count(self) -> int: ...

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...


def write_rows(options: WriteOptions, task: TaskName, batches: Iterable[pa.RecordBatch]) -> int:
    """Write all rows and return their number. Raises WriteError, and what the iterator raises."""
    if options.delivery is Delivery.AT_LEAST_ONCE:
        return _send(options, batches)
    with CollectedRows(batches) as rows:
        return write_complete(options, task, rows)


def write_complete(options: WriteOptions, task: TaskName, rows: CompleteRows) -> int:
    """Write rows that are known to be complete, unless another attempt has. Raises WriteError.

    The attempt that begins a transaction fences the others. So an attempt that may not be able to
    finish, because some of its rows have not arrived, must not begin.
    """
    if rows.count:
        _check_same(_write_in_transaction(options, task, rows), task, rows.count)
    return rows.count


def _write_in_transaction(
    options: WriteOptions, task: TaskName, rows: CompleteRows
) -> CommittedBatch:
    """Return the batch that this attempt, an earlier one or a later one has committed."""
    with closing(TaskConsumerGroup(options.client, task.name)) as group:
        transaction = TaskTransaction(options.client, task.name, group)
        try:
            transaction.begin()
            last = group.last_batch()
            if last is None or last.batch_id < task.batch_id:
                for batch in rows:
                    transaction.send(_outgoing_rows(options, batch))
                last = CommittedBatch(task.batch_id, rows.count)
                transaction.commit(last)
        except FencedError as error:
            transaction.check_timeout()
            last = _await_other_attempt(task, group, transaction.timeout_s, error)
        except BaseException:
            transaction.abort()
            raise
        finally:
            transaction.close()
    return last


def _await_other_attempt(
    task: TaskName, group: TaskConsumerGroup, timeout_s: float, fenced: FencedError
) -> CommittedBatch:
    """Wait until the attempt that fenced this one has committed; raise `fenced` on timeout."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        last = group.last_batch()
        if last is not None and last.batch_id >= task.batch_id:
            return last
        time.sleep(_POLL_EVERY_S)
    raise fenced


def _check_same(last: CommittedBatch, task: TaskName, rows: int) -> None:
    if last.batch_id > task.batch_id:
        raise WriteError(
            f"{task.name} has already written batch {last.batch_id}, which is later than batch "
            f"{task.batch_id}: the checkpoint is out of date. Start with a new checkpoint"
        )
    if last.rows not in (rows, None):
        raise WriteError(
            f"{task.name} wrote {last.rows} rows of batch {task.batch_id} before, and has {rows} "
            "rows now: the batch was divided into different tasks, or its query is not "
            "deterministic. .coalesce(1) prevents the former"
        )


def _send(options: WriteOptions, batches: Iterable[pa.RecordBatch]) -> int:
    """Send all rows, wait until they are acknowledged, and return their number."""
    count = 0
    with closing(RowSender(options.client)) as sender:
        for batch in batches:
            sender.send(_outgoing_rows(options, batch))
            count += batch.num_rows
        sender.flush()
    return count


def _outgoing_rows(options: WriteOptions, batch: pa.RecordBatch) -> Iterator[OutgoingRow]:
    return outgoing_rows(batch, options.topic, with_timestamp=options.with_timestamp)
