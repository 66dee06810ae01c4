"""Keeps the rows of a task as they arrive, so that they can be sent again.

The first rows are kept in memory. The rest is written to an unnamed temporary file, in the
directory of Spark's own temporary files, as a stream of Arrow's IPC, which gives the same batches
back.
"""

import math
import os
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, Final, Self

import pyarrow as pa

_IN_MEMORY_BYTES: Final = 32 << 20


class CollectedRows:
    """All rows of a task. Can be iterated many times, one after the other.

    Methods and iterators raise OSError, and what makes the rows raises.
    """

    def __init__(
        self, batches: Iterable[pa.RecordBatch], *, in_memory_bytes: int = _IN_MEMORY_BYTES
    ) -> None:
        self.count = 0  # of the rows that have arrived
        self.are_complete = False
        self._size_bytes = 0
        self._first: list[pa.RecordBatch] = []
        self._file: IO[bytes] | None = None
        self._arriving = self._keep(batches, in_memory_bytes)

    def collect(self, up_to_bytes: float = math.inf) -> None:
        """Wait until this many bytes have arrived, or all."""
        while self._size_bytes < up_to_bytes and next(self._arriving, None) is not None:
            pass

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Return those that have arrived, then the rest as it arrives."""
        yield from self._first
        if self._file is None:
            for batch in self._arriving:  # noqa: UP028 - `yield from` would close it with this one
                yield batch
        else:
            self.collect()
            self._file.seek(0)
            yield from pa.ipc.open_stream(pa.PythonFile(self._file, "r"))

    def _keep(
        self, batches: Iterable[pa.RecordBatch], in_memory_bytes: int
    ) -> Iterator[pa.RecordBatch]:
        writer: pa.RecordBatchStreamWriter | None = None
        for batch in batches:
            if not batch.num_rows:
                continue
            self.count += batch.num_rows
            self._size_bytes += batch.nbytes
            if self._size_bytes <= in_memory_bytes:
                self._first.append(batch)
            else:
                if writer is None:
                    self._file = tempfile.TemporaryFile(dir=_directory())  # noqa: SIM115 - __exit__ closes it
                    writer = pa.ipc.new_stream(pa.PythonFile(self._file, "w"), batch.schema)
                writer.write_batch(batch)
            yield batch
        if writer is not None:
            writer.close()
        self.are_complete = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


def _directory() -> str | None:
    """Return the first of Spark's directories; outside Spark None, which is Python's default."""
    return os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None
