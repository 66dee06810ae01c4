"""One client connection: frames in, answers out, in order.

Requests are cut out of the buffer that the socket was read into, in place. They are served one
after another, as Kafka's muted channels do: while one waits (a Fetch below min_bytes, a JoinGroup)
or its answer is still leaving, the next ones stay in a buffer. We go on reading up to 16 KiB then,
for a paused uvloop connection does not notice the client's close; and when the client goes, what it
waited for is cancelled.

All connections are read into one buffer of the server's, for what a read brings is most often whole
requests, served before anybody else is read. Only what is left over then is moved to a buffer of
the connection's own, which it is read into until nothing is left over: thousands of clients that
say something now and then take no memory for what they might say. So a request's bytes are dead at
the first await, whoever sends next. An own buffer doubles as bytes arrive, never on the promise of
a length prefix; one for large frames is kept until they have stopped coming. What the buffers of
all connections may hold together is the server's to say (frame_memory).

Answers go to the socket directly, through a duplicate of the transport's descriptor: uvloop forbids
writing to its own, and its transport would copy what sendfile need not touch. An answer is a row of
pieces, bytes and slices of log files. A slice is sent by sendfile as the socket takes it, so a
stalled consumer costs no memory; pages that are not in the page cache are read by a disk thread
first, for the loop must not wait for a disk. The first byte of an answer promises its length: when
a slice can't be read any more, all that is left is to cut the connection.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import struct
from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING, cast

from ...protocol.errors import ApiError, ErrorCode
from ...protocol.framing import FrameError, check_frame_size, describe_foreign_bytes
from ...protocol.schema import DecodeError, Splices
from ...storage.log import RecordsSlice
from ..requests.dispatch import Refusal
from .group_turns import GIVES_WAY

if TYPE_CHECKING:
    from ...config.listeners import Listener
    from ..requests.dispatch import Answer
    from .server import Server

logger = logging.getLogger("odradek.connection")

# The size of the shared buffer, and of an own one that has room for more than what waits in it.
START_BYTES = 16 * 1024
WAITING_BYTES = 1024
# A large buffer is given back after so many frames in a row that needed at most a quarter of it.
SHRINK_AFTER_FRAMES = 64
_SIZE = struct.Struct(">i")

# How much of a file is looked at, and sent, at once.
FILE_CHUNK_BYTES = 1024 * 1024


class _FileRun:
    """What is left to send of a slice of a log file."""

    __slots__ = ("file", "left_bytes", "position")

    def __init__(self, records: RecordsSlice) -> None:
        self.file = records.file
        self.position = records.position
        self.left_bytes = records.size_bytes


Piece = memoryview | _FileRun


class Connection(asyncio.BufferedProtocol):
    """The protocol object of one accepted socket."""

    def __init__(self, server: Server, listener: Listener) -> None:
        self.listener = listener
        self.peer_host = ""
        self.peer_port = 0
        self.local_host = ""
        self.last_active_ms = server.now_ms()
        self._server = server
        self._loop = server.loop
        self._transport: asyncio.Transport | None = None
        self._socket: socket.socket | None = None
        self._shared = server.receive_view
        self._view = self._shared
        self._start = 0  # of the first byte that is not served yet
        self._end = 0  # of the bytes that have arrived
        self._small_frames = 0
        self._waiting: asyncio.Future[object] | None = None
        self._gave_way = False
        self._outgoing: list[Piece] = []  # of the answer under way, the last piece first
        self._paused = False
        self._watching = False  # for room in the socket
        self._finishing = False
        self._closed_by_us = False
        self.starving = False  # asked frame_memory for room, and must wait for it

    # -- the transport's calls --------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        descriptor = transport.get_extra_info("socket").fileno()
        try:
            self._socket = socket.socket(fileno=os.dup(descriptor))
        except OSError as error:  # it was let in with the last descriptor there was
            logger.error("a connection is closed again: %s", error.strerror)
            self._transport.abort()
            return
        self.peer_host, self.peer_port = _address(transport.get_extra_info("peername"))
        self.local_host, _ = _address(transport.get_extra_info("sockname"))
        self._server.opened(self)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 # asyncio's signature
        if self._end == 0:
            return self._view
        if self._end == len(self._view):
            self._make_room()
        return self._view[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        self._end += nbytes
        self.last_active_ms = self._server.now_ms()
        self._serve()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 # asyncio's signature
        if self._socket is None:
            return  # it was never open
        partial = self.partial_frame
        if partial is not None and not self._closed_by_us:
            logger.warning("%s went away after %d of %d bytes of a request", self.peer, *partial)
        if self._waiting is not None:
            self._waiting.cancel()
        self._watch(False)
        self._socket.close()
        self._outgoing = []
        self._server.closed(self)

    # -- reading ----------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether a request waits or an answer is still leaving: the next one must not start."""
        return self._waiting is not None or self._gave_way or bool(self._outgoing)

    @property
    def partial_frame(self) -> tuple[int, int] | None:
        """Bytes that have come of the frame under way, and of how many; None: there is none."""
        have = self._end - self._start
        if self.busy or have < _SIZE.size:
            return None if self.busy or have == 0 else (have, _SIZE.size)
        return have, self._frame_bytes()

    @property
    def buffer_bytes(self) -> int:
        """How much memory the connection's own buffer takes."""
        return 0 if self._view is self._shared else len(self._view)

    def _make_room(self) -> None:
        """Move what has arrived to the front, over what has been served."""
        have = self._end - self._start
        self._view[:have] = self._view[self._start : self._end]
        self._start, self._end = 0, have

    def _frame_bytes(self) -> int:
        """Size of the frame under way, its prefix included."""
        return _SIZE.size + int(_SIZE.unpack_from(self._view, self._start)[0])

    def _replace_buffer(self, size_bytes: int) -> None:
        have = self._end - self._start
        grown = memoryview(bytearray(size_bytes))
        grown[:have] = self._view[self._start : self._end]
        self._view = grown
        self._start, self._end = 0, have

    def _serve(self) -> None:
        """Serve every whole request that has arrived, until one has to wait."""
        if self._finishing and not self.busy:
            self.close(None)
            return
        view, transport = self._view, self._transport
        while self._end - self._start >= _SIZE.size and not self.busy:
            if transport is None or transport.is_closing():
                break
            start = self._start + _SIZE.size
            size = _SIZE.unpack_from(view, self._start)[0]
            if not 0 <= size <= self._server.max_request_bytes:
                self._refuse_frame(size)
                return
            end = start + size
            if end > self._end:
                break
            if size > 1 and view[start + 1] in GIVES_WAY and view[start] == 0:
                self._gave_way = not self._server.group_turns.has_room_for(self)
                if self._gave_way:
                    break
            self._start = end
            self._request(view[start:end])
            if size + _SIZE.size > len(view) // 4:
                self._small_frames = 0
            else:
                self._small_frames += 1
        self._after_serving()

    def take_turn(self) -> None:
        """Called by group_turns when the request that gave way may be served."""
        self._gave_way = False
        self._serve()

    def _after_serving(self) -> None:
        if self._start == self._end:
            self._start = self._end = 0
            if self._view is not self._shared and (
                len(self._view) <= START_BYTES or self._small_frames >= SHRINK_AFTER_FRAMES
            ):
                self.shrink()
        elif self._view is self._shared:
            self._keep_what_is_left()
        if self._paused or self._end == len(self._view):
            self._pause_or_resume()

    def _keep_what_is_left(self) -> None:
        """Move it out of the shared buffer; a client whose request waits seldom says more."""
        have = self._end - self._start
        waiting_bytes = min(max(2 * have, WAITING_BYTES), START_BYTES)
        self._replace_buffer(waiting_bytes if self.busy else START_BYTES)

    def shrink(self) -> None:
        """Give the connection's own buffer back, if there is nothing in it."""
        if self._start == self._end and self._view is not self._shared:
            was_large = len(self._view) > START_BYTES
            self._small_frames = 0
            self._view = self._shared
            self._start = self._end = 0
            if was_large:
                self._server.frame_memory.release(self)

    def _pause_or_resume(self) -> None:
        """Stop reading where the buffer is full and may not grow; go on when it may again."""
        full = self._start == 0 and self._end == len(self._view)
        hold = full and not self._grow()
        if hold == self._paused or self._transport is None or self._transport.is_closing():
            return
        self._paused = hold
        if hold:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _grow(self) -> bool:
        """Take a larger buffer, if memory is granted: twice as much, up to the frame's size."""
        if len(self._view) < START_BYTES:
            self._replace_buffer(START_BYTES)
            return True
        if self.busy:
            return False
        frame_bytes = self._frame_bytes()
        self.starving = not self._server.frame_memory.grants(self, frame_bytes)
        if not self.starving:
            self._replace_buffer(min(len(self._view) * 2, frame_bytes))
        return not self.starving

    def memory_is_free(self) -> None:
        """Called by frame_memory when a connection that starves may try again."""
        if self.starving:
            self.last_active_ms = self._server.now_ms()
            self._pause_or_resume()

    def _refuse_frame(self, size: int) -> None:
        first = bytes(self._view[self._start : min(self._end, self._start + 16)])
        guess = describe_foreign_bytes(first)
        try:
            check_frame_size(size, self._server.max_request_bytes)
        except FrameError as error:
            self.close(f"{error}; {guess}" if guess else str(error))

    # -- requests ---------------------------------------------------------------------------------

    def _request(self, frame: memoryview) -> None:
        try:
            answer = self._server.dispatcher.dispatch(self, frame)
            if answer is None:
                return
            if answer.pending is not None:
                self._wait_for(answer, answer.pending)
            else:
                self._send_answer(answer)
        except Exception as error:  # noqa: BLE001 # the root of every request
            self._failed(error)

    def _wait_for(self, answer: Answer, pending: Awaitable[object]) -> None:
        if isinstance(pending, asyncio.Future):
            future: asyncio.Future[object] = pending
        else:
            future = asyncio.ensure_future(pending, loop=self._loop)
        self._waiting = future
        future.add_done_callback(partial(self._waited, answer))

    def _waited(self, answer: Answer, done: asyncio.Future[object]) -> None:
        self._waiting = None
        if done.cancelled():
            return
        self.last_active_ms = self._server.now_ms()
        try:
            answer.response = done.result()
            covering = self._server.dispatcher.cover(answer)
            if covering is not None:
                self._wait_for(answer, covering)
                return
            if answer.response is not None:
                self._send_answer(answer)
        except Exception as error:  # noqa: BLE001 # the root of every request that waited
            self._failed(error)
            return
        if self._end or self._finishing:
            self._serve()

    def _failed(self, error: Exception) -> None:
        """End the connection: what no handler foresaw must not hurt any other."""
        is_foreseen = isinstance(error, (DecodeError, Refusal)) or (
            # A disk died under a change that is journaled: there is no answer to that.
            isinstance(error, ApiError) and error.code is ErrorCode.KAFKA_STORAGE_ERROR
        )
        if is_foreseen:
            self.close(str(error))
            return
        logger.error("request of %s failed", self.peer, exc_info=error)
        self.close("the request failed inside the broker")

    # -- answers ----------------------------------------------------------------------------------

    def _send_answer(self, answer: Answer) -> None:
        head = bytearray()
        splices: Splices = []
        answer.write(head, splices)
        if not splices:
            self._send_small(head)
            return
        view = memoryview(head)
        pieces: list[Piece] = []
        position = 0
        for end, records in splices:
            pieces.append(view[position:end])
            pieces.append(_FileRun(cast(RecordsSlice, records)))
            position = end
        if position < len(head):
            pieces.append(view[position:])
        pieces.reverse()
        self._outgoing = pieces
        self._push()

    def _send_small(self, answer: bytearray) -> None:
        """The common case, an answer of bytes alone: one call, nothing queued."""
        assert self._socket is not None
        try:
            sent = self._socket.send(answer)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._abort()
            return
        if sent < len(answer):
            self._outgoing = [memoryview(answer)[sent:]]
            self._watch(True)

    def _push(self) -> bool:
        """Send what the socket takes. True when all has left, False when something must wait."""
        assert self._socket is not None
        outgoing = self._outgoing
        try:
            while outgoing:
                piece = outgoing[-1]
                if isinstance(piece, _FileRun):
                    if not self._push_file(piece):
                        return False
                else:
                    flags = socket.MSG_MORE if len(outgoing) > 1 else 0
                    sent = self._socket.send(piece, flags)
                    if sent < len(piece):
                        outgoing[-1] = piece[sent:]
                        continue
                outgoing.pop()
        except BlockingIOError:
            self._watch(True)
            return False
        except OSError as error:
            self._abort(error)
            return False
        return True

    def _watch(self, watch: bool) -> None:
        """Be called when the socket takes bytes again, or no more."""
        if watch == self._watching or self._socket is None:
            return
        self._watching = watch
        if watch:
            self._loop.add_writer(self._socket.fileno(), self._writable)
        else:
            self._loop.remove_writer(self._socket.fileno())

    def _push_file(self, run: _FileRun) -> bool:
        """Send a slice of a file; False when its pages must be read from the disk first."""
        assert self._socket is not None
        files = self._server.broker.files
        while run.left_bytes:
            chunk = min(run.left_bytes, FILE_CHUNK_BYTES)
            if not files.is_cached(run.file, chunk, run.position):
                self._watch(False)
                reading = self._server.broker.disk.run(
                    files.read_ahead, run.file, chunk, run.position
                )
                reading.add_done_callback(self._warmed)
                return False
            sent = os.sendfile(self._socket.fileno(), run.file.fd, run.position, chunk)
            if sent == 0:
                raise OSError(f"{run.file.path} ends before byte {run.position}")
            run.position += sent
            run.left_bytes -= sent
        return True

    def _warmed(self, done: asyncio.Future[None]) -> None:
        if self._transport is None or self._transport.is_closing() or done.cancelled():
            return
        error = done.exception()
        if error is not None:
            self._abort(error)
            return
        self._writable()

    def _writable(self) -> None:
        self.last_active_ms = self._server.now_ms()
        if self._push():
            self._watch(False)
            self._serve()

    # -- the end ----------------------------------------------------------------------------------

    @property
    def peer(self) -> str:
        """The client's address, for log lines."""
        return f"{self.peer_host}:{self.peer_port}"

    def finish(self) -> None:
        """Serve nothing new, and close when what is under way has been answered."""
        self._finishing = True
        self._serve()

    def close(self, reason: str | None) -> None:
        """Close the connection, with one log line when there is a reason to tell."""
        if self._transport is None or self._transport.is_closing():
            return
        if reason is not None:
            logger.warning("closed %s: %s", self.peer, reason)
        self._closed_by_us = True
        self._transport.close()

    def _abort(self, error: BaseException | None = None) -> None:
        """Cut the connection in the middle of an answer: its length was promised."""
        if self._transport is None or self._transport.is_closing():
            return
        if error is not None and not isinstance(error, ConnectionError):
            logger.error("cut %s in the middle of an answer: %s", self.peer, error)
        self._closed_by_us = True
        self._transport.abort()


def _address(name: object) -> tuple[str, int]:
    """Host and port of a socket name; an IPv4 client on a dual-stack socket shows as IPv4."""
    if not isinstance(name, tuple):
        return "unknown", 0
    host, port = name[0], name[1]
    return str(host).removeprefix("::ffff:"), int(port)
