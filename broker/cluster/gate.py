"""What a node does not hear, or answers late: it is paused, slow, or cut off from clients.

A request that comes meanwhile is served when the node can be reached again, as after the network
has sent its bytes once more. Its client may have given up by then.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from contextlib import suppress
from functools import wraps
from typing import Any

from odradek.broker.producing.produced_batches import owned
from odradek.broker.producing.single_batch import SingleBatch
from odradek.broker.requests.answer import RefusedRequestError
from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.route import Handler
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.produce import ProduceRequest


class Gate:
    """Between the clients of a node and its handlers."""

    def __init__(self) -> None:
        self.delay_ms = 0
        self.is_paused = False
        self.cut_clients: set[str | None] = set()
        self._changed = asyncio.Event()
        self._kills = 0

    def update(
        self,
        *,
        delay_ms: int | None = None,
        is_paused: bool | None = None,
        cut_clients: set[str | None] | None = None,
    ) -> None:
        """Change what is given. Requests that wait look again whether they may go on."""
        if delay_ms is not None:
            self.delay_ms = delay_ms
        if is_paused is not None:
            self.is_paused = is_paused
        if cut_clients is not None:
            self.cut_clients = cut_clients
        self._changed.set()
        self._changed = asyncio.Event()

    def open(self) -> None:
        """Let everything pass at once."""
        self.update(delay_ms=0, is_paused=False, cut_clients=set())

    def drop(self) -> None:
        """Refuse the requests that wait to be served: the node is killed. Then let all pass."""
        self._kills += 1
        self.open()

    def around(self, handlers: Mapping[ApiKey, Handler]) -> dict[ApiKey, Handler]:
        """The handlers, behind this gate."""
        return {key: self._around(handle) for key, handle in handlers.items()}

    def _around(self, handle: Handler) -> Handler:
        @wraps(handle)
        def serve(context: RequestContext, request: Any) -> Any:
            if self._is_shut(context):
                return serve_later(context, _kept(context, request), self._kills)
            response = handle(context, request)
            if inspect.isawaitable(response) or self.delay_ms:
                return self._answer(context, response)
            return response

        async def serve_later(context: RequestContext, request: Any, kills: int) -> Any:
            await self._pass(context)
            if kills != self._kills:
                raise RefusedRequestError("the node was killed before it served the request")
            return await self._answer(context, handle(context, request))

        return serve

    async def _answer(self, context: RequestContext, response: Any) -> Any:
        if inspect.isawaitable(response):
            response = await response
        await self._delay()
        await self._pass(context)
        return response

    async def _delay(self) -> None:
        """Wait as long as the node is slow; less if that changes meanwhile."""
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        while (left_s := begun_s + self.delay_ms / 1000 - loop.time()) > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), left_s)

    def _is_shut(self, context: RequestContext) -> bool:
        return self.is_paused or (bool(self.cut_clients) and context.client_id in self.cut_clients)

    async def _pass(self, context: RequestContext) -> None:
        while self._is_shut(context):
            await self._changed.wait()


def _kept(context: RequestContext, request: Any) -> Any:
    """The request without views of the receive buffer, which is used again."""
    if isinstance(request, SingleBatch):
        request = request.whole()
    return owned(context, request) if isinstance(request, ProduceRequest) else request
