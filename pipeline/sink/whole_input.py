"""Whether a task has been given all of its rows.

When that fails which makes the rows (a function in Python, a fetch from another machine), or when a
task is killed, Spark closes the stream to its Python worker. Arrow takes the end of a stream for
the end of the data, and so does `for batch in batches`. Most writers need not care, for Spark does
not commit what they answer; but the sink's transaction is over before there is an answer.

A stream that ends well is followed by a word of Spark's, which the worker reads when the writer has
returned (pyspark.worker, SpecialLengths.END_OF_STREAM). So it is looked at here, and left there.
pyspark has no name for the worker's stream: it is what its function `main` was called with.
"""

import io
import struct
import sys
from collections.abc import Iterable, Iterator
from typing import cast

import pyarrow as pa
from pyspark.serializers import SpecialLengths

from .rows import WriteError

_GOOD_END = struct.pack(">i", SpecialLengths.END_OF_STREAM)


def whole(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same. Raises WriteError behind the last where Spark has not sent all."""
    yield from batches
    # All that is buffered, or else what the next read brings: perhaps not yet the whole word.
    seen = _worker_stream().peek()[: len(_GOOD_END)]
    if not seen or not _GOOD_END.startswith(seen):
        raise WriteError("Spark has ended the task before all of its rows were made")


def _worker_stream() -> io.BufferedReader:
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_name == "main" and "infile" in frame.f_locals:
            return cast("io.BufferedReader", frame.f_locals["infile"])
    raise WriteError("this pyspark does not let us see whether all rows of a task have come")
