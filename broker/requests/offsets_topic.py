"""Answers that need `__consumer_offsets` to be there: the first client to ask has it made.

Where it cannot be, the answer is given all the same: the coordinator is then not available.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ...protocol.errors import ApiError
from ...storage.topic_names import CONSUMER_OFFSETS_TOPIC
from .context import RequestContext

logger = logging.getLogger("odradek.groups")

Request = TypeVar("Request")
Response = TypeVar("Response")
Respond = Callable[[RequestContext, Request], Response]


def respond_with_topic(
    context: RequestContext, request: Request, respond: Respond[Request, Response]
) -> Response | Awaitable[Response]:
    """What `respond` gives, once the topic is there."""
    waiting = context.broker.groups.ensure_topic()
    if waiting is None:
        return respond(context, request)
    return _wait_and_respond(context, request, respond, waiting)


async def _wait_and_respond(
    context: RequestContext,
    request: Request,
    respond: Respond[Request, Response],
    topic_creation: Awaitable[None],
) -> Response:
    try:
        await topic_creation
    except ApiError as error:
        logger.error("%s cannot be created: %s", CONSUMER_OFFSETS_TOPIC, error.message)
    return respond(context, request)
