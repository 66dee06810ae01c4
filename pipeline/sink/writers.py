"""The writers that Spark calls: for a batch query, and for the batches of a stream."""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from odradek.pipeline.option_values import OptionError
from odradek.pipeline.spark_versions import StreamArrowWriter

from .complete_input import require_complete
from .ended_queries import end_query
from .rows import WriteError, check_columns
from .task_name import TaskName
from .task_writing import Written, write_rows
from .write_options import Delivery, WriteOptions

# Local properties with a task's query and batch, and with the id of this start of the query
# (StreamExecution, MicroBatchExecution).
_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"
_RUN_ID = "spark.jobGroup.id"


@dataclass(frozen=True)
class TaskDone(WriterCommitMessage):
    """A task's message to the driver."""

    name: str
    written: Written


class OdradekWriter(DataSourceArrowWriter):
    """Writes a batch query: one batch, under the name that the user gives, or a random one."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(schema, options.topic, with_timestamp=options.with_timestamp)
        self.options = options
        self.run = str(uuid.uuid4())
        named = options.named_batch
        self.query = f"{options.prefix}-{named.name if named else self.run}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskDone:
        number, named = _context().partitionId(), self.options.named_batch
        version = named.version if named else 0
        task = TaskName(self.query, number, version, self.run, ends=named is None)
        return _write(self.options, task, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._end(messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._end(messages)

    def _end(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if self.options.delivery is Delivery.EXACTLY_ONCE and not self.options.named_batch:
            done = [each for each in messages if isinstance(each, TaskDone) and each.written.rows]
            topics = frozenset[str]().union(*(each.written.topics for each in done))
            end_query(self.options.client, self.query, [each.name for each in done], topics)


class OdradekStreamWriter(StreamArrowWriter):
    """Writes the batches of a stream. Spark keeps the query's id across restarts."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(schema, options.topic, with_timestamp=options.with_timestamp)
        if options.named_batch:
            raise OptionError(
                "txnAppId and txnVersion are for df.write, as in foreachBatch: the batches of a "
                "stream have names"
            )
        self.options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskDone:
        context = _context()
        names = (_QUERY_ID, _BATCH_ID, _RUN_ID)
        query, batch_id, run = (context.getLocalProperty(name) for name in names)
        if query is None or batch_id is None or run is None:
            raise WriteError(f"Spark did not name the batch ({', '.join(names)})")
        name = f"{self.options.prefix}-{query}"
        task = TaskName(name, context.partitionId(), int(batch_id), run, is_stream=True)
        return _write(self.options, task, iterator)

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
