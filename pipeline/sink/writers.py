"""What Spark asks to write: a batch query, or the batches of a stream."""

import functools
import logging
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from .batch_marks import delete_marks
from .rows import WriteError, check_columns
from .task_writing import TaskName, TaskWritten, names_of, write_rows
from .whole_input import whole
from .write_options import Delivery, WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_logger = logging.getLogger(__name__)

# Where Spark says to a task what it belongs to (StreamExecution, MicroBatchExecution).
_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"


@dataclass(frozen=True)
class TaskDone(WriterCommitMessage):
    """What a task tells the driver."""

    name: str
    written: TaskWritten


class OdradekWriter(DataSourceArrowWriter):
    """A batch query: the one batch of a name that nobody else has."""

    def __init__(self, options: WriteOptions, schema: "StructType") -> None:
        _check(options, schema)
        self.options = options
        self.query = str(uuid.uuid4())

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> TaskDone:
        return _write(self.options, _context(), self.query, 0, iterator)

    def commit(self, messages: "Sequence[WriterCommitMessage | None]") -> None:
        _say_what_is_not_promised(self.options, messages)
        self._clear(messages)

    def abort(self, messages: "Sequence[WriterCommitMessage | None]") -> None:
        self._clear(messages)

    def _clear(self, messages: "Sequence[WriterCommitMessage | None]") -> None:
        """Nobody will ask again what the tasks have written."""
        names = [
            each.name
            for each in messages
            if isinstance(each, TaskDone)
            and each.written.rows
            and each.written.delivery is Delivery.EXACTLY_ONCE
        ]
        delete_marks(self.options.client, names)


class OdradekStreamWriter(DataSourceStreamArrowWriter):
    """A stream: Spark knows by which name it goes on after a restart."""

    def __init__(self, options: WriteOptions, schema: "StructType") -> None:
        _check(options, schema)
        self.options = options

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> TaskDone:
        context = _context()
        query, batch_id = (context.getLocalProperty(name) for name in (_QUERY_ID, _BATCH_ID))
        if query is None or batch_id is None:
            raise WriteError(f"Spark does not say which batch this is ({_QUERY_ID}, {_BATCH_ID})")
        return _write(self.options, context, query, int(batch_id), iterator)

    def commit(self, messages: "Sequence[WriterCommitMessage | None]", batchId: int) -> None:  # noqa: ARG002, N803 - Spark's
        _say_what_is_not_promised(self.options, messages)


def _write(
    options: WriteOptions,
    context: TaskContext,
    query: str,
    batch_id: int,
    rows: "Iterator[pa.RecordBatch]",
) -> TaskDone:
    task = TaskName(f"{names_of(options, query)}{context.partitionId()}", batch_id)
    return TaskDone(task.name, write_rows(options, task, whole(rows)))


@functools.cache
def _say_once(text: str) -> None:
    """Once in a process of the driver's, which serves many batches."""
    _logger.warning(text)


def _say_what_is_not_promised(
    options: WriteOptions, messages: "Sequence[WriterCommitMessage | None]"
) -> None:
    if options.delivery is Delivery.AUTO and any(
        isinstance(each, TaskDone) and each.written.delivery is Delivery.AT_LEAST_ONCE
        for each in messages
    ):
        _say_once(
            f"{options.client['bootstrap.servers']} gives no transactions: rows are written at "
            "least once, and twice where a task or a batch runs again (delivery=auto)"
        )


def _check(options: WriteOptions, schema: "StructType") -> None:
    check_columns(schema, options.topic, with_timestamp=options.with_timestamp)


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "write() runs in a task"
    return context
