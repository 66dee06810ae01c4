"""How long a request takes until its response is there.

The time includes the wait of a Fetch for records and of a JoinGroup for other members. It does not
include reading and decoding the request, nor encoding and sending the response. A request has no
time if its handler raises, or if its client is gone before the response is there.

The session of a timed request notes the version of the API: most requests do not pay for it.
"""

from __future__ import annotations

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
    return _timed(counts, began, result)


async def _timed(counts: RequestTraffic, began: float, pending: Awaitable[object]) -> object:
    """Await what is pending, and count the request with its time."""
    try:
        response = await pending
    except BaseException:
        counts.unanswered += 1
        raise
    counts.time(monotonic() - began)
    return response
