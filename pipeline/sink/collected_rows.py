"""Collects all rows of a task before the first is sent.

The first rows are kept in memory. The rest is written to an unnamed temporary file, in the
directory of Spark's own temporary files, as a stream of Arrow's IPC, which gives the same batches
back.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, Final, Self

import pyarrow as pa

_IN_MEMORY_BYTES: Final = 32 << 20


class CollectedRows:
    """Reads all batches when it is created. Can be iterated many times. Raises OSError."""

    def __init__(
        self, batches: Iterable[pa.RecordBatch], *, in_memory_bytes: int = _IN_MEMORY_BYTES
    ) -> None:
        self.count = 0
        self._first: list[pa.RecordBatch] = []
        self._file: IO[bytes] | None = None
        try:
            self._take(batches, in_memory_bytes)
        except BaseException:
            self._close()
            raise

    def _take(self, batches: Iterable[pa.RecordBatch], room_bytes: int) -> None:
        writer: pa.RecordBatchStreamWriter | None = None
        for batch in batches:
            if not batch.num_rows:
                continue
            self.count += batch.num_rows
            room_bytes -= batch.nbytes
            if room_bytes >= 0:
                self._first.append(batch)
                continue
            if writer is None:
                self._file = tempfile.TemporaryFile(dir=_directory())  # noqa: SIM115 - __exit__ closes it
                writer = pa.ipc.new_stream(pa.PythonFile(self._file, "w"), batch.schema)
            writer.write_batch(batch)
        if writer is not None:
            writer.close()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        yield from self._first
        if self._file is not None:
            self._file.seek(0)
            yield from pa.ipc.open_stream(pa.PythonFile(self._file, "r"))

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()


def _directory() -> str | None:
    """Return the first of Spark's directories; outside Spark None, which is Python's default."""
    return os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None
