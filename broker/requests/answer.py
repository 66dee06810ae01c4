"""The answer to a request: its response, or what its connection waits for before that is sent."""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

from odradek.broker.quotas.request_meter import RequestMeter
from odradek.broker.turns.slices import Result, SliceRunner, Slices
from odradek.protocol.schema import Message, Splices, codec_for

from .route import RESPONSE_HEADER

Retry = Callable[[Message], Awaitable[Message]]
# A framed response, and the parts of log files that are spliced into it.
Framed = tuple[bytearray, Splices]

_SIZE = struct.Struct(">i")
# A larger response is not sent: most clients would refuse it.
MAX_RESPONSE_BYTES = 100 * 1024 * 1024


class RefusedRequestError(Exception):
    """A request that gets no response: its connection is closed, and the message says why.

    Without a message the reason has been logged.
    """


class Answer:
    """A response and what is needed to encode it.

    `pending` is set while the response is still to come, or has to wait for fsyncs;
    `is_cancelled_on_disconnect` says whether it is then cancelled when the client disconnects.

    `awaits_coordinator`: once the response is there, it may reveal what a coordinator has written,
    and waits for that to be synced (Dispatcher.wait_for_coordinators). `retry(response)` returns
    the response to send if more fsyncs have failed than `lost_before`, their number when the
    request began (lost_writes.py).

    `meter` is set while quotas are in force, and has the throttle time once the response is known.
    With a meter, a request without a response (acks=0) has an answer too, with `response` None.
    """

    __slots__ = (
        "_correlation_id",
        "_flexible_header",
        "_version",
        "awaits_coordinator",
        "is_cancelled_on_disconnect",
        "lost_before",
        "meter",
        "pending",
        "response",
        "retry",
    )

    def __init__(
        self, correlation_id: int = 0, version: int = 0, flexible_header: bool = False
    ) -> None:
        self.pending: Awaitable[Any] | None = None
        self.response: Any = None
        self.is_cancelled_on_disconnect = False
        self.awaits_coordinator = False
        self.lost_before = 0
        self.retry: Retry | None = None
        self.meter: RequestMeter | None = None
        self._correlation_id = correlation_id
        self._version = version
        self._flexible_header = flexible_header

    def encoded(self) -> Framed:
        """The framed response."""
        out = self._header()
        splices: Splices = []
        if self.response.__class__ is bytearray:  # encoded by the handler
            out += self.response
        else:
            codec_for(self.response.__class__, self._version).write(self.response, out, splices)
        _set_size(out, splices)
        return out, splices

    def encoded_in_slices(self, slices: Slices) -> Framed:
        """Like `encoded`. Raises RefusedRequestError if the response is too large."""
        if self.response.__class__ is bytearray:
            return self.encoded()
        out = self._header()
        splices: Splices = []

        def step(_items: int) -> None:
            slices.step()
            if len(out) > MAX_RESPONSE_BYTES:
                raise RefusedRequestError(f"the response has more than {MAX_RESPONSE_BYTES} bytes")

        codec = codec_for(self.response.__class__, self._version)
        codec.write_in_steps(self.response, out, splices, step)
        _set_size(out, splices)
        return out, splices

    def _header(self) -> bytearray:
        out = bytearray(RESPONSE_HEADER.pack(0, self._correlation_id))
        if self._flexible_header:
            out.append(0)  # no tagged fields
        return out


# Serves a request whose frame is in the memoryview. Returns None if there is no response.
ServeInSlices = Callable[["SlicedAnswer", memoryview, Slices], Coroutine[Any, Any, Framed | None]]


class SlicedAnswer(Answer):
    """The answer to a request that is served in slices. `begin` must be called with its frame.

    Then either `pending` is set, or `response`, which is what `encoded` returns.
    """

    __slots__ = ("_runner", "_serve")

    def __init__(self, runner: SliceRunner, serve: ServeInSlices) -> None:
        super().__init__()
        self._runner = runner
        self._serve = serve

    def begin(self, frame: memoryview) -> None:
        """Begin to serve the request. The frame's bytes must not change while it is pending."""
        begun = self._runner.begin(partial(self._serve, self, frame))
        if isinstance(begun, Result):
            self.response = begun.value
        else:
            self.pending = begun

    def encoded(self) -> Framed:
        """The framed response."""
        framed: Framed = self.response
        return framed


class RawToken(Answer):
    """A SASL token for a client that has sent SaslHandshake v0: a frame without a header."""

    def __init__(self, token: bytes) -> None:
        super().__init__()
        self.response = token

    def encoded(self) -> Framed:
        """The framed token."""
        return bytearray(_SIZE.pack(len(self.response)) + self.response), []


def _set_size(frame: bytearray, splices: Splices) -> None:
    size = len(frame) - _SIZE.size
    for _, records in splices:
        size += records.size_bytes
    _SIZE.pack_into(frame, 0, size)
