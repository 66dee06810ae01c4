"""A view that a client watches: server-sent events, each with one response as JSON.

The next response is made after the client has taken the last one, so a slow client makes the broker
hold one. A response that equals the last one is not sent. An error is sent as an event `failure`,
and ends the stream; browsers then connect again by themselves.

Clients that watch the same view get the same responses: ten open pages cost little more than one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from functools import partial

from odradek.broker.http.messages import HttpError
from odradek.protocol.errors import ApiError

from .endpoints import Endpoint, Run, failure_body, serve
from .view import View

CONTENT_TYPE = "text/event-stream"
# How long nothing may be sent. A client that is gone is noticed by what is sent to it.
QUIET_S = 15.0

Response = tuple[View, bytes]


class _Shared:
    """A response that is made, or is there, and how many clients wait for it."""

    def __init__(self, task: asyncio.Task[Response]) -> None:
        self.task = task
        self.waiting = 0


class SharedViews:
    """Responses that several clients get. Each is kept for half the time between two of them.

    What is made for clients that have all gone is given up: they have left their places (places.py)
    to others.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._shared: dict[Hashable, _Shared] = {}

    async def get(
        self, key: Hashable, every_s: float, make: Callable[[], Awaitable[Response]]
    ) -> Response:
        """Return what `make` returns, or what it has returned for this key a short time ago."""
        shared = self._shared.get(key)
        if shared is None:
            shared = _Shared(asyncio.ensure_future(make(), loop=self._loop))
            self._shared[key] = shared
            self._loop.call_later(every_s / 2, self._forget, key, shared)
        shared.waiting += 1
        try:
            return await asyncio.shield(shared.task)
        finally:
            shared.waiting -= 1
            if not shared.waiting and not shared.task.done():
                shared.task.cancel()
                self._drop(key, shared)

    def _forget(self, key: Hashable, shared: _Shared) -> None:
        """Forget a response; one that is not there yet when it is."""
        if not shared.task.done():
            shared.task.add_done_callback(lambda _: self._forget(key, shared))
            return
        self._drop(key, shared)
        shared.task.cancelled() or shared.task.exception()  # all clients may have gone

    def _drop(self, key: Hashable, shared: _Shared) -> None:
        if self._shared.get(key) is shared:
            del self._shared[key]


async def events(
    endpoint: Endpoint, request: View, run: Run, shared: SharedViews, client: Hashable
) -> AsyncGenerator[bytes, None]:
    """Serve a request again and again, until the client goes.

    Clients that are equal see the same.
    """
    assert endpoint.every_s is not None
    last = b""
    quiet_s = 0.0
    while True:
        key = (endpoint.template, repr(request), client)
        make = partial(run, partial(serve, endpoint, request))
        try:
            response, body = await shared.get(key, endpoint.every_s, make)
        except (HttpError, ApiError) as error:
            yield b"event: failure\ndata: %b\n\n" % failure_body(error)
            return
        if body != last:
            yield b"data: %b\n\n" % body
            last, quiet_s = body, 0.0
        elif quiet_s >= QUIET_S:
            yield b":\n\n"
            quiet_s = 0.0
        if endpoint.next_request is not None:
            request = endpoint.next_request(request, response)
        await asyncio.sleep(endpoint.every_s)
        quiet_s += endpoint.every_s
