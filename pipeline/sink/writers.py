"""The writers that Spark calls: for a batch query, and for the batches of a stream."""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from odradek.pipeline.spark_versions import StreamArrowWriter

from .complete_input import require_complete
from .ended_queries import end_query
from .rows import WriteError, check_columns
from .task_writing import TaskName, Written, write_rows
from .write_options import Delivery, WriteOptions

# Local properties with a task's query and batch (StreamExecution, MicroBatchExecution).
_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"


@dataclass(frozen=True)
class TaskDone(WriterCommitMessage):
    """A task's message to the driver."""

    name: str
    written: Written


class OdradekWriter(DataSourceArrowWriter):
    """Writes a batch query: one batch, under a random name."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(schema, options.topic, with_timestamp=options.with_timestamp)
        self.options = options
        self.query = f"{options.prefix}-{uuid.uuid4()}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskDone:
        task = TaskName(f"{self.query}-{_context().partitionId()}", 0, self.query)
        return _write(self.options, task, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._end(messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._end(messages)

    def _end(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if self.options.delivery is Delivery.EXACTLY_ONCE:
            done = [each for each in messages if isinstance(each, TaskDone) and each.written.rows]
            topics = frozenset[str]().union(*(each.written.topics for each in done))
            end_query(self.options.client, self.query, [each.name for each in done], topics)


class OdradekStreamWriter(StreamArrowWriter):
    """Writes the batches of a stream. Spark keeps the query's id across restarts."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(schema, options.topic, with_timestamp=options.with_timestamp)
        self.options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskDone:
        context = _context()
        query, batch_id = (context.getLocalProperty(name) for name in (_QUERY_ID, _BATCH_ID))
        if query is None or batch_id is None:
            raise WriteError(f"Spark did not name the batch ({_QUERY_ID}, {_BATCH_ID})")
        name = f"{self.options.prefix}-{query}-{context.partitionId()}"
        return _write(self.options, TaskName(name, int(batch_id)), iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        """Do nothing: each task has committed its rows."""

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        """Do nothing: the batch will run again."""


def _write(options: WriteOptions, task: TaskName, rows: Iterator[pa.RecordBatch]) -> TaskDone:
    return TaskDone(task.name, write_rows(options, task, require_complete(rows)))


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "write() runs in a task"
    return context
