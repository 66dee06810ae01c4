"""The writers that Spark calls: for a batch query, and for the batches of a stream."""

import functools
import logging
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
from .task_writing import TaskName, TaskResult, task_name_prefix, write_rows
from .write_options import Delivery, WriteOptions

_logger = logging.getLogger(__name__)

# Local properties with a task's query and batch (StreamExecution, MicroBatchExecution).
_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"


@dataclass(frozen=True)
class TaskDone(WriterCommitMessage):
    """A task's message to the driver."""

    name: str
    result: TaskResult


class OdradekWriter(DataSourceArrowWriter):
    """Writes a batch query: one batch, under a random name."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(schema, options.topic, with_timestamp=options.with_timestamp)
        self.options = options
        self.query = str(uuid.uuid4())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskDone:
        return _write(self.options, _context(), self.query, 0, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        _warn_if_at_least_once(self.options, messages)
        self._delete_groups(messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._delete_groups(messages)

    def _delete_groups(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete the groups of the tasks: no attempt will read them again."""
        names = [
            each.name
            for each in messages
            if isinstance(each, TaskDone)
            and each.result.rows
            and each.result.delivery is Delivery.EXACTLY_ONCE
        ]
        delete_groups(self.options.client, names)


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

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 - Spark's
        _warn_if_at_least_once(self.options, messages)


def _write(
    options: WriteOptions,
    context: TaskContext,
    query: str,
    batch_id: int,
    rows: Iterator[pa.RecordBatch],
) -> TaskDone:
    task = TaskName(f"{task_name_prefix(options, query)}{context.partitionId()}", batch_id)
    return TaskDone(task.name, write_rows(options, task, require_complete(rows)))


@functools.cache
def _warn_once(text: str) -> None:
    """Log once per driver process, which runs many batches."""
    _logger.warning(text)


def _warn_if_at_least_once(
    options: WriteOptions, messages: Sequence[WriterCommitMessage | None]
) -> None:
    if options.delivery is Delivery.AUTO and any(
        isinstance(each, TaskDone) and each.result.delivery is Delivery.AT_LEAST_ONCE
        for each in messages
    ):
        _warn_once(
            f"{options.client['bootstrap.servers']} has no transactions: rows are written at "
            "least once, and again if a task or batch runs again (delivery=auto)"
        )


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "write() runs in a task"
    return context
