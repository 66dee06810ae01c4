"""One client connection: frames in, answers out, in order.

Requests are cut out of the receive buffer in place. They are served one after another, as Kafka
does by muting channels. While a request waits (a Fetch below min_bytes, a JoinGroup) or its answer
is still being sent, the next requests stay in a buffer. The connection goes on reading up to 16 KiB
meanwhile, because a paused uvloop connection does not notice that the client has closed. It reads
no more, because what is left in a full buffer is moved to its front after each answer. When the
client closes, the work that its request waits for is cancelled.

All connections are read into one shared buffer, because a read usually brings whole requests, which
are served before the next connection is read. Only the rest moves to the connection's own buffer,
which is used until it is empty again. So thousands of clients that rarely send a request take no
buffer memory. A request's bytes are therefore dead at the first await: the next read, of
any connection, overwrites them. An own buffer doubles as bytes arrive, whatever a length prefix
announces; one of up to 2 MiB is kept until large frames stop coming. A larger frame has a buffer
that ends with it, whose pages the system provides as bytes arrive. frame_memory.py limits what
these hold together.

The event loop reads a socket up to 32 times in a row while bytes are there: from a client that
sends large requests faster than they are served, many megabytes. So after so many bytes reading
pauses for one turn of the loop, in which the others are served. One read may bring thousands of
small requests: those that are not served in SERVE_S wait for a later turn (LargeTurns).

The answers to all requests of one read are sent together, by one system call. They are sent earlier
if the next request waits, or is answered with slices of files, or closes the connection.

Answers are written to the socket directly (output.py), because the transport would copy bytes. An
answer is a list of pieces: bytes and slices of log files. A slice is sent as the socket takes it,
so a stalled consumer costs no memory; small slices are copied into the answer, which is then sent
by one call. A client that reads as fast as the broker sends would keep the loop for the whole
answer, so one turn sends for about PUSH_S. Pages that are not in the page cache are read by a disk
thread first, because the loop must not wait for a disk. The first byte of an answer promises its
length: if a slice can no longer be read, the connection has to be cut.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import mmap
import socket
import struct
import sys
import termios
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import cast

from msgspec import Struct

from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.broker.quotas.request_meter import MeteredElsewhere, RequestMeter
from odradek.broker.requests.dispatch import Answer, Dispatcher, RefusedRequestError, SlicedAnswer
from odradek.broker.security.session import Session
from odradek.broker.turns.group_turns import GROUP_APIS, GroupTurns
from odradek.broker.turns.large_turns import LARGE_BYTES, LargeTurns
from odradek.config.listeners import Listener
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.framing import FrameError, check_frame_size, describe_foreign_bytes
from odradek.protocol.schema import DecodeError, Splices
from odradek.storage.files import Files, OpenFile
from odradek.storage.log import RecordsSlice

from .frame_memory import NEVER_WAITS_BYTES, FrameMemory
from .listeners import UNKNOWN_ADDRESS, host_and_port
from .output import Output, PlainOutput

logger = logging.getLogger("odradek.connection")

# The size of the shared buffer.
SHARED_BYTES = 128 * 1024
# The smallest size of a connection's own buffer, and how much it holds while a request waits.
START_BYTES = 16 * 1024
# The smallest size of an own buffer that is made while a request waits.
WAITING_BYTES = 1024
# A connection lets the others go first after so many bytes of reads that brought at least
# START_BYTES.
TURN_BYTES = 512 * 1024
# A smaller frame is copied for a request that is served in slices: a new buffer would cost more.
LENT_BYTES = 1024 * 1024
# A large buffer is freed after this many frames in a row that needed at most a quarter of it.
SHRINK_AFTER_FRAMES = 64
# Answers that wait for those of the same read are sent when they have this size.
ANSWERS_BYTES = 64 * 1024
_SIZE = struct.Struct(">i")

# How much of a file is checked for cached pages, and sent, at once.
FILE_CHUNK_BYTES = 1024 * 1024
# How long checked pages count as cached.
CHECKED_MS = 100
# Slices of at most so many bytes in all are copied into the answer: one system call sends them.
COPIED_BYTES = 32 * 1024
# How long one turn of the event loop sends an answer.
PUSH_S = 0.001
# How long one turn of the event loop serves the requests of a read, not counting the first one.
SERVE_S = 0.001
# So many slices of an answer are made pieces at once.
PIECED_SLICES = 64


def new_buffer(size_bytes: int) -> memoryview:
    """A buffer. A large one takes memory only as it is written to, and gives all of it back."""
    if size_bytes <= NEVER_WAITS_BYTES:
        return memoryview(bytearray(size_bytes))
    pages = mmap.mmap(-1, size_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):  # receiving takes a third of the time
        with suppress(OSError):  # the system has none
            pages.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(pages)


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


class ConnectionSupport(Struct, frozen=True, kw_only=True):
    """What all connections of a server share.

    `opened` and `closed` are called when a connection is made and lost. `timer_ms` is a clock
    that never jumps. `receive_view` is the shared receive buffer.
    """

    loop: asyncio.AbstractEventLoop
    timer_ms: Callable[[], int]
    max_request_bytes: int
    dispatcher: Dispatcher
    frame_memory: FrameMemory
    group_turns: GroupTurns
    large_turns: LargeTurns
    files: Files
    disk: DiskExecutor
    receive_view: memoryview
    opened: Callable[[Connection], object]
    closed: Callable[[Connection], object]


class Connection(asyncio.BufferedProtocol):
    """The protocol object of one accepted socket.

    `open_output` gets the transport when the connection is made.
    """

    def __init__(
        self,
        support: ConnectionSupport,
        listener: Listener,
        open_output: Callable[[asyncio.BaseTransport], Output] = PlainOutput,
    ) -> None:
        self.session = Session(listener, UNKNOWN_ADDRESS)
        self.last_active_ms = support.timer_ms()
        self._support = support
        self._loop = support.loop
        self._transport: asyncio.Transport | None = None
        self._open_output = open_output
        self._socket: Output | None = None
        self._shared = support.receive_view
        self._view = self._shared
        self._start = 0  # index of the first byte that is not served yet
        self._end = 0  # index after the last byte that has arrived
        self._small_frames = 0
        self._turn_bytes = 0  # of large reads, since it has given way
        self._gives_way = False  # reads nothing for one turn of the loop
        self._waiting: asyncio.Future[object] | None = None
        self._is_held = False  # until its turn comes (`take_turn`), or its client is not throttled
        self._throttled: asyncio.TimerHandle | None = None
        self._answers: list[bytes | bytearray] = []  # to the requests of the current read
        self._answers_bytes = 0
        self._outgoing: list[Piece] = []  # unsent pieces of the answer, the last piece first
        self._paused = False
        self._watching = False  # whether it waits until the socket takes bytes
        self._queued_bytes = 0  # bytes in the socket's buffer at the last `note_reading`
        self._finishing = False
        self._closed_by_us = False
        self.waits_for_memory = False  # asked FrameMemory for a grant and is queued
        self._has_grant = False  # until a large frame is answered

    # -- the transport's calls --------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        try:
            self._socket = self._open_output(transport)
        except OSError as error:  # accepting it took the last descriptor
            logger.error("closed a new connection: %s", error.strerror)
            self._transport.abort()
            return
        peer = host_and_port(transport.get_extra_info("peername"))
        local_host, _ = host_and_port(transport.get_extra_info("sockname"))
        self.session = Session(
            self.session.listener, peer, local_host, self._support.max_request_bytes
        )
        self._support.opened(self)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 # asyncio's signature
        if self._end == 0:
            return self._view[:START_BYTES] if self.busy else self._view
        if self._end == len(self._view):
            self._make_room()
        if self.busy:
            return self._view[self._end : self._start + START_BYTES]
        return self._view[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        self._end += nbytes
        self.last_active_ms = self._support.timer_ms()
        self._serve()
        if nbytes >= START_BYTES:
            self._turn_bytes += nbytes
            if self._turn_bytes >= TURN_BYTES:
                self._give_way()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 # asyncio's signature
        if self._socket is None:  # it was never open
            self._support.closed(self)
            return
        partial = self.partial_frame
        if partial is not None and not self._closed_by_us:
            logger.warning("%s closed after %d of %d bytes of a request", self.session, *partial)
        if self._waiting is not None:
            self._waiting.cancel()
        if self._throttled is not None:
            self._throttled.cancel()
        self._watch(False)
        self._socket.close()
        self._answers, self._outgoing = [], []
        self._transport = None  # they hold each other: without the collector neither would be freed
        self._support.closed(self)

    # -- reading ----------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether a request waits or an answer is being sent: the next one must not start."""
        return self._waiting is not None or self._is_held or bool(self._outgoing)

    @property
    def is_unread(self) -> bool:
        """Whether an answer waits until the client has read more of it."""
        return self._watching

    def note_reading(self) -> None:
        """Set `last_active_ms` if the client has received bytes of the answer since the last call.

        The event loop does not show this: it reports the socket as writable only when much of its
        buffer is free.
        """
        assert self._socket is not None
        queued = bytearray(4)
        with suppress(OSError):  # the system does not have TIOCOUTQ
            fcntl.ioctl(self._socket, termios.TIOCOUTQ, queued)
        queued_bytes = int.from_bytes(queued, sys.byteorder)
        if queued_bytes < self._queued_bytes:
            self.last_active_ms = self._support.timer_ms()
        self._queued_bytes = queued_bytes

    @property
    def partial_frame(self) -> tuple[int, int] | None:
        """Bytes received and bytes announced of a partly received frame, or None without one."""
        have = self._end - self._start
        if self.busy or have < _SIZE.size:
            return None if self.busy or have == 0 else (have, _SIZE.size)
        return have, self._frame_bytes()

    @property
    def buffer_bytes(self) -> int:
        """The size of the connection's own buffer."""
        return 0 if self._view is self._shared else len(self._view)

    def _make_room(self) -> None:
        """Move the bytes that are not served yet to the front of the buffer."""
        have = self._end - self._start
        self._view[:have] = self._view[self._start : self._end]
        self._start, self._end = 0, have

    def _frame_bytes(self) -> int:
        """Size of the partly received frame, its length prefix included."""
        return _SIZE.size + int(_SIZE.unpack_from(self._view, self._start)[0])

    def _replace_buffer(self, size_bytes: int) -> None:
        have = self._end - self._start
        grown = new_buffer(size_bytes)
        grown[:have] = self._view[self._start : self._end]
        self._view = grown
        self._start, self._end = 0, have

    def _serve(self) -> None:
        """Serve the whole requests that have arrived, until one has to wait."""
        if self._finishing and not self.busy:
            self.close(None)
            return
        view, transport = self._view, self._transport
        until_s = 0.0  # set when the first request is served
        while self._end - self._start >= _SIZE.size and not self.busy:
            if transport is None or transport.is_closing():
                return
            start = self._start + _SIZE.size
            size = _SIZE.unpack_from(view, self._start)[0]
            if not 0 <= size <= self.session.max_request_bytes:
                self._refuse_frame(size)
                return
            end = start + size
            if end > self._end:
                break
            if until_s and monotonic() >= until_s:
                self._is_held = True
                self._support.large_turns.wait(self)
            elif size > 1 and view[start + 1] in GROUP_APIS and view[start] == 0:
                self._is_held = not self._support.group_turns.has_room_for(self)
            elif size >= LARGE_BYTES:
                self._is_held = not self._support.large_turns.has_room_for(self)
            if self._is_held:
                break
            self._start = end
            self._request(view[start:end])
            if not until_s and end < self._end:
                until_s = monotonic() + SERVE_S
            is_large = size + _SIZE.size > len(view) // 4
            self._small_frames = 0 if is_large else self._small_frames + 1
        if self._answers:
            self._send_answers()
        self._after_serving()

    def take_turn(self) -> None:
        """Serve the request that waited for a turn (GroupTurns, LargeTurns)."""
        self._is_held = False
        self._serve()

    def _throttle(self, meter: RequestMeter | MeteredElsewhere) -> None:
        """Serve no request for the time by which the client has exceeded a quota (KIP-219)."""
        meter.finish()
        if meter.throttle_ms and not self._finishing:
            self._is_held = True
            self._throttled = self._loop.call_later(meter.throttle_ms / 1000, self._unthrottle)

    def _unthrottle(self) -> None:
        self.last_active_ms = self._support.timer_ms()  # it could not send more before
        self.take_turn()

    def _after_serving(self) -> None:
        if self._start == self._end:
            self._start = self._end = 0
            if self._view is not self._shared and (
                not SHARED_BYTES < len(self._view) <= NEVER_WAITS_BYTES
                or self._small_frames >= SHRINK_AFTER_FRAMES
            ):
                self.shrink()
        elif self._view is self._shared:
            self._keep_rest()
        if self._has_grant and len(self._view) <= NEVER_WAITS_BYTES and not self.busy:
            self._has_grant = False
            self._support.frame_memory.release(self)
        have = self._end - self._start
        if self._paused or self._end == len(self._view) or have >= START_BYTES:
            self._pause_or_resume()

    def _keep_rest(self) -> None:
        """Move unserved bytes to an own buffer: one with little room while a request waits."""
        have = self._end - self._start
        if self.busy:
            size_bytes = max(have, min(max(2 * have, WAITING_BYTES), START_BYTES))
        elif have < START_BYTES:
            size_bytes = START_BYTES
        else:  # a part of a large frame
            size_bytes = min(2 * have, self._frame_bytes())
        self._replace_buffer(size_bytes)

    def shrink(self) -> None:
        """Free the connection's own buffer, if it is empty."""
        if self._start == self._end and self._view is not self._shared:
            self._small_frames = 0
            self._view = self._shared
            self._start = self._end = 0

    def _pause_or_resume(self) -> None:
        """Stop reading while it gives way, or the buffer is full and may not grow."""
        if self._transport is None or self._transport.is_closing():
            return
        full = self._start == 0 and self._end == len(self._view)
        if self.busy:
            full = full or self._end - self._start >= START_BYTES
        hold = self._gives_way or (full and not self._grow())
        if hold == self._paused:
            return
        self._paused = hold
        if hold:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _give_way(self) -> None:
        """Read nothing for one turn of the loop, in which others are served."""
        self._turn_bytes = 0
        self._gives_way = True
        self._pause_or_resume()
        self._loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        self._gives_way = False
        self._pause_or_resume()

    def _grow(self) -> bool:
        """Double the buffer, or make that of a large frame if the memory is granted."""
        if len(self._view) < START_BYTES:
            self._replace_buffer(START_BYTES)
            return True
        if self.busy:
            return False
        frame_bytes = self._frame_bytes()
        self.waits_for_memory = not self._support.frame_memory.try_grant(self, frame_bytes)
        if self.waits_for_memory:
            return False
        self._has_grant = frame_bytes > NEVER_WAITS_BYTES
        size_bytes = frame_bytes if self._has_grant else min(len(self._view) * 2, frame_bytes)
        self._replace_buffer(size_bytes)
        return True

    def on_memory_released(self) -> None:
        """Ask FrameMemory for memory again."""
        if self.waits_for_memory:
            self.last_active_ms = self._support.timer_ms()
            self._pause_or_resume()

    def _refuse_frame(self, size: int) -> None:
        first = bytes(self._view[self._start : min(self._end, self._start + 16)])
        guess = describe_foreign_bytes(first)
        try:
            check_frame_size(size, self.session.max_request_bytes)
        except FrameError as error:
            self.close(f"{error}; {guess}" if guess else str(error))

    # -- requests ---------------------------------------------------------------------------------

    def _request(self, frame: memoryview) -> None:
        try:
            answer = self._support.dispatcher.dispatch(self.session, frame)
            if answer is None:
                return
            if isinstance(answer, bytes):
                self._send_soon(answer)
                return
            if isinstance(answer, SlicedAnswer):
                answer.begin(self._lend_frame(frame))
            if answer.pending is not None:
                self._wait_for(answer, answer.pending)
                return
            if answer.response is not None:
                self._send_answer(answer)
            if answer.meter is not None:
                self._throttle(answer.meter)
        except Exception as error:  # noqa: BLE001 # the root of every request
            self._failed(error)

    def _lend_frame(self, frame: memoryview) -> memoryview:
        """The frame in memory that no read overwrites: a copy of it, or the whole buffer."""
        if self._view is self._shared or len(frame) < LENT_BYTES:
            return memoryview(bytearray(frame))  # Produce writes the offsets into it
        if self._start == self._end:
            self._view = self._shared
            self._start = self._end = 0
        else:
            self._replace_buffer(max(self._end - self._start, START_BYTES))
        return frame

    def _wait_for(self, answer: Answer, pending: Awaitable[object]) -> None:
        if isinstance(pending, asyncio.Future):
            future: asyncio.Future[object] = pending
        else:
            future = asyncio.ensure_future(pending, loop=self._loop)
        self._waiting = future
        answer.pending = None  # a task that is cancelled and its answer would hold each other
        future.add_done_callback(partial(self._waited, answer))

    def _waited(self, answer: Answer, done: asyncio.Future[object]) -> None:
        self._waiting = None
        if done.cancelled():
            return
        self.last_active_ms = self._support.timer_ms()
        try:
            answer.response = done.result()
            pending = self._support.dispatcher.wait_for_coordinators(answer)
            if pending is not None:
                self._wait_for(answer, pending)
                return
            if answer.response is not None:
                self._send_answer(answer)
            if self._answers:  # at once: if the client is gone, no more requests are served
                self._send_answers()
            if answer.meter is not None:
                self._throttle(answer.meter)
        except Exception as error:  # noqa: BLE001 # the root of every request that waited
            self._failed(error)
            return
        if self.session.ends:
            self._finishing = True
        if self._end or self._finishing or self._has_grant:
            self._serve()

    def _failed(self, error: Exception) -> None:
        """Close the connection; the others are not affected."""
        is_expected = isinstance(error, (DecodeError, RefusedRequestError)) or (
            # A disk failed while a journaled change was written: no response can say so.
            isinstance(error, ApiError) and error.code is ErrorCode.KAFKA_STORAGE_ERROR
        )
        if is_expected:
            self.close(str(error) or None)
            return
        logger.error("request of %s failed", self.session, exc_info=error)
        self.close("the request failed inside the broker")

    # -- answers ----------------------------------------------------------------------------------

    def _send_answer(self, answer: Answer) -> None:
        head, splices = answer.encoded()
        whole = self._with_slices(head, splices) if splices else head
        if whole is not None:
            self._send_soon(whole)
            return
        if self._answers:
            self._send_answers()
        self._send(_UnsentRest(head, splices).pieces())

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

    def _send_soon(self, answer: bytes | bytearray) -> None:
        """Send an answer without file slices together with the others of the same read."""
        self._answers.append(answer)
        self._answers_bytes += len(answer)
        if self._answers_bytes >= ANSWERS_BYTES:
            self._send_answers()

    def _send_answers(self) -> None:
        """Send the answers to the requests of this read: one system call."""
        assert self._socket is not None
        answer = self._answers[0] if len(self._answers) == 1 else b"".join(self._answers)
        self._answers, self._answers_bytes = [], 0
        try:
            sent = 0 if self._outgoing else self._socket.send(answer)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._abort()
            return
        if sent < len(answer):
            self._send([memoryview(answer)[sent:]])

    def _send(self, pieces: list[Piece]) -> None:
        """Send pieces, the last one first, after those that the socket has not taken yet."""
        if self._outgoing:
            self._outgoing = pieces + self._outgoing
            return
        self._outgoing = pieces
        self._push()

    def _push(self) -> bool:
        """Send as much as the socket takes in PUSH_S. Returns whether the whole answer was sent."""
        assert self._socket is not None
        outgoing = self._outgoing
        until_s = monotonic() + PUSH_S
        try:
            while outgoing:
                piece = outgoing[-1]
                if isinstance(piece, _UnsentSlice):
                    if not self._push_file(piece, until_s):
                        return False
                elif isinstance(piece, _UnsentRest):
                    outgoing[-1:] = piece.pieces()
                    continue
                else:
                    flags = socket.MSG_MORE if len(outgoing) > 1 else 0
                    sent = self._socket.send(piece, flags)
                    if sent < len(piece):
                        outgoing[-1] = piece[sent:]
                        continue
                outgoing.pop()
                if outgoing and monotonic() >= until_s:
                    raise BlockingIOError  # it goes on in the next turn
        except BlockingIOError:
            self._watch(True)
            return False
        except OSError as error:
            self._abort(error)
            return False
        return True

    def _watch(self, watch: bool) -> None:
        """Start or stop waiting for the socket to take bytes."""
        if watch == self._watching or self._socket is None:
            return
        self._watching = watch
        if watch:
            self._loop.add_writer(self._socket.fileno(), self._writable)
        else:
            self._loop.remove_writer(self._socket.fileno())

    def _push_file(self, unsent: _UnsentSlice, until_s: float) -> bool:
        """Send a slice of a file. Returns False if its pages must be read from the disk first.

        Raises BlockingIOError if the socket takes no more now or the time is over, and OSError.
        """
        assert self._socket is not None
        while (left := unsent.end - unsent.position) > 0:
            if not self._has_cached_pages(unsent):
                self._read_pages(unsent.file, min(left, FILE_CHUNK_BYTES), unsent.position)
                return False
            count = unsent.cached_end - unsent.position
            sent = self._socket.send_file(unsent.file, unsent.position, count)
            if sent == 0:
                raise OSError(f"{unsent.file.path} ends before byte {unsent.position}")
            unsent.position += sent
            if sent < count or (unsent.position < unsent.end and monotonic() >= until_s):
                raise BlockingIOError
        return True

    def _has_cached_pages(self, unsent: _UnsentSlice) -> bool:
        """Whether the next pages of a slice are in the page cache, as a check has shown."""
        now_ms = self.last_active_ms  # set before each attempt to send
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
        if self._transport is None or self._transport.is_closing() or done.cancelled():
            return
        error = done.exception()
        if error is not None:
            self._abort(error)
            return
        self._writable()

    def _writable(self) -> None:
        self.last_active_ms = self._support.timer_ms()
        if self._push():
            self._watch(False)
            self._serve()

    # -- the end ----------------------------------------------------------------------------------

    def finish(self) -> None:
        """Serve no new request, and close once the current one is answered."""
        self._finishing = True
        if self._throttled is not None:
            self._throttled.cancel()
            self._is_held = False
        self._serve()

    def close(self, reason: str | None) -> None:
        """Close the connection; a `reason` is logged. The answers of this read are sent first."""
        if self._transport is None or self._transport.is_closing():
            return
        if reason is not None:
            logger.warning("closed %s: %s", self.session, reason)
        if self._answers:
            self._send_answers()
            if self._outgoing:
                self._finishing = True
                return
        self._closed_by_us = True
        self._transport.close()

    def _abort(self, error: BaseException | None = None) -> None:
        """Cut the connection in the middle of an answer."""
        if self._transport is None or self._transport.is_closing():
            return
        if error is not None and not isinstance(error, ConnectionError):
            logger.error("cut %s in the middle of an answer: %s", self.session, error)
        self._closed_by_us = True
        self._transport.abort()
