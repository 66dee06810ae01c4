"""What a module of a codec offers. Errors are CodecError and its subclasses."""

from collections.abc import Iterable, Iterator
from typing import Protocol

from odradek.protocol.zstd_frames import Frame

Buffer = bytes | bytearray | memoryview


class Lz4Library(Protocol):
    """Reads and writes LZ4 frames."""

    def compress(self, data: Buffer, level: int | None) -> bytes:
        """Write one frame of independent blocks of 64 KiB. None: the fast compressor."""

    def pieces(self, view: memoryview, max_blocks: int) -> Iterator[bytes]:
        """Yield the content of one frame in pieces of at most 4 MiB.

        A library that is slow for many empty blocks raises TooManyBlocksError.
        """


class ZstdLibrary(Protocol):
    """Reads and writes zstd frames."""

    def compress(self, data: Buffer, level: int) -> bytes:
        """Write one frame."""

    def content(self, view: memoryview, frames: Iterable[Frame], room: int) -> bytes:
        """Return the content of all frames of `view`, or slightly more than `room` bytes of it.

        Raises ContentTooLargeError if the library cannot return a part of a content. Errors of
        `frames` pass.
        """

    def pieces(self, stored: memoryview, frame: Frame) -> Iterator[bytes]:
        """Yield the content of one frame in pieces."""
