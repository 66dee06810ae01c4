"""Faults that a test injects into the handling of requests.

They are wrapped around the handlers, so a broker without them has no cost. A fault belongs to an
API and to all clients alike.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections import deque
from collections.abc import Mapping
from typing import Any

from odradek.broker.producing.single_batch import SingleBatch
from odradek.broker.requests.context import RequestContext, ServedVersions
from odradek.broker.requests.dispatch import RefusedRequestError
from odradek.broker.requests.error_responses import error_response
from odradek.broker.requests.route import Handler
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.schema import Message, VersionRange

TEXT = "a fault that the test has asked for"


class Faults:
    """The faults that are set now; `clear` removes them.

    `handlers` are those that the faults are for, each with the faults of its API.
    """

    def __init__(self, handlers: Mapping[ApiKey, Handler]) -> None:
        self._errors: dict[ApiKey, deque[ErrorCode]] = {}
        self._drops: dict[ApiKey, deque[bool]] = {}
        self._delays_ms: dict[ApiKey, int] = {}
        self._max_versions: dict[ApiKey, int] = {}
        self.handlers = {key: self._around(key, handle) for key, handle in handlers.items()}

    def clear(self) -> None:
        """Remove all faults."""
        for faults in (self._errors, self._drops, self._delays_ms, self._max_versions):
            faults.clear()

    def fail_next(self, key: ApiKey, code: ErrorCode, times: int) -> None:
        """Answer the next requests with an error, and do not handle them."""
        self._errors.setdefault(key, deque()).extend([code] * times)

    def drop_connection(self, key: ApiKey, times: int, *, handled: bool) -> None:
        """Close the connections of the next requests, before or after they are handled."""
        self._drops.setdefault(key, deque()).extend([handled] * times)

    def delay(self, key: ApiKey, delay_ms: int) -> None:
        """Send each response so much later; 0 ends that."""
        self._delays_ms[key] = delay_ms

    def pretend(self, max_versions: Mapping[ApiKey, int]) -> None:
        """Serve no version above these. -1: the API is not served at all."""
        self._max_versions.update(max_versions)

    # -- the handlers -----------------------------------------------------------------------------

    def _around(self, key: ApiKey, handle: Handler) -> Handler:
        @functools.wraps(handle)
        def handle_with_faults(context: RequestContext, request: Any) -> Any:
            if isinstance(request, SingleBatch):
                request = request.whole()
            if self._max_versions:
                self._limit_versions(key, context)
            if errors := self._errors.get(key):
                return _refused(context, request, errors.popleft())
            drops = self._drops.get(key)
            if drops and not drops[0]:
                drops.popleft()
                raise RefusedRequestError(TEXT)
            response = handle(context, request)
            if drops:
                drops.popleft()
                return _drop_after(response)
            delay_ms = self._delays_ms.get(key)
            return _later(response, delay_ms) if delay_ms else response

        return handle_with_faults

    def _limit_versions(self, key: ApiKey, context: RequestContext) -> None:
        highest = self._max_versions.get(key)
        if highest is not None and context.api_version > highest:
            raise RefusedRequestError(f"{key.name} v{context.api_version}: {TEXT}")
        if key is ApiKey.API_VERSIONS:
            context.served = ServedVersions(
                self._limited(context.served.advertised), self._limited(context.served.spoken)
            )

    def _limited(self, versions: Mapping[ApiKey, VersionRange]) -> dict[ApiKey, VersionRange]:
        limited = {}
        for key, (lowest, highest) in versions.items():
            limit = min(highest, self._max_versions.get(key, highest))
            if limit >= lowest:
                limited[key] = VersionRange(lowest, limit)
        return limited


def _refused(context: RequestContext, request: Any, code: ErrorCode) -> Message | None:
    if getattr(request, "acks", None) == 0:
        raise RefusedRequestError(TEXT)  # as a Produce that fails without a response
    return error_response(request, context.api_version, code, TEXT)


async def _drop_after(response: Any) -> None:
    """Wait until the request is handled, then close its connection."""
    if inspect.isawaitable(response):
        await response
    raise RefusedRequestError(TEXT)


async def _later(response: Any, delay_ms: int) -> Any:
    await asyncio.sleep(delay_ms / 1000)
    return await response if inspect.isawaitable(response) else response
