"""The records of many batches in one buffer, decompressed.

Uncompressed batches stay where they are: the buffer is the piece of the segment. With a compressed
one among them all are laid behind each other in a new one, or in several where they become large.
Codecs work outside the interpreter's lock, so that several batches can be decompressed at the same
time.
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
    decompress,
)
from odradek.protocol.record import SMALLEST_RECORD_BYTES

from .batch_table import BatchTable
from .varints import Ints

# A task for a thread: enough that handing it over costs nothing beside it.
_TASK_BYTES = 256 << 10
_TASKS_AHEAD = 4
_ROUND_BYTES = 32 << 20  # decompressed: then what is there is decoded first


class Bodies(NamedTuple):
    """The records of batch i lie at `data[begin[i]:end[i]]`."""

    data: bytes
    begin: Ints
    end: Ints


def read_bodies(
    piece: bytes, table: BatchTable, threads: Executor | None = None
) -> Iterator[tuple[BatchTable, Bodies]]:
    """The records of these batches, some batches after the other. Raises CorruptRecordError."""
    begin = table.position + HEADER_BYTES
    end = table.position + table.size_bytes
    if not table.compression_id.any():
        yield _checked(table, Bodies(piece, begin, end))
        return
    first, parts, size = 0, list[bytes | memoryview](), 0
    for part in itertools.chain.from_iterable(_decompress_all(piece, table, threads)):
        parts.append(part)
        size += len(part)
        if size >= _ROUND_BYTES:
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
    """The records of all batches in their order, those of a task at a time."""
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

    def some(first: int, behind: int) -> list[bytes | memoryview]:
        """Fewer than asked for where they become large: a small batch may hold much."""
        parts, size = list[bytes | memoryview](), 0
        for codec, at, end, offset in rows[first:behind]:
            parts.append(_decompressed(view[at:end], codec, offset))
            size += len(parts[-1])
            if size >= _ROUND_BYTES:
                break
        return parts

    if threads is None:
        first = 0
        while first < len(rows):
            parts = some(first, len(rows))
            yield parts
            first += len(parts)
        return
    tasks = iter(_tasks(table))
    waiting: deque[tuple[int, int, Future[list[bytes | memoryview]]]] = deque()
    for first, behind in itertools.islice(tasks, _TASKS_AHEAD):
        waiting.append((first, behind, threads.submit(some, first, behind)))
    while waiting:
        first, behind, future = waiting.popleft()
        parts = future.result()
        first += len(parts)
        if first < behind:
            waiting.appendleft((first, behind, threads.submit(some, first, behind)))
        else:
            for edges in itertools.islice(tasks, 1):
                waiting.append((*edges, threads.submit(some, *edges)))
        yield parts


def _tasks(table: BatchTable) -> Iterable[tuple[int, int]]:
    """Ranges of rows of about the same size."""
    number = np.cumsum(table.size_bytes) // _TASK_BYTES
    bounds = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), table.height]
    return itertools.pairwise(bounds)


def _decompressed(stored: memoryview, codec: int, base_offset: int) -> bytes | memoryview:
    if codec == CompressionType.NONE:
        return stored
    try:
        return decompress(CompressionType(codec), stored, max_bytes=MAX_DECOMPRESSED_BYTES)
    except (DecompressionError, ValueError) as error:
        raise CorruptRecordError(f"the batch at offset {base_offset}: {error}") from None


def _checked(table: BatchTable, bodies: Bodies) -> tuple[BatchTable, Bodies]:
    """No header may make us reserve room for more records than can be there."""
    size = bodies.end - bodies.begin
    wrong = np.flatnonzero(table.record_count * SMALLEST_RECORD_BYTES > size)
    if wrong.size:
        row = int(wrong[0])
        raise CorruptRecordError(
            f"the batch at offset {table.base_offset[row]} claims {table.record_count[row]} records"
            f" in {size[row]} bytes"
        )
    return table, bodies
