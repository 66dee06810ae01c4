"""Reads the batches of closed segments for the log cleaner: of every format, in large pieces.

Memory holds one piece, as large as the I/O buffer or the largest batch: a batch may be larger than
today's `max.message.bytes`. If the bytes at a position are no batch, the start of the next one is
unknown, so the round ends for this log. The content of batches is not checked here. Kafka:
Cleaner.growBuffersOrFail.
"""

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from odradek.protocol.batch_header import HEADER_BYTES, LOG_OVERHEAD, MAGIC_POSITION, MAGIC_V2
from odradek.protocol.message_set import SMALLEST_SIZES
from odradek.storage.batch_scan import CHUNK_BYTES, CorruptBatchError
from odradek.storage.files import Files, OpenFile

_HEAD = struct.Struct(">qi")
_LAST_DELTA = struct.Struct(">i")
_LAST_DELTA_POSITION = 23
# Up to its magic byte, from which the smallest size follows.
_SMALLEST_HEAD = MAGIC_POSITION + 1
_SMALLEST = (*SMALLEST_SIZES, HEADER_BYTES - LOG_OVERHEAD)


class StoredBatch(NamedTuple):
    """The bytes of one batch, or of one message of an old format."""

    base_offset: int  # of a message: its own; of a wrapper: of the last message in it
    last_offset: int
    magic: int
    data: memoryview


class CleanerInput(NamedTuple):
    """A reader. `on_io` is called with the number of bytes of each read."""

    files: Files
    buffer_bytes: int
    on_io: Callable[[int], None]

    @classmethod
    def plain(cls, files: Files) -> "CleanerInput":
        """A reader without `on_io`."""
        return cls(files, CHUNK_BYTES, lambda _: None)

    def batches(
        self, file: OpenFile, start: int, end: int, end_offset: int
    ) -> Iterator[StoredBatch]:
        """Yield the batches in bytes [start, end). Offsets must ascend and be below `end_offset`.

        Raises CorruptBatchError, OSError.
        """
        position, wanted, next_offset = start, self.buffer_bytes, 0
        while position < end:
            piece = self._read(file, min(wanted, end - position), position)
            used, wanted = 0, self.buffer_bytes
            while len(piece) - used > MAGIC_POSITION:
                size = _size_of(file, position + used, piece, used)
                if used + size > len(piece):
                    wanted = max(wanted, size)
                    break
                batch = _batch_at(piece[used : used + size])
                if not next_offset <= batch.base_offset <= batch.last_offset < end_offset:
                    reason = (
                        f"offsets {batch.base_offset} to {batch.last_offset} are not in "
                        f"[{next_offset}, {end_offset})"
                    )
                    raise CorruptBatchError(file, position + used, reason)
                next_offset = batch.last_offset + 1
                yield batch
                used += size
            position += used
            # If no batch was whole, the first one needs `wanted` bytes.
            smallest_next = _SMALLEST_HEAD if used else wanted
            if position < end < position + smallest_next:
                reason = f"the last {end - position} bytes hold no whole batch"
                raise CorruptBatchError(file, position, reason)

    def _read(self, file: OpenFile, size: int, position: int) -> memoryview:
        piece = self.files.pread(file, size, position)
        self.on_io(len(piece))
        if len(piece) < size:
            reason = f"the file ends here, {size - len(piece)} bytes are missing"
            raise CorruptBatchError(file, position + len(piece), reason)
        return memoryview(piece)


def _size_of(file: OpenFile, position: int, piece: memoryview, at: int) -> int:
    _, length = _HEAD.unpack_from(piece, at)
    magic = piece[at + MAGIC_POSITION]
    if magic > MAGIC_V2:
        raise CorruptBatchError(file, position, f"magic {magic} is unknown")
    if length < _SMALLEST[magic]:
        raise CorruptBatchError(file, position, f"length {length} is too small for a batch")
    return LOG_OVERHEAD + int(length)


def _batch_at(data: memoryview) -> StoredBatch:
    base_offset, _ = _HEAD.unpack_from(data)
    magic = data[MAGIC_POSITION]
    last_offset = base_offset
    if magic == MAGIC_V2:
        last_offset += _LAST_DELTA.unpack_from(data, _LAST_DELTA_POSITION)[0]
    return StoredBatch(base_offset, last_offset, magic, data)
