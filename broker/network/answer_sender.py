"""Sends the answers of one connection.

The answers to all requests of one read are sent together, by one system call (`add`, `flush`). They
are sent earlier if the next request waits, or is answered with slices of files, or closes the
connection.

Answers are written to the socket directly (output.py), because the transport would copy bytes. An
answer is a list of pieces: bytes and slices of log files. A slice is sent as the socket takes it,
so a stalled consumer costs no memory; small slices are copied into the answer, which is then sent
by one call. Pages that are not in the page cache are read by a disk thread first, because the loop
must not wait for a disk. The first byte of an answer promises its length: if a slice can no longer
be read, the connection has to be cut.

A client that reads as fast as the broker sends would keep the loop for the whole answer. So one
turn sends for about SEND_S, to all connections together, and the others wait in a TurnQueue.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from time import monotonic
from typing import Protocol, cast

from msgspec import Struct

from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.broker.turns.turn_queue import TurnQueue
from odradek.broker.turns.turns import SEND_S
from odradek.protocol.schema import Splices
from odradek.storage.files import Files, OpenFile
from odradek.storage.log import RecordsSlice

from .output import Output, queued_bytes

# Answers that wait for those of the same read are sent when they have this size.
ANSWERS_BYTES = 64 * 1024
# How much of a file is checked for cached pages, and sent, at once.
FILE_CHUNK_BYTES = 1024 * 1024
# How long checked pages count as cached.
CHECKED_MS = 100
# Slices of at most this many bytes in all are copied into the answer: one system call sends them.
COPIED_BYTES = 32 * 1024
# At most this many slices of an answer are made pieces at once.
PIECED_SLICES = 64


class _UnsentSlice:
    """The part of a slice of a log file that is still to be sent.

    The pages before `cached_end` were in the page cache at `checked_ms`.
    """

    __slots__ = ("cached_end", "checked_ms", "end", "file", "position")

    def __init__(self, records: RecordsSlice) -> None:
        self.file = records.file
        self.position = self.cached_end = records.position
        self.end = records.position + records.size_bytes
        self.checked_ms = 0


class _UnsentRest:
    """The rest of an answer with slices, of which no pieces have been made yet."""

    __slots__ = ("_head", "_position", "_slice_count", "_splices")

    def __init__(self, head: bytearray, splices: Splices) -> None:
        self._head = memoryview(head)
        self._splices = splices
        self._position = 0  # in the head
        self._slice_count = 0

    def pieces(self) -> list[Piece]:
        """The next pieces, which take its place; the last one first."""
        pieces: list[Piece] = []
        count, position = self._slice_count, self._position
        for end, records in self._splices[count : count + PIECED_SLICES]:
            pieces.append(self._head[position:end])
            pieces.append(_UnsentSlice(cast(RecordsSlice, records)))
            position = end
        self._slice_count, self._position = count + PIECED_SLICES, position
        if self._slice_count < len(self._splices):
            pieces.append(self)
        elif position < len(self._head):
            pieces.append(self._head[position:])
        pieces.reverse()
        return pieces


Piece = memoryview | _UnsentSlice | _UnsentRest


class SenderSupport(Struct, frozen=True, kw_only=True):
    """What the senders of all connections share. `timer_ms` is a clock that never jumps."""

    loop: asyncio.AbstractEventLoop
    timer_ms: Callable[[], int]
    send_turns: TurnQueue
    files: Files
    disk: DiskExecutor


class SenderOwner(Protocol):
    """The connection."""

    def on_blocked(self) -> None:
        """Called when the socket has not taken a whole answer. What is added later follows it."""

    def on_progress(self) -> None:
        """Called when the socket takes bytes again."""

    def on_sent(self) -> None:
        """Called when the socket has taken all of what was blocked."""

    def on_broken(self, error: BaseException) -> None:
        """Called when no more can be sent: the client is gone, or a file cannot be read."""


class AnswerSender:
    """The answers that were not sent yet, and the socket that takes them from `open` to `close`.

    `is_watching`: whether it waits until the client has read more.
    """

    __slots__ = (
        "_added",
        "_added_bytes",
        "_in_queue",
        "_output",
        "_owner",
        "_queued_bytes",
        "_support",
        "_unsent",
        "is_watching",
    )

    def __init__(self, support: SenderSupport) -> None:
        self.is_watching = False
        self._support = support
        self._output: Output | None = None  # until it is open and when it is closed, as the owner
        self._owner: SenderOwner | None = None
        self._added: list[bytes | bytearray] = []  # to the requests of the current read
        self._added_bytes = 0
        self._unsent: list[Piece] = []  # of the answer, the last piece first
        self._in_queue = False
        self._queued_bytes = 0  # in the socket's buffer at the last `has_taken_bytes`

    def open(self, output: Output, owner: SenderOwner) -> None:
        """Send to the output, and call the owner."""
        self._output = output
        self._owner = owner

    # -- answers ----------------------------------------------------------------------------------

    def add(self, answer: bytes | bytearray) -> None:
        """Send an answer without file slices at the next `flush`, with those before it."""
        self._added.append(answer)
        self._added_bytes += len(answer)
        if self._added_bytes >= ANSWERS_BYTES:
            self.flush()

    def add_spliced(self, head: bytearray, splices: Splices) -> None:
        """Send an answer with file slices: at the next `flush` if they are small, or now."""
        whole = self._with_slices(head, splices)
        if whole is not None:
            self.add(whole)
            return
        self.flush()
        if self._output is not None:  # the client may have gone while the request waited
            self._send(_UnsentRest(head, splices).pieces())

    def flush(self) -> None:
        """Send the answers that were added: one system call."""
        added = self._added
        if not added or self._output is None:
            return
        answer = added[0] if len(added) == 1 else b"".join(added)
        self._added, self._added_bytes = [], 0
        try:
            sent = 0 if self._unsent else self._output.send(answer)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self._break(error)
            return
        if sent < len(answer):
            self._send([memoryview(answer)[sent:]])

    def close(self) -> None:
        """Drop what is unsent, and close the output."""
        self._watch(False)
        if self._output is not None:
            self._output.close()
        self._output = None
        self._owner = None  # they hold each other: else only the collector would free them
        self._added, self._unsent = [], []

    @property
    def wire_bytes(self) -> tuple[int, int] | None:
        """The bytes that have come and gone through the output's socket, see `wire_bytes_of`."""
        return None if self._output is None else self._output.wire_bytes()

    def has_taken_bytes(self) -> bool:
        """Whether the client has received bytes of the answer since the last call.

        The event loop does not show this: it reports the socket as writable only when much of its
        buffer is free.
        """
        assert self._output is not None
        before, self._queued_bytes = self._queued_bytes, queued_bytes(self._output.fileno())
        return self._queued_bytes < before

    def _with_slices(self, head: bytearray, splices: Splices) -> bytes | None:
        """The answer with its slices, if they are small. None if they are not, or not cached."""
        if sum([records.size_bytes for _, records in splices]) > COPIED_BYTES:
            return None
        view = memoryview(head)
        parts: list[bytes | memoryview] = []
        position = 0
        for end, records in splices:
            piece = cast(RecordsSlice, records)
            size = piece.size_bytes
            try:
                data = self._support.files.pread_cached(piece.file, size, piece.position)
            except OSError:
                return None  # sending the file reports it
            if data is None or len(data) < size:
                return None
            parts += (view[position:end], data)
            position = end
        parts.append(view[position:])
        return b"".join(parts)

    # -- pieces -----------------------------------------------------------------------------------

    def _send(self, pieces: list[Piece]) -> None:
        """Send pieces, the last one first, after those that the socket has not taken yet."""
        if self._unsent:
            self._unsent = pieces + self._unsent  # the end of the list is sent first
            return
        self._unsent = pieces
        if not self._send_in_turn() and self._owner is not None:
            self._owner.on_blocked()

    def _send_in_turn(self) -> bool:
        """Send, if this turn has time for it. Returns whether all was sent."""
        if self._support.send_turns.has_time():
            return self._push()
        self._wait_for_turn()
        return False

    def _wait_for_turn(self) -> None:
        self._watch(False)
        if not self._in_queue:
            self._in_queue = True
            self._support.send_turns.wait(self._take_turn)

    def _take_turn(self) -> None:
        self._in_queue = False
        if self._owner is not None and self._push():
            self._all_sent()

    def _push(self) -> bool:
        """Send as much as the socket takes in SEND_S. Returns whether all was sent."""
        assert self._output is not None
        unsent = self._unsent
        until_s = monotonic() + SEND_S
        try:
            while unsent:
                piece = unsent[-1]
                if isinstance(piece, _UnsentSlice):
                    if not self._push_file(piece, until_s):
                        return False
                elif isinstance(piece, _UnsentRest):
                    unsent[-1:] = piece.pieces()
                    continue
                else:
                    flags = socket.MSG_MORE if len(unsent) > 1 else 0
                    sent = self._output.send(piece, flags)
                    if sent < len(piece):
                        unsent[-1] = piece[sent:]
                        continue
                unsent.pop()
                if unsent and monotonic() >= until_s:
                    self._wait_for_turn()
                    return False
        except BlockingIOError:
            self._watch(True)
            return False
        except OSError as error:
            self._break(error)
            return False
        return True

    def _push_file(self, unsent: _UnsentSlice, until_s: float) -> bool:
        """Send a slice of a file. Returns False if it must wait: for the disk, or for a turn.

        Raises BlockingIOError if the socket takes no more now, and OSError.
        """
        assert self._output is not None
        while (left := unsent.end - unsent.position) > 0:
            if not self._has_cached_pages(unsent):
                self._read_pages(unsent.file, min(left, FILE_CHUNK_BYTES), unsent.position)
                return False
            count = unsent.cached_end - unsent.position
            sent = self._output.send_file(unsent.file, unsent.position, count)
            if sent == 0:
                raise OSError(f"{unsent.file.path} ends before byte {unsent.position}")
            unsent.position += sent
            if sent < count:
                raise BlockingIOError
            if unsent.position < unsent.end and monotonic() >= until_s:
                self._wait_for_turn()
                return False
        return True

    def _has_cached_pages(self, unsent: _UnsentSlice) -> bool:
        """Whether the next pages of a slice are in the page cache, as a check has shown."""
        now_ms = self._support.timer_ms()
        if unsent.position < unsent.cached_end and now_ms - unsent.checked_ms <= CHECKED_MS:
            return True
        chunk = min(unsent.end - unsent.position, FILE_CHUNK_BYTES)
        if not self._support.files.is_cached(unsent.file, chunk, unsent.position):
            return False
        unsent.cached_end = unsent.position + chunk
        unsent.checked_ms = now_ms
        return True

    def _read_pages(self, file: OpenFile, size: int, position: int) -> None:
        """Have a disk thread read pages into the page cache, and then go on sending."""
        self._watch(False)
        reading = self._support.disk.run(self._support.files.read_ahead, file, size, position)
        reading.add_done_callback(self._pages_read)

    def _pages_read(self, done: asyncio.Future[None]) -> None:
        if done.cancelled():
            return
        error = done.exception()
        if error is not None:
            self._break(error)
            return
        self._writable()

    # -- the socket -------------------------------------------------------------------------------

    def _writable(self) -> None:
        if self._owner is None:
            return
        self._owner.on_progress()
        if self._send_in_turn():
            self._all_sent()

    def _all_sent(self) -> None:
        self._watch(False)
        if self._owner is not None:
            self._owner.on_sent()

    def _break(self, error: BaseException) -> None:
        if self._owner is not None:
            self._owner.on_broken(error)

    def _watch(self, watch: bool) -> None:
        """Start or stop waiting for the socket to take bytes."""
        if watch == self.is_watching or self._output is None:
            return
        self.is_watching = watch
        if watch:
            self._support.loop.add_writer(self._output.fileno(), self._writable)
        else:
            self._support.loop.remove_writer(self._output.fileno())
