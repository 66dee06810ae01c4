"""A view that a client watches: server-sent events, each with one response as JSON.

The next response is made after the client has taken the last one, so a slow client makes the broker
hold one. A response that equals the last one is not sent. An error is sent as an event `failure`,
and ends the stream; browsers then connect again by themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from odradek.broker.http.messages import HttpError
from odradek.protocol.errors import ApiError

from .endpoints import Endpoint, Run, View, failure_body, serve

CONTENT_TYPE = "text/event-stream"
# How long nothing may be sent. A client that is gone is noticed by what is sent to it.
QUIET_S = 15.0


async def events(endpoint: Endpoint, request: View, run: Run) -> AsyncGenerator[bytes, None]:
    """Serve a request again and again, until the client goes."""
    assert endpoint.every_s is not None
    last = b""
    quiet_s = 0.0
    while True:
        current = request
        try:
            response, body = await run(lambda call: serve(endpoint, current, call))  # noqa: B023 # it is awaited here
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
