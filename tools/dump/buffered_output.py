"""Buffers output text: a dump makes millions of small writes.

sys.stdout has a buffer, too, but of only 8 KiB: without this class, millions of lines take twice as
long to write.
"""

from typing import TextIO


class BufferedOutput:
    """Collects text and writes it to the stream in pieces of about 256 Ki characters."""

    _CHARACTERS = 1 << 18

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._parts: list[str] = []
        self._size = 0

    def write(self, text: str) -> None:
        """Add text; flushes when the buffer is full."""
        self._parts.append(text)
        self._size += len(text)
        if self._size >= self._CHARACTERS:
            self.flush()

    def flush(self) -> None:
        """Write everything in the buffer, and flush the stream."""
        self._stream.write("".join(self._parts))
        self._stream.flush()
        self._parts.clear()
        self._size = 0
