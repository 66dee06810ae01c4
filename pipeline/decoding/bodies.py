"""Decompresses the records of many batches into one buffer.

If no batch is compressed, the piece of the segment is that buffer and nothing is copied. Otherwise
the records of all batches are concatenated in a new buffer, or in several if they are large.
Codecs release the interpreter's lock, so threads can decompress several batches at the same time.
"""

import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, Future
from typing import NamedTuple

import numpy as np

from odradek.protocol.batch_header import HEADER_BYTES, CorruptRecordError
from odradek.protocol.compression import (
    MAX_DECOMPRESSED_BYTES,
    CompressionType,
    DecompressionError,
    StreamTooLargeError,
    decompress,
)
from odradek.protocol.record import SMALLEST_RECORD_BYTES

from .batch_table import BatchTable
from .varints import Ints

# Compressed bytes of one task for a thread: enough that the cost of handing it over is negligible.
_TASK_BYTES = 256 << 10
_TASKS_AHEAD = 4
_MAX_BUFFER_BYTES = 32 << 20  # decompressed; a full buffer is decoded before the next is filled


class LargeBatchError(CorruptRecordError):
    """A batch decompresses to more than is held in memory at once: see large_batches.py."""


class Bodies(NamedTuple):
    """The records of batch i are `data[begin[i]:end[i]]`."""

    data: bytes
    begin: Ints
    end: Ints


def read_bodies(
    piece: bytes, table: BatchTable, threads: Executor | None = None
) -> Iterator[tuple[BatchTable, Bodies]]:
    """Yield some batches at a time, with their records.

    Raises LargeBatchError, other CorruptRecordErrors.
    """
    begin = table.position + HEADER_BYTES
    end = table.position + table.size_bytes
    if not table.compression_id.any():
        yield _checked(table, Bodies(piece, begin, end))
        return
    first, parts, size = 0, list[bytes | memoryview](), 0
    for part in itertools.chain.from_iterable(_decompress_all(piece, table, threads)):
        parts.append(part)
        size += len(part)
        if size >= _MAX_BUFFER_BYTES:
            yield _joined(table.rows(first, first + len(parts)), parts)
            first, parts, size = first + len(parts), [], 0
    if parts:
        yield _joined(table.rows(first, first + len(parts)), parts)


def _joined(table: BatchTable, parts: list[bytes | memoryview]) -> tuple[BatchTable, Bodies]:
    sizes = np.fromiter(map(len, parts), np.int64, len(parts))
    ends = np.cumsum(sizes)
    return _checked(table, Bodies(b"".join(parts), ends - sizes, ends))


def _decompress_all(
    piece: bytes, table: BatchTable, threads: Executor | None
) -> Iterator[list[bytes | memoryview]]:
    """Yield the records of all batches in order, those of one task at a time."""
    view = memoryview(piece)
    rows = list(
        zip(
            table.compression_id.tolist(),
            (table.position + HEADER_BYTES).tolist(),
            (table.position + table.size_bytes).tolist(),
            table.base_offset.tolist(),
            strict=True,
        )
    )

    def decompress_rows(start: int, stop: int) -> list[bytes | memoryview]:
        """Stops early when the buffer is full, because a small batch may decompress to much."""
        parts, size = list[bytes | memoryview](), 0
        for codec, at, end, offset in rows[start:stop]:
            parts.append(_decompressed(view[at:end], codec, offset))
            size += len(parts[-1])
            if size >= _MAX_BUFFER_BYTES:
                break
        return parts

    if threads is None:
        start = 0
        while start < len(rows):
            parts = decompress_rows(start, len(rows))
            yield parts
            start += len(parts)
        return
    tasks = iter(_tasks(table))
    waiting: deque[tuple[int, int, Future[list[bytes | memoryview]]]] = deque()
    for start, stop in itertools.islice(tasks, _TASKS_AHEAD):
        waiting.append((start, stop, threads.submit(decompress_rows, start, stop)))
    while waiting:
        start, stop, future = waiting.popleft()
        parts = future.result()
        start += len(parts)
        if start < stop:
            waiting.appendleft((start, stop, threads.submit(decompress_rows, start, stop)))
        else:
            for rows_of_task in itertools.islice(tasks, 1):
                waiting.append((*rows_of_task, threads.submit(decompress_rows, *rows_of_task)))
        yield parts


def _tasks(table: BatchTable) -> Iterable[tuple[int, int]]:
    """Return ranges of rows of about _TASK_BYTES each."""
    task_number = np.cumsum(table.size_bytes) // _TASK_BYTES
    bounds = [0, *(np.flatnonzero(np.diff(task_number)) + 1).tolist(), table.height]
    return itertools.pairwise(bounds)


def _decompressed(stored: memoryview, codec: int, base_offset: int) -> bytes | memoryview:
    if codec == CompressionType.NONE:
        return stored
    try:
        return decompress(CompressionType(codec), stored, max_bytes=MAX_DECOMPRESSED_BYTES)
    except StreamTooLargeError as error:
        raise LargeBatchError(f"the batch at offset {base_offset}: {error}") from None
    except (DecompressionError, ValueError) as error:
        raise CorruptRecordError(f"the batch at offset {base_offset}: {error}") from None


def _checked(table: BatchTable, bodies: Bodies) -> tuple[BatchTable, Bodies]:
    """Check that no header claims more records than fit, before memory is allocated for them."""
    size = bodies.end - bodies.begin
    invalid = np.flatnonzero(table.record_count * SMALLEST_RECORD_BYTES > size)
    if invalid.size:
        row = int(invalid[0])
        raise CorruptRecordError(
            f"the batch at offset {table.base_offset[row]} claims {table.record_count[row]} records"
            f" in {size[row]} bytes"
        )
    return table, bodies
