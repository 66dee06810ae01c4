"""How long a request takes until its response is there.

The time includes the wait of a Fetch for records and of a JoinGroup for other members. It does not
include reading and decoding the request, nor encoding and sending the response. A request has no
time if its handler raises, or if its client is gone before the response is there.

The session of a timed request notes the version of the API: most requests do not pay for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from time import monotonic

from msgspec import Struct

from odradek.broker.common.traffic import RequestTraffic
from odradek.protocol.compiler import NotSmallError

from .context import RequestContext
from .route import Handler


def handle_timed(
    counts: RequestTraffic,
    handle: Handler,
    context: RequestContext,
    request: object,
) -> object:
    """Handle a request, and count it with its time when its response is there."""
    counts.timed_at_ms = context.now_ms
    session = context.session
    if session.api_versions is None:
        session.api_versions = {}
    session.api_versions[context.api_key] = context.api_version
    began = monotonic()
    try:
        result = handle(context, request)
    except NotSmallError:  # it is counted when it is served in slices
        raise
    except Exception:
        counts.unanswered += 1
        raise
    if result is None or isinstance(result, (Struct, bytearray)):
        counts.time(monotonic() - began)
        return result

    if context.slices is not None:  # a task of its own would not run in slices
        return _timed(counts, began, result)

    def done(future: asyncio.Future[object]) -> None:
        if future.cancelled() or future.exception() is not None:
            counts.unanswered += 1
        else:
            counts.time(monotonic() - began)

    future = _started(context, result)
    future.add_done_callback(done)
    return future


async def _timed(counts: RequestTraffic, began: float, pending: Awaitable[object]) -> object:
    """Await what is pending, and count the request with its time."""
    try:
        response = await pending
    except BaseException:
        counts.unanswered += 1
        raise
    counts.time(monotonic() - began)
    return response


def _started(context: RequestContext, pending: Awaitable[object]) -> asyncio.Future[object]:
    """The work of a handler as a future. Quotas count the time that it works."""
    if context.meter is not None:
        pending = context.meter.timed(pending)
    return asyncio.ensure_future(pending)
