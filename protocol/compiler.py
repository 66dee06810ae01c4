"""Makes, from a message's declaration, the reader and the writer of one version.

Both are generated Python source, made at first use: runs of fixed-size fields become one `struct`
call, nothing is decided per field at run time, and versions cost nothing (reader_source.py and
writer_source.py write it). A reader trusts no length: slices and counts are held against the bytes
that are left, so a hostile count allocates nothing.

There is no bookkeeping for errors on the way. When a reader fails, the traceback says which line of
the generated source it was in, the source which field that line reads, and the frame's `p` at which
byte: the good case pays nothing for the clear error of the bad one.
"""

import struct
from collections.abc import Callable
from typing import Any

from .reader_source import ReaderSource
from .schema import DecodeError, EncodeError, Message, Splices
from .source import Source
from .writer_source import WriterSource


class Codec:
    """The reader and the writer of one version of one message, each compiled at first use."""

    __slots__ = ("_message", "_read", "_reader", "_write", "_writer", "name", "version")

    def __init__(self, message: type[Message], version: int) -> None:
        self.name = message.__name__
        self.version = version
        self._message = message
        self._reader: Source | None = None
        self._writer: Source | None = None
        self._read: Callable[..., tuple[Message, int]] = self._compile_reader
        self._write: Callable[..., None] = self._compile_writer

    def decode(self, data: bytes | memoryview, position: int = 0) -> tuple[Any, int]:
        """The message at `position` of `data`, and the position behind it.

        Raises DecodeError that names message, version, field and byte.
        """
        if type(data) is not memoryview:
            data = memoryview(data)
        try:
            return self._read(data, position, len(data))
        except (IndexError, struct.error, ValueError) as error:
            raise DecodeError(self._explain_read(error)) from None

    def write(self, message: Message, out: bytearray, splices: Splices | None) -> None:
        """Append the message to `out`; records in files are left out, and noted in `splices`.

        Raises EncodeError, which names message, version and field; `out` is then of no use.
        """
        try:
            self._write(message, out, splices)
        except (EncodeError, struct.error, TypeError, ValueError, AttributeError) as error:
            raise EncodeError(self._explain_write(error)) from error

    def reader_source(self) -> str:
        """The generated reader, to look at."""
        return ReaderSource(self._message, self.version).text

    def writer_source(self) -> str:
        """The generated writer, to look at."""
        return WriterSource(self._message, self.version).text

    def _compile_reader(self, *arguments: Any) -> tuple[Message, int]:
        self._reader = ReaderSource(self._message, self.version)
        self._read = self._reader.compiled("read")
        made: tuple[Message, int] = self._read(*arguments)
        return made

    def _compile_writer(self, *arguments: Any) -> None:
        self._writer = WriterSource(self._message, self.version)
        self._write = self._writer.compiled("write")
        self._write(*arguments)

    def _explain_read(self, error: Exception) -> str:
        assert self._reader is not None
        failure = self._reader.failure(error.__traceback__)
        ended = isinstance(error, (IndexError, struct.error))
        reason = "the data ends inside it" if ended else str(error)
        place = f"field {failure.path} at byte {failure.position}"
        return f"{self.name} v{self.version}: {place}: {reason}"

    def _explain_write(self, error: Exception) -> str:
        if self._writer is None:  # it did not even compile
            return f"{self.name} v{self.version}: {error}"
        failure = self._writer.failure(error.__traceback__)
        return f"{self.name} v{self.version}: field {failure.path}: {error}"
