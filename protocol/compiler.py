"""Makes, from a message's declaration, the readers and the writer of one version.

They are generated Python source, made at first use: runs of fixed-size fields become one `struct`
call, nothing is decided per field at run time, and versions cost nothing.

There are two readers. The quick one (quick_reader_source.py) is for good messages of ordinary size.
Where it stumbles, the careful one (reader_source.py) reads from the start: it trusts no length, for
slices and counts are held against the bytes that are left, and it alone says what is wrong. It does
no bookkeeping for that. The traceback says which line of the generated source it was in, the source
which field that line reads, and the frame's `p` at which byte: the good case pays nothing for the
clear error of the bad one.
"""

import struct
from collections.abc import Callable
from typing import Any

from .declaration import carries_records
from .quick_reader_source import QuickReaderSource
from .quick_writer_source import QuickWriterSource
from .reader_source import ReaderSource
from .schema import DecodeError, EncodeError, Message, Splices
from .source import Source

READ_ERRORS = (IndexError, struct.error, ValueError)
WRITE_ERRORS = (EncodeError, struct.error, TypeError, ValueError, AttributeError)

# Large records, and what was written between them.
Pieces = list[bytearray | memoryview | bytes]


class Codec:
    """The readers and the writer of one version of one message, each compiled at first use."""

    __slots__ = (
        "_lends_records",
        "_message",
        "_quick_read",
        "_read",
        "_reader",
        "_write",
        "_writer",
        "name",
        "version",
    )

    def __init__(self, message: type[Message], version: int) -> None:
        self.name = message.__name__
        self.version = version
        self._message = message
        self._reader: Source | None = None
        self._writer: Source | None = None
        self._lends_records = carries_records(message)
        self._quick_read: Callable[..., tuple[Message, int]] = self._compile_quick_reader
        self._read: Callable[..., tuple[Message, int]] = self._compile_reader
        self._write: Callable[..., None] = self._compile_writer

    def decode(self, data: bytes | memoryview, position: int = 0) -> tuple[Any, int]:
        """The message at `position` of `data`, and the position behind it.

        Raises DecodeError that names message, version, field and byte.
        """
        try:
            return self._quick_read(data, position)
        except READ_ERRORS:
            pass  # the careful reader says what is wrong, or reads what is only out of the ordinary
        try:
            return self._read(data, position)
        except READ_ERRORS as error:
            raise DecodeError(self._explain_read(error)) from None

    def write(self, message: Message, out: bytearray, splices: Splices | None) -> None:
        """Append the message to `out`; records in files are left out, and noted in `splices`.

        Raises EncodeError, which names message, version and field; `out` is then of no use.
        """
        try:
            self._write(message, out, splices, None)
        except WRITE_ERRORS as error:
            raise EncodeError(self._explain_write(error)) from error

    def encode(self, message: Message) -> bytes | bytearray:
        """The message's bytes. Raises EncodeError; records in files cannot be written so."""
        out = bytearray()
        pieces: Pieces | None = [] if self._lends_records else None
        try:
            self._write(message, out, None, pieces)
        except WRITE_ERRORS as error:
            raise EncodeError(self._explain_write(error)) from error
        return out if pieces is None else b"".join(pieces)

    def quick_reader_source(self) -> str:
        """The generated quick reader, to look at."""
        return QuickReaderSource(self._message, self.version).text

    def reader_source(self) -> str:
        """The generated reader, to look at."""
        return ReaderSource(self._message, self.version).text

    def writer_source(self) -> str:
        """The generated writer, to look at."""
        return QuickWriterSource(self._message, self.version).text

    def _compile_quick_reader(self, *arguments: Any) -> tuple[Message, int]:
        self._quick_read = QuickReaderSource(self._message, self.version).compiled("read")
        made: tuple[Message, int] = self._quick_read(*arguments)
        return made

    def _compile_reader(self, *arguments: Any) -> tuple[Message, int]:
        self._reader = ReaderSource(self._message, self.version)
        self._read = self._reader.compiled("read")
        made: tuple[Message, int] = self._read(*arguments)
        return made

    def _compile_writer(self, *arguments: Any) -> None:
        self._writer = QuickWriterSource(self._message, self.version)
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
