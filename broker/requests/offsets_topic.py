"""Creates `__consumer_offsets` for the first request that needs it.

The request is answered once the topic exists. If the topic cannot be created, the request is
answered as well: it finds no coordinator.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from odradek.protocol.errors import ApiError
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC

from .context import RequestContext

logger = logging.getLogger("odradek.groups")

Request = TypeVar("Request")
Response = TypeVar("Response")
Respond = Callable[[RequestContext, Request], Response]


def respond_with_topic(
    context: RequestContext, request: Request, respond: Respond[Request, Response]
) -> Response | Awaitable[Response]:
    """Call `respond` when the topic exists; an awaitable if it must be created first."""
    creation = context.broker.groups.ensure_topic()
    if creation is None:
        return respond(context, request)
    return _respond_after(creation, context, request, respond)


async def _respond_after(
    creation: Awaitable[None],
    context: RequestContext,
    request: Request,
    respond: Respond[Request, Response],
) -> Response:
    try:
        await creation
    except ApiError as error:
        logger.error("%s cannot be created: %s", CONSUMER_OFFSETS_TOPIC, error.message)
    return respond(context, request)
