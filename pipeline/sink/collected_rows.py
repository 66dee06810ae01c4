"""Collects all rows of a task before the first is sent.

A few rows are kept in memory. Many are written to an unnamed temporary file, in the directory of
Spark's own temporary files. The format is Arrow's IPC stream, which gives the same batches back.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator
from typing import Final, Self

import pyarrow as pa

_IN_MEMORY_BYTES: Final = 32 << 20


class CollectedRows:
    """Reads all batches when it is created. Can be iterated many times. Raises OSError."""

    def __init__(
        self, batches: Iterable[pa.RecordBatch], *, in_memory_bytes: int = _IN_MEMORY_BYTES
    ) -> None:
        self.count = 0
        self._file = tempfile.SpooledTemporaryFile(in_memory_bytes, dir=_directory())  # noqa: SIM115 - __exit__ closes it
        try:
            self._take(batches)
        except BaseException:
            self._file.close()
            raise

    def _take(self, batches: Iterable[pa.RecordBatch]) -> None:
        writer: pa.RecordBatchStreamWriter | None = None
        for batch in batches:
            if not batch.num_rows:
                continue
            if writer is None:
                writer = pa.ipc.new_stream(pa.PythonFile(self._file, "w"), batch.schema)
            writer.write_batch(batch)
            self.count += batch.num_rows
        if writer is not None:
            writer.close()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if self.count:
            self._file.seek(0)
            yield from pa.ipc.open_stream(pa.PythonFile(self._file, "r"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _directory() -> str | None:
    """Return the first of Spark's directories; outside Spark None, which is Python's default."""
    return os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None
