"""One client connection: frames in, answers out, in order.

This is the rim: asyncio calls it, and it calls what does no I/O of its own:

- receive_buffer cuts frames out of what has arrived,
- serving_state says whether the next request may be served,
- answer_sender sends the answers.

While requests are held, the connection goes on reading up to 16 KiB, because a paused uvloop
connection does not notice that the client has closed. When the client closes, a request that waits
for other clients is cancelled, and the requests that follow it are served. Kafka: Selector.close,
`closingChannels`.

The event loop reads a socket up to 32 times in a row while bytes are there: from a client that
sends large requests faster than they are served, many megabytes. So after so many bytes reading
pauses for one turn of the loop, in which the others are served. One read may bring thousands of
small requests: those that are not served in SERVE_S wait for a later turn (LargeTurns).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from time import monotonic
from typing import cast

from msgspec import Struct

from odradek.broker.quotas.request_meter import RequestMeter
from odradek.broker.requests.answer import Answer, RefusedRequestError, SlicedAnswer
from odradek.broker.requests.dispatch import Dispatcher
from odradek.broker.security.session import Session
from odradek.broker.turns.group_turns import GROUP_APIS, GroupTurns
from odradek.broker.turns.large_turns import LARGE_BYTES, LargeTurns
from odradek.config.listeners import Listener
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.framing import LENGTH_BYTES, FrameError, describe_foreign_bytes
from odradek.protocol.schema import DecodeError

from .answer_sender import AnswerSender, SenderSupport
from .frame_memory import NEVER_WAITS_BYTES, FrameMemory
from .listeners import UNKNOWN_ADDRESS, host_and_port
from .output import Output, PlainOutput
from .receive_buffer import START_BYTES, ReceiveBuffer
from .serving_state import (
    ANSWER,
    CLOSED,
    FINISHING,
    THROTTLE,
    TURN,
    UNSENT,
    ServingState,
)

logger = logging.getLogger("odradek.connection")

# A connection lets the others go first after so many bytes of reads that brought at least
# START_BYTES.
TURN_BYTES = 512 * 1024
# How long one turn of the event loop serves the requests of a read, not counting the first one.
SERVE_S = 0.001
# How much of a frame that is not a request is examined, to say what it may be.
_FOREIGN_BYTES = 16


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
    sender: SenderSupport
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
        self.opened_ms = self.last_active_ms = support.timer_ms()
        self.waits_for_memory = False  # asked FrameMemory for a grant and is queued
        self._support = support
        self._loop = support.loop
        self._transport: asyncio.Transport | None = None
        self._open_output = open_output
        self._received = ReceiveBuffer(support.receive_view)
        self._state = ServingState()
        self._sender = AnswerSender(support.sender)
        self._waiting: asyncio.Future[object] | None = None  # for the answer
        self._is_cancelled_on_disconnect = False  # see Answer
        self._is_lost = False  # its socket is closed
        self._throttled: asyncio.TimerHandle | None = None
        self._turn_bytes = 0  # of large reads, since it has given way
        self._gives_way = False  # reads nothing for one turn of the loop
        self._is_paused = False
        self._has_grant = False  # until a large frame is answered

    # -- the transport's calls --------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        try:
            output = self._open_output(transport)
        except OSError as error:  # accepting it took the last descriptor
            logger.error("closed a new connection: %s", error.strerror)
            self._transport.abort()
            return
        self._sender.open(output, self)
        peer = host_and_port(transport.get_extra_info("peername"))
        local_host, _ = host_and_port(transport.get_extra_info("sockname"))
        self.session = Session(
            self.session.listener, peer, local_host, self._support.max_request_bytes
        )
        self._support.opened(self)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 # asyncio's signature
        return self._received.room(self._state.holds != 0)

    def buffer_updated(self, nbytes: int) -> None:
        self._received.end += nbytes
        self.last_active_ms = self._support.timer_ms()
        self._serve()
        if nbytes >= START_BYTES:
            self._turn_bytes += nbytes
            if self._turn_bytes >= TURN_BYTES:
                self._give_way()

    def eof_received(self) -> bool:
        return self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None  # they hold each other: without the collector neither would be freed
        # After a reset, what the client has sent is served; but not behind an answer that is not
        # sent yet, because none can be sent any more.
        if exc is None or self._state.holds & UNSENT or not self._end():
            self._lost()

    def _end(self) -> bool:
        """Note that the client has ended. Returns whether there is something left to serve."""
        if not self._state.holds & ~(TURN | THROTTLE) and not self._has_frame():
            return False
        is_left = self._state.end()
        if is_left:
            self._cancel_waiting()
        return is_left

    def _has_frame(self) -> bool:
        """Whether a whole request has arrived that is not served."""
        try:
            return self._received.next_frame(self.session.max_request_bytes) is not None
        except FrameError:
            return False

    def _cancel_waiting(self) -> None:
        """Cancel a request that waits for other clients, because its own has disconnected."""
        if self._waiting is not None and self._is_cancelled_on_disconnect:
            # Later: a task that is cancelled before its first step would do nothing.
            self._loop.call_soon(self._waiting.cancel)

    def _lost(self) -> None:
        partial = self.partial_frame
        if partial is not None:
            logger.warning("%s closed after %d of %d bytes of a request", self.session, *partial)
        is_stopping = self._state.holds & FINISHING
        self._state.hold(CLOSED)
        self._is_lost = True
        if self._waiting is not None and (self._is_cancelled_on_disconnect or is_stopping):
            self._waiting.cancel()
        if self._throttled is not None:
            self._throttled.cancel()
        self._sender.close()
        if self._waiting is None:  # else the request may still use what ends with the connection
            self._support.closed(self)

    # -- reading ----------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether the next request must not start: see serving_state."""
        return self._state.holds != 0

    @property
    def is_unread(self) -> bool:
        """Whether an answer waits until the client has read more of it."""
        return self._sender.is_watching

    def note_reading(self) -> None:
        """Set `last_active_ms` if the client has read something since the last call."""
        if self._sender.has_taken_bytes():
            self.last_active_ms = self._support.timer_ms()

    @property
    def wire_bytes(self) -> tuple[int, int] | None:
        """The bytes that have come and gone, as the system counts them, if it does."""
        return self._sender.wire_bytes

    @property
    def throttled_ms(self) -> int:
        """For how long no request is served because the client has exceeded a quota."""
        if self._throttled is None or not self._state.holds & THROTTLE:
            return 0
        return max(round((self._throttled.when() - self._loop.time()) * 1000), 1)

    @property
    def partial_frame(self) -> tuple[int, int] | None:
        """Bytes received and bytes announced of a partly received frame, or None without one."""
        have = self._received.unserved_bytes
        if self.busy or not have:
            return None
        return have, self._received.frame_bytes() or LENGTH_BYTES

    @property
    def buffer_bytes(self) -> int:
        """The size of the connection's own buffer."""
        return self._received.own_bytes

    def shrink(self) -> None:
        """Free the connection's own buffer, if it is empty."""
        self._received.shrink()

    def _pause_or_resume(self) -> None:
        """Stop reading while it gives way, or the buffer is full and may not grow."""
        if self._transport is None or self._transport.is_closing() or self._state.has_ended:
            return
        pauses = self._gives_way or (self._received.is_full(self.busy) and not self._grow())
        if pauses == self._is_paused:
            return
        self._is_paused = pauses
        if pauses:
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
        buffer_bytes = len(self._received.view)
        if buffer_bytes < START_BYTES:
            self._received.replace(START_BYTES)
            return True
        frame_bytes = self._received.frame_bytes()
        if self.busy or frame_bytes is None:
            return False
        self.waits_for_memory = not self._support.frame_memory.try_grant(self, frame_bytes)
        if self.waits_for_memory:
            return False
        self._has_grant = frame_bytes > NEVER_WAITS_BYTES
        self._received.replace(
            frame_bytes if self._has_grant else min(buffer_bytes * 2, frame_bytes)
        )
        return True

    def on_memory_released(self) -> None:
        """Ask FrameMemory for memory again."""
        if self.waits_for_memory:
            self.last_active_ms = self._support.timer_ms()
            self._pause_or_resume()

    # -- requests ---------------------------------------------------------------------------------

    def _serve(self) -> None:
        """Serve the whole requests that have arrived, until one is held."""
        state, received = self._state, self._received
        if state.must_close:
            self.close(None)
            return
        until_s = 0.0  # set when the first request is served
        try:
            while not state.holds:
                frame = received.next_frame(self.session.max_request_bytes)
                if frame is None:
                    break
                if until_s and monotonic() >= until_s:
                    self._support.large_turns.wait(self.take_turn)
                    state.hold(TURN)
                elif self._has_turn(frame):
                    received.take(frame)
                    self._request(frame)
                    if not until_s and received.start < received.end:
                        until_s = monotonic() + SERVE_S
                else:
                    state.hold(TURN)
        except FrameError as error:
            self._refuse_frame(error)
        self._sender.flush()
        if state.has_ended and not state.holds:
            self.close(None)
            return
        if received.tidy(state.holds != 0) or self._is_paused or self._has_grant:
            self._after_serving()

    def _has_turn(self, frame: memoryview) -> bool:
        """Whether this turn of the loop has room for a request. If not, it waits in a queue."""
        if len(frame) > 1 and frame[1] in GROUP_APIS and frame[0] == 0:
            return self._support.group_turns.has_room_for(self)
        return len(frame) < LARGE_BYTES or self._support.large_turns.has_room_for(self)

    def take_turn(self) -> None:
        """Serve the request that waited for a turn (GroupTurns, LargeTurns)."""
        self._state.release(TURN)
        self._serve()

    def _after_serving(self) -> None:
        """Give memory back, and pause or resume reading."""
        received = self._received
        if self._has_grant and len(received.view) <= NEVER_WAITS_BYTES and not self.busy:
            self._has_grant = False
            self._support.frame_memory.release(self)
        if self._is_paused or received.is_full(is_held=True):
            self._pause_or_resume()

    def _request(self, frame: memoryview) -> None:
        try:
            answer = self._support.dispatcher.dispatch(self.session, frame)
            if answer is None:
                return
            if isinstance(answer, bytes):
                self._sender.add(answer)
                return
            if isinstance(answer, SlicedAnswer):
                answer.begin(self._received.lend(frame))
            if answer.pending is not None:
                self._wait_for(answer, answer.pending)
                return
            self._send(answer)
        except Exception as error:  # noqa: BLE001 # the root of every request
            self._failed(error)

    def _wait_for(self, answer: Answer, pending: Awaitable[object]) -> None:
        if isinstance(pending, asyncio.Future):
            future: asyncio.Future[object] = pending
        else:
            future = asyncio.ensure_future(pending, loop=self._loop)
        self._waiting = future
        self._is_cancelled_on_disconnect = answer.is_cancelled_on_disconnect
        self._state.hold(ANSWER)
        if self._state.has_ended:
            self._cancel_waiting()
        answer.pending = None  # a task that is cancelled and its answer would hold each other
        future.add_done_callback(partial(self._waited, answer))

    def _waited(self, answer: Answer, done: asyncio.Future[object]) -> None:
        self._waiting = None
        self._state.release(ANSWER)
        if self._is_lost:
            error = None if done.cancelled() else done.exception()
            if isinstance(error, Exception):
                self._failed(error)
            self._support.closed(self)
            return
        if done.cancelled():
            self._serve()  # what the client sent before it ended
            return
        self.last_active_ms = self._support.timer_ms()
        try:
            answer.response = done.result()
            pending = self._support.dispatcher.wait_for_coordinators(answer)
            if pending is not None:
                self._wait_for(answer, pending)
                return
            self._send(answer)
            # At once: if the client is gone, no more requests are served.
            self._sender.flush()
        except Exception as error:  # noqa: BLE001 # the root of every request that waited
            self._failed(error)
            return
        if self.session.ends:
            self._state.finish()
        state = self._state
        if self._received.end or state.must_close or state.has_ended or self._has_grant:
            self._serve()

    def _send(self, answer: Answer) -> None:
        """Send an answer, or add it to those of the same read, and settle what it has used."""
        meter = answer.meter
        if meter is not None:
            meter.resume()
        if answer.response is not None:
            head, splices = answer.encoded()
            if splices:
                self._sender.add_spliced(head, splices)
            else:
                self._sender.add(head)
        if meter is not None:
            self._throttle(meter)

    def _throttle(self, meter: RequestMeter) -> None:
        """Serve no request for the time by which the client has exceeded a quota."""
        meter.finish()
        if meter.throttle_ms and not self._state.holds & (FINISHING | CLOSED):
            self._state.hold(THROTTLE)
            self._throttled = self._loop.call_later(meter.throttle_ms / 1000, self._unthrottle)

    def _unthrottle(self) -> None:
        self.last_active_ms = self._support.timer_ms()  # it could not send more before
        self._state.release(THROTTLE)
        self._serve()

    def _failed(self, error: Exception) -> None:
        """Close the connection; the others are not affected."""
        is_expected = isinstance(error, (DecodeError, RefusedRequestError)) or (
            # A disk failed while a journaled change was written: no response can say so.
            isinstance(error, ApiError) and error.code is ErrorCode.KAFKA_STORAGE_ERROR
        )
        if is_expected:
            self._close_when_sent(str(error) or None)
            return
        logger.error("request of %s failed", self.session, exc_info=error)
        self._close_when_sent("the request failed inside the broker")

    def _refuse_frame(self, error: FrameError) -> None:
        received = self._received
        first = bytes(received.view[received.start : received.end][:_FOREIGN_BYTES])
        guess = describe_foreign_bytes(first)
        self._close_when_sent(f"{error}; {guess}" if guess else str(error))

    # -- the sender's calls -----------------------------------------------------------------------

    def on_blocked(self) -> None:
        self._state.hold(UNSENT)

    def on_progress(self) -> None:
        self.last_active_ms = self._support.timer_ms()

    def on_sent(self) -> None:
        self._state.release(UNSENT)
        self._serve()

    def on_broken(self, error: BaseException) -> None:
        """Cut the connection in the middle of an answer."""
        if self._state.holds & CLOSED:
            return
        if not isinstance(error, ConnectionError):
            logger.error("cut %s in the middle of an answer: %s", self.session, error)
        self._close(at_once=True)

    # -- the end ----------------------------------------------------------------------------------

    def finish(self) -> None:
        """Serve no new request, and close once the current one is answered."""
        if self._throttled is not None:
            self._throttled.cancel()
        self._state.finish()
        self._serve()

    def abort(self) -> None:
        """Close the connection at once, whatever is to be sent or served."""
        self._state.hold(FINISHING)
        if not self._state.holds & CLOSED:
            self._close(at_once=True)

    def close(self, reason: str | None) -> None:
        """Close the connection; a `reason` is logged. What is unsent is dropped."""
        if self._state.holds & CLOSED:
            return
        if reason is not None:
            logger.warning("closed %s: %s", self.session, reason)
        self._close(at_once=False)

    def _close(self, *, at_once: bool) -> None:
        self._state.hold(CLOSED)
        if self._transport is None:  # the client has reset it
            self._loop.call_soon(self._lost)
        elif at_once:
            self._transport.abort()
        else:
            self._transport.close()

    def _close_when_sent(self, reason: str | None) -> None:
        """Like `close`, once the client has the answers to the requests before."""
        if self._state.holds & CLOSED:
            return
        if reason is not None:
            logger.warning("closed %s: %s", self.session, reason)
        self._sender.flush()
        if self._state.holds & UNSENT:
            self._state.finish()
        else:
            self.close(None)
