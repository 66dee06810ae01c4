"""Standard input, output and error of a command, also where they are closed, full, or not read.

If a descriptor is closed, Python has no stream for it, and the next file that is opened gets its
number. So `open_closed_streams` opens the null device in its place, in the wrong direction: reads
of the input and writes to the output fail, as on a closed descriptor.

A failed write to standard output raises OutputError, which ends the command, and `main` prints one
line. If the reader of a pipe ends, as in `odradek … | head`, the command ends without a message.
Commands with more to do than to print go on (`reader_may_end`). What cannot be written to standard
error is dropped.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

STDIN, STDOUT, STDERR = range(3)
EXIT_FAILED = 1


class OutputError(Exception):
    """Standard output cannot be written. `exit_code` is that of the command.

    The message is empty if the reader of the output has ended.
    """

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class _Stream(io.FileIO):
    """Standard output, or standard error. `may_fail`: what cannot be written is dropped."""

    may_fail = False

    def write(self, data: ReadableBuffer) -> int:
        """Write bytes. Raises OutputError unless the stream may fail."""
        try:
            return super().write(data)
        except OSError as error:
            _discard(self.fileno())
            if self.may_fail or (isinstance(error, BrokenPipeError) and _Reader.may_end):
                return memoryview(data).nbytes
            if isinstance(error, BrokenPipeError):
                raise OutputError("", 0) from None
            text = f"standard output cannot be written: {error.strerror}"
            raise OutputError(text, EXIT_FAILED) from None


class _ErrorStream(_Stream):
    may_fail = True


class _Reader:
    """Whether the reader of the output may end before the command does: see `reader_may_end`."""

    may_end = False


@contextmanager
def reader_may_end() -> Iterator[None]:
    """Inside, drop the output if its reader has ended, and go on.

    It is for commands whose exit code also tells their result, and for jobs.
    """
    before, _Reader.may_end = _Reader.may_end, True
    try:
        yield
        sys.stdout.flush()
    finally:
        _Reader.may_end = before


def check_reader() -> None:
    """Raise OutputError if the output is a pipe whose reader has ended.

    A command that waits for something to write would notice it only at its next write.
    """
    output = select.poll()
    output.register(STDOUT, 0)
    if any(event & select.POLLERR for _, event in output.poll(0)):
        raise OutputError("", 0)


def json_text(value: object, *, indent: int | None = None) -> str:
    """JSON for standard output: in ASCII unless that is UTF-8.

    Other encodings lack characters, and a ? in their place would be another value.
    """
    encoding = sys.stdout.encoding or "utf-8"  # a StringIO has none
    return json.dumps(value, ensure_ascii=codecs.lookup(encoding).name != "utf-8", indent=indent)


def open_closed_streams() -> None:
    """Open the descriptors that are closed, so that no other file gets their numbers."""
    # What is written to standard error is dropped, so its direction is the right one.
    for descriptor, flags in ((STDIN, os.O_WRONLY), (STDOUT, os.O_RDONLY), (STDERR, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, flags)  # gets the lowest free number, which is `descriptor`
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(STDIN, closefd=False)))


def watch_streams() -> None:
    """Replace sys.stdout and sys.stderr by streams that fail as the module docstring says."""
    # As in Java: a ? is written for a character that the locale's encoding does not have.
    sys.stdout = _text(sys.stdout, _Stream(STDOUT, "w", closefd=False), "replace")
    sys.stderr = _text(sys.stderr, _ErrorStream(STDERR, "w", closefd=False), "backslashreplace")


def _text(before: TextIO | None, raw: _Stream, errors: str) -> TextIO:
    is_terminal = raw.isatty()
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=before.encoding if before else "utf-8",
        errors=errors if before is None or before.errors in (None, "strict") else before.errors,
        line_buffering=is_terminal or isinstance(raw, _ErrorStream),
    )


def _discard(descriptor: int) -> None:
    """Drop what is written to the descriptor from now on, also by Python's own flush at the end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)
