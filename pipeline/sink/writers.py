"""The writers that Spark calls: for a batch query, and for the batches of a stream."""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from .committed_batches import delete_groups
from .complete_input import require_complete
from .rows import WriteError, check_columns
from .task_writing import TaskName, write_rows
from .write_options import Delivery, WriteOptions

# Local properties with a task's query and batch (StreamExecution, MicroBatchExecution).
_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"


@dataclass(frozen=True)
class TaskDone(WriterCommitMessage):
    """A task's message to the driver."""

    name: str
    rows: int


class OdradekWriter(DataSourceArrowWriter):
    """Writes a batch query: one batch, under a random name."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(schema, options.topic, with_timestamp=options.with_timestamp)
        self.options = options
        self.query = str(uuid.uuid4())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskDone:
        return _write(self.options, _context(), self.query, 0, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._delete_groups(messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._delete_groups(messages)

    def _delete_groups(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete the groups of the tasks: no attempt will read them again."""
        if self.options.delivery is Delivery.EXACTLY_ONCE:
            done = [each for each in messages if isinstance(each, TaskDone) and each.rows]
            delete_groups(self.options.client, [each.name for each in done])


class OdradekStreamWriter(DataSourceStreamArrowWriter):
    """Writes the batches of a stream. Spark keeps the query's id across restarts."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(schema, options.topic, with_timestamp=options.with_timestamp)
        self.options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskDone:
        context = _context()
        query, batch_id = (context.getLocalProperty(name) for name in (_QUERY_ID, _BATCH_ID))
        if query is None or batch_id is None:
            raise WriteError(f"Spark did not name the batch ({_QUERY_ID}, {_BATCH_ID})")
        return _write(self.options, context, query, int(batch_id), iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        """Do nothing: each task has committed its rows."""


def _write(
    options: WriteOptions,
    context: TaskContext,
    query: str,
    batch_id: int,
    rows: Iterator[pa.RecordBatch],
) -> TaskDone:
    task = TaskName(f"{options.prefix}-{query}-{context.partitionId()}", batch_id)
    return TaskDone(task.name, write_rows(options, task, require_complete(rows)))


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "write() runs in a task"
    return context
