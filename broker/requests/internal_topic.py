"""Creates the internal topic of a coordinator for the first request that needs it.

The request is answered once the topic exists. If the topic cannot be created, the request is
answered as well: it finds no coordinator.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from odradek.coordinator.runtime.shards import CoordinatorShards
from odradek.protocol.errors import ApiError

from .context import RequestContext

logger = logging.getLogger("odradek.topics")

Request = TypeVar("Request")
Response = TypeVar("Response")
Respond = Callable[[RequestContext, Request], Response]


def respond_with_topic(
    context: RequestContext,
    shards: CoordinatorShards[Any],
    request: Request,
    respond: Respond[Request, Response],
) -> Response | Awaitable[Response]:
    """Call `respond` when the topic of `shards` exists; an awaitable if it is created first."""
    if shards.is_open:
        return respond(context, request)
    return _respond_with_new_topic(context, shards.topic, request, respond)


async def _respond_with_new_topic(
    context: RequestContext,
    topic: str,
    request: Request,
    respond: Respond[Request, Response],
) -> Response:
    try:
        await context.broker.admin.topics.ensure_internal_topic(topic)
    except ApiError as error:
        logger.error("%s cannot be created: %s", topic, error.message)
    return respond(context, request)
