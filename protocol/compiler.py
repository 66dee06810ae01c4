"""Compiles the declaration of a message into the readers and the writer of one version.

They are generated as Python source at first use. Neighbouring fields of fixed size become one
`struct` call. Versions are resolved when the source is generated, so they cost nothing at run time.

There are two readers. The quick one (quick_reader_source.py) is for valid messages of ordinary
size. If it fails, the careful one (reader_source.py) reads the message again from the start. It
trusts no length: it compares each length and count with the bytes that are left. Only the careful
reader makes error messages.

A long message takes long. `decode_small` reads a message whose arrays have few items, and refuses
others. `decode_in_steps` and `write_in_steps` call a function between two items of an array, so
that an event loop can do other work meanwhile.

For these messages nothing is recorded while reading. The traceback gives the line of the generated
source, the generator knows which field that line reads, and the variable `p` in the frame is the
position. So a valid message pays nothing for good error messages.
"""

import struct
from collections.abc import Callable
from typing import Any

from .declaration import carries_records
from .primitives import Step
from .quick_reader_source import QuickReaderSource
from .reader_source import ReaderSource
from .schema import DecodeError, EncodeError, Message, Splices
from .source import Source
from .writer_source import WriterSource

READ_ERRORS = (IndexError, struct.error, ValueError)
WRITE_ERRORS = (EncodeError, struct.error, TypeError, ValueError, AttributeError)

# A small message has at most this many items in its arrays: reading it takes a few hundred
# microseconds at most.
MAX_SMALL_ITEMS = 64

# The parts of an encoded message: large records, and the bytes between them.
Pieces = list[bytearray | memoryview | bytes]


class NotSmallError(Exception):
    """A message has many items, or the quick reader cannot read it."""


class Codec:
    """The readers and writers of one version of a message, each compiled at first use."""

    __slots__ = (
        "_borrows_records",
        "_message",
        "_quick_read",
        "_read",
        "_read_in_steps",
        "_read_small",
        "_reader",
        "_write",
        "_write_in_steps",
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
        self._borrows_records = carries_records(message)
        self._quick_read: Callable[..., tuple[Message, int]] = self._compile_quick_reader
        self._read: Callable[..., tuple[Message, int]] = self._compile_reader
        self._read_small: Callable[..., tuple[Message, int]] = self._compile_small_reader
        self._read_in_steps: tuple[Source, Callable[..., tuple[Message, int]]] | None = None
        self._write: Callable[..., None] = self._compile_writer
        self._write_in_steps: tuple[Source, Callable[..., None]] | None = None

    def compile_decode(self) -> None:
        """Compile what the first call of `decode` would, if the message is an ordinary one."""
        self._quick_read = QuickReaderSource(self._message, self.version).compiled("read")

    def compile_write(self) -> None:
        """Compile what the first call of `write` or `encode` would."""
        self._writer = WriterSource(self._message, self.version)
        self._write = self._writer.compiled("write")

    def decode(self, data: bytes | memoryview, position: int = 0) -> tuple[Any, int]:
        """Read the message at `position`; returns it and the position after it.

        Raises DecodeError, which names message, version, field and byte.
        """
        try:
            return self._quick_read(data, position)
        except READ_ERRORS:
            pass  # the careful reader reads unusual messages, and makes the error for bad ones
        try:
            return self._read(data, position)
        except READ_ERRORS as error:
            assert self._reader is not None
            raise DecodeError(self._explain_read(self._reader, error)) from None

    def decode_small(
        self, data: memoryview, position: int, max_items: int = MAX_SMALL_ITEMS
    ) -> tuple[Any, int]:
        """Read a valid message with at most this many items in its arrays, as `decode`.

        Raises NotSmallError for any other.
        """
        try:
            return self._read_small(data, position, max_items)
        except READ_ERRORS:
            raise NotSmallError from None

    def decode_in_steps(self, data: memoryview, position: int, step: Step) -> tuple[Any, int]:
        """Read the message as `decode`, and call `step` before each item of an array.

        Raises DecodeError, and what `step` raises.
        """
        if self._read_in_steps is None:
            made = ReaderSource(self._message, self.version, in_steps=True)
            self._read_in_steps = made, made.compiled("read")
        source, read = self._read_in_steps
        try:
            return read(data, position, step)
        except READ_ERRORS as error:
            raise DecodeError(self._explain_read(source, error)) from None

    def write(self, message: Message, out: bytearray, splices: Splices | None) -> None:
        """Append the message to `out`. Records in files are not copied but listed in `splices`.

        Raises EncodeError, which names message, version and field. `out` is then incomplete.
        """
        try:
            self._write(message, out, splices, None)
        except WRITE_ERRORS as error:
            raise EncodeError(self._explain_write(self._writer, error)) from error

    def write_in_steps(
        self, message: Message, out: bytearray, splices: Splices, step: Step
    ) -> None:
        """Append the message as `write`, and call `step` before each item of an array.

        Raises EncodeError, and what `step` raises.
        """
        if self._write_in_steps is None:
            made = WriterSource(self._message, self.version, in_steps=True)
            self._write_in_steps = made, made.compiled("write")
        source, write = self._write_in_steps
        try:
            write(message, out, splices, step)
        except WRITE_ERRORS as error:
            raise EncodeError(self._explain_write(source, error)) from error

    def encode(self, message: Message) -> bytes | bytearray:
        """The message's bytes. Raises EncodeError, also for a message with records in files."""
        out = bytearray()
        pieces: Pieces | None = [] if self._borrows_records else None
        try:
            self._write(message, out, None, pieces)
        except WRITE_ERRORS as error:
            raise EncodeError(self._explain_write(self._writer, error)) from error
        return out if pieces is None else b"".join(pieces)

    def quick_reader_source(self) -> str:
        """The source of the quick reader, for debugging."""
        return QuickReaderSource(self._message, self.version).text

    def reader_source(self) -> str:
        """The source of the careful reader, for debugging."""
        return ReaderSource(self._message, self.version).text

    def writer_source(self) -> str:
        """The source of the writer, for debugging."""
        return WriterSource(self._message, self.version).text

    def _compile_quick_reader(self, *arguments: Any) -> tuple[Message, int]:
        self.compile_decode()
        made: tuple[Message, int] = self._quick_read(*arguments)
        return made

    def _compile_small_reader(self, *arguments: Any) -> tuple[Message, int]:
        source = QuickReaderSource(self._message, self.version, is_limited=True)
        self._read_small = source.compiled("read")
        made: tuple[Message, int] = self._read_small(*arguments)
        return made

    def _compile_reader(self, *arguments: Any) -> tuple[Message, int]:
        self._reader = ReaderSource(self._message, self.version)
        self._read = self._reader.compiled("read")
        made: tuple[Message, int] = self._read(*arguments)
        return made

    def _compile_writer(self, *arguments: Any) -> None:
        self.compile_write()
        self._write(*arguments)

    def _explain_read(self, reader: Source, error: Exception) -> str:
        failure = reader.failure(error.__traceback__)
        ended = isinstance(error, (IndexError, struct.error))
        reason = "the data ends inside it" if ended else str(error)
        place = f"field {failure.path} at byte {failure.position}"
        return f"{self.name} v{self.version}: {place}: {reason}"

    def _explain_write(self, writer: Source | None, error: Exception) -> str:
        if writer is None:  # it could not be compiled
            return f"{self.name} v{self.version}: {error}"
        failure = writer.failure(error.__traceback__)
        return f"{self.name} v{self.version}: field {failure.path}: {error}"
