"""Checks that a task was given all of its rows.

Spark closes the stream to its Python worker when a task is killed, and when the step that makes the
rows fails (a Python function, a fetch from another machine). Arrow takes the end of the stream for
the end of the data, and so does `for batch in batches`. Most writers need not care, because Spark
does not commit their result. But the sink commits its transaction before it returns a result.

Spark ends a complete stream with a marker, which the worker reads after the writer has returned
(pyspark.worker, SpecialLengths.END_OF_STREAM). So the marker is peeked at here and not consumed.
"""

import struct
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.serializers import SpecialLengths

from odradek.pipeline.spark_internals import worker_stream

from .rows import WriteError

_END_MARKER = struct.pack(">i", SpecialLengths.END_OF_STREAM)


def require_complete(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches. Raises WriteError after the last if Spark has not sent all of them."""
    yield from batches
    stream = worker_stream()
    if stream is None:
        raise WriteError("cannot tell whether a task received all rows: unknown version of pyspark")
    # peek() returns what is buffered, or else one read: perhaps only a part of the marker.
    seen = stream.peek()[: len(_END_MARKER)]
    if not seen or not _END_MARKER.startswith(seen):
        raise WriteError("Spark ended the task before all of its rows had arrived")
