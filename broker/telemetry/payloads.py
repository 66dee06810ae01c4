"""Decompresses and reads what clients push, at a bounded cost.

A push of a kilobyte can decompress to megabytes, and can hold millions of messages. So:

- It may decompress to MAX_EXPANSION times telemetry.max.bytes. Small pushes are decompressed on the
  event loop, others in a disk thread: the codecs release the GIL.
- It is read in slices of a millisecond, between which the broker serves requests.
- One push is decompressed, read and written at a time. The others wait, in the order in which they
  came, and hold their compressed bytes. If these exceed MAX_WAITING_PUSHES times
  telemetry.max.bytes, or a thousand pushes wait, another is refused as if it had come too soon: its
  client tries again after an interval.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial

from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.protocol.compression import (
    GZIP_PART_BYTES,
    CompressionType,
    DecompressionError,
    StreamTooLargeError,
    decompress,
)
from odradek.protocol.errors import ApiError, ErrorCode

from .otlp import OtlpError, Point, TooManyFieldsError, read_points

MAX_EXPANSION = 8
MAX_WAITING_PUSHES = 16
MAX_SMALL_PUSHES = 64  # in place of one large push
# gzip members, snappy blocks, zstd frames; on the event loop, and in a disk thread at least
MAX_SMALL_PARTS = 64
MAX_PARTS = 1_000
SMALL_BYTES = 64 * 1024
SLICE_S = 0.001


class Payloads:
    """Reads pushes, one after another: each in its `turn`."""

    def __init__(self, disk: DiskExecutor, max_bytes: int) -> None:
        """`max_bytes`: telemetry.max.bytes."""
        self._disk = disk
        self._max_bytes = max_bytes
        self._turns = asyncio.Lock()
        self._waiting_bytes = 0

    @asynccontextmanager
    async def turn(self, stored: bytes) -> AsyncIterator[None]:
        """Wait until a push may be read. Raises THROTTLING_QUOTA_EXCEEDED if too many wait."""
        size_bytes = max(len(stored), self._max_bytes // MAX_SMALL_PUSHES)
        if self._waiting_bytes + size_bytes > MAX_WAITING_PUSHES * self._max_bytes:
            raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "too many pushes wait to be read")
        self._waiting_bytes += size_bytes
        try:
            async with self._turns:
                yield
        finally:
            self._waiting_bytes -= size_bytes

    async def read(
        self, compression: CompressionType, stored: bytes, add: Callable[[Point], object]
    ) -> bytes:
        """Pass the points of a push to `add`, and return its OTLP bytes. Call it in a turn.

        Raises TELEMETRY_TOO_LARGE, INVALID_RECORD.
        """
        content = await self._decompress(compression, stored)
        try:
            await _in_slices(read_points(content), add)
        except TooManyFieldsError as error:
            raise ApiError(ErrorCode.TELEMETRY_TOO_LARGE, str(error)) from None
        except OtlpError as error:
            raise ApiError(ErrorCode.INVALID_RECORD, f"no metrics in OTLP: {error}") from None
        return content

    async def _decompress(self, compression: CompressionType, stored: bytes) -> bytes:
        limit_bytes = MAX_EXPANSION * self._max_bytes
        max_parts = max(MAX_PARTS, -(-self._max_bytes // GZIP_PART_BYTES))
        decompressed = partial(decompress, compression, stored)
        try:
            with suppress(StreamTooLargeError):
                small_bytes = min(SMALL_BYTES, limit_bytes)
                return decompressed(max_bytes=small_bytes, max_parts=MAX_SMALL_PARTS)
            return await self._disk.run(decompressed, max_bytes=limit_bytes, max_parts=max_parts)
        except StreamTooLargeError as error:
            raise ApiError(ErrorCode.TELEMETRY_TOO_LARGE, str(error)) from None
        except DecompressionError as error:
            raise ApiError(ErrorCode.INVALID_RECORD, str(error)) from None


async def _in_slices(steps: Iterator[Point | None], add: Callable[[Point], object]) -> None:
    slice_ends_s = time.monotonic() + SLICE_S
    for point in steps:
        if point is not None:
            add(point)
        if time.monotonic() > slice_ends_s:
            await asyncio.sleep(0)
            slice_ends_s = time.monotonic() + SLICE_S
