"""Faults that a test injects into the handling of requests.

They are wrapped around the handlers, so a broker without them has no cost. See fault.py for what
they are.

A request that a fault may be about is served in slices, unless it is a Produce of one batch. So its
handler begins only once, and no fault is asked twice about one request. Of several faults that are
about it, all delay it, and only the first of the others changes its answer. Faults in different
partitions can come together.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from random import Random
from typing import Any
from uuid import uuid4

from odradek.broker.producing.produced_batches import owned
from odradek.broker.producing.single_batch import SingleBatch
from odradek.broker.requests.answer import RefusedRequestError
from odradek.broker.requests.context import RequestContext, ServedVersions
from odradek.broker.requests.error_responses import error_response
from odradek.broker.requests.route import Handler
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.compiler import NotSmallError
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.schema import VersionRange

from .fault import Fault, FaultEvent
from .partition_errors import TEXT, Fail, PartitionErrors, result_of

logger = logging.getLogger("odradek.testing")

EVENTS_KEPT = 10_000  # of one script


class Faults:
    """The faults that are set now; `clear` removes them.

    `handlers` are those that the faults are for, each with the faults of its API.
    """

    def __init__(self, handlers: Mapping[ApiKey, Handler]) -> None:
        self._scripts: dict[str, Script] = {}
        self._active: list[Script] = []
        self._max_versions: dict[ApiKey, int] = {}
        self._waits = Waits()
        self.handlers = {key: self._around(handle) for key, handle in handlers.items()}

    def clear(self) -> None:
        """Remove all faults. Requests that they delay go on in the next turn of the loop."""
        self._waits.end()
        self._scripts.clear()
        self._active.clear()
        self._max_versions.clear()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Delay no request, and let no fault fire, until the end of the `with`."""
        self._waits.end()
        active, self._active = self._active, []
        try:
            yield
        finally:
            self._active = active

    def inject(self, faults: Iterable[Fault]) -> str:
        """Begin a script, and return its id."""
        script, script_id = Script(faults), uuid4().hex
        self._scripts[script_id] = script
        self._active.append(script)
        return script_id

    def script(self, script_id: str) -> Script:
        """Return a script, also after its end. Raises ApiError if it was cleared."""
        try:
            return self._scripts[script_id]
        except KeyError:
            text = "the broker does not have these faults any more"
            raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, text) from None

    def remove(self, script_id: str) -> None:
        """End a script; nothing happens if it was cleared."""
        self._active = [each for each in self._active if each is not self._scripts.get(script_id)]

    def pretend(self, max_versions: Mapping[ApiKey, int]) -> None:
        """Serve no version above these. -1: the API is not served at all."""
        self._max_versions.update(max_versions)

    # -- the handlers -----------------------------------------------------------------------------

    def _around(self, handle: Handler) -> Handler:
        @functools.wraps(handle)
        def handle_with_faults(context: RequestContext, request: Any) -> Any:
            if self._max_versions:
                self._limit_versions(context)
            if not self._active or request is None:
                return handle(context, request)
            if not any(each.may_change(context) for each in self._active):
                return handle(context, request)
            if isinstance(request, SingleBatch):
                request = request.whole()
            elif context.slices is None:
                raise NotSmallError
            changed = ChangedRequest(context, request, self._waits)
            for script in self._active:
                script.change(changed)
            self._active = [each for each in self._active if each.current is not None]
            return changed.handle(handle)

        return handle_with_faults

    def _limit_versions(self, context: RequestContext) -> None:
        key = context.api_key
        highest = self._max_versions.get(key)
        if highest is not None and context.api_version > highest:
            raise RefusedRequestError(f"{key.name} v{context.api_version}: {TEXT}")
        if key is ApiKey.API_VERSIONS:
            context.served = ServedVersions(
                self._limited(context.served.advertised), self._limited(context.served.accepted)
            )

    def _limited(self, versions: Mapping[ApiKey, VersionRange]) -> dict[ApiKey, VersionRange]:
        limited = {}
        for key, (lowest, highest) in versions.items():
            limit = min(highest, self._max_versions.get(key, highest))
            if limit >= lowest:
                limited[key] = VersionRange(lowest, limit)
        return limited


class Script:
    """Faults, one after the other: each begins when the one before is used up.

    `fired` counts the requests that they have changed. `events` are the last of these.
    """

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.fired = 0
        self.events: deque[FaultEvent] = deque(maxlen=EVENTS_KEPT)
        self._faults = list(faults)
        self._index = -1
        self._begin_next()

    @property
    def current(self) -> Fault | None:
        """The fault that may fire now."""
        return self._faults[self._index] if self._index < len(self._faults) else None

    def may_change(self, context: RequestContext) -> bool:
        """Whether the fault may concern requests of this kind, whatever they name."""
        fault = self.current
        return (
            fault is not None
            and fault.api_key in (None, context.api_key)
            and fault.node in (None, context.broker.nodes.own_id)
            and fault.client_id in (None, context.client_id)
        )

    def change(self, request: ChangedRequest) -> None:
        """Let the fault fire if its turn has come."""
        fault = self.current
        if fault is None or not self.may_change(request.context):
            return
        fire = request.match(fault)
        if fire is None:
            return
        self._matches += 1
        if self._matches <= fault.after:
            return
        if fault.probability < 1 and self._random.random() >= fault.probability:
            return
        fire()
        self._note(fault, request.context)

    def _note(self, fault: Fault, context: RequestContext) -> None:
        self.fired += 1
        self._times += 1
        node = context.broker.nodes.own_id
        self.events.append(
            FaultEvent(self._index, self._matches, context.api_key, node, context.client_id)
        )
        logger.debug("%s v%d: %s", context.api_key.name, context.api_version, fault)
        if self._times == fault.times:
            self._begin_next()

    def _begin_next(self) -> None:
        self._index += 1
        while self.current is not None and self.current.times == 0:
            self._index += 1
        self._matches = self._times = 0
        if self.current is not None:
            self._random = Random(self.current.seed)  # it must be repeatable


class Waits:
    """The waits of requests, from one `end` to the next.

    `ends` counts the ends. A request that was delayed before one of them does not wait after it.
    """

    def __init__(self) -> None:
        self.ends = 0
        self._waiting: set[asyncio.Future[None]] = set()

    async def wait(self, duration_ms: int, ends: int) -> None:
        """Wait so long, or until there are more ends than `ends`."""
        if not duration_ms or self.ends > ends:
            return
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        timer = loop.call_later(duration_ms / 1000, _end, ended)
        self._waiting.add(ended)
        try:
            await ended
        finally:
            self._waiting.discard(ended)
            timer.cancel()

    def end(self) -> None:
        """End all waits, and those that requests have still before them."""
        self.ends += 1
        for ended in self._waiting:
            _end(ended)


def _end(ended: asyncio.Future[None]) -> None:
    if not ended.done():
        ended.set_result(None)


async def _result_of_shielded(served: asyncio.Future[Any]) -> Any:
    return await asyncio.shield(served)


class ChangedRequest:
    """A request, and what faults change of it."""

    def __init__(self, context: RequestContext, request: Any, waits: Waits) -> None:
        self.context = context
        self._wait = functools.partial(waits.wait, ends=waits.ends)
        # It may be served later, when the receive buffer has other bytes.
        self._request = owned(context, request) if isinstance(request, ProduceRequest) else request
        self._partitions = PartitionErrors(context, self._request)
        self._fault: Fault | None = None  # that decides about the whole request
        self._before_ms = self._after_ms = 0

    def match(self, fault: Fault) -> Callable[[], None] | None:
        """Return what lets a fault change this request, or None if it is not about it."""
        fail: Fail | None = None
        if fault.fails_partitions and self._fault is not None:
            return None
        if fault.fails_request and (self._fault is not None or self._partitions):
            return None
        if fault.fails_partitions:
            fail = self._partitions.choose(fault.topic, fault.partition)
            if fail is None:
                return None
        elif fault.names_places and not self._partitions.find(fault.topic, fault.partition):
            return None

        def fire() -> None:
            self._before_ms += fault.delay_before_ms
            self._after_ms += fault.delay_after_ms
            if fail is not None and fault.error_code is not None:
                fail(fault.error_code)
            if fault.fails_request:
                self._fault = fault

        return fire

    def handle(self, handle: Handler) -> Any:
        """Serve the request. Raises RefusedRequestError to cut the connection, or later."""
        if not (self._fault or self._partitions or self._before_ms or self._after_ms):
            return handle(self.context, self._request)
        if not self._before_ms:
            return self._serve(handle)
        # As in Kafka, a request that waits to be served is served, also if its client is gone.
        served = asyncio.ensure_future(self._serve(handle))
        served.add_done_callback(lambda done: done.cancelled() or done.exception())
        return _result_of_shielded(served)  # a coroutine, whose ApiError is answered

    async def _serve(self, handle: Handler) -> Any:
        cut = None if self._fault is None else self._fault.cut
        await self._wait(self._before_ms)
        if cut == "before_work":
            raise RefusedRequestError(TEXT)
        response = await self._response(handle)
        await self._wait(self._after_ms)
        if cut == "before_answer":
            raise RefusedRequestError(TEXT)
        if cut == "after_answer":
            await asyncio.sleep(0)  # `ends` counts after a response that the connection waited for
            self.context.session.ends = True
        return response

    async def _response(self, handle: Handler) -> Any:
        code = None if self._fault is None else self._fault.error_code
        if self._partitions:
            response = await self._partitions.serve(handle)
        elif code is None:
            return await result_of(handle(self.context, self._request))
        elif getattr(self._request, "acks", None) == 0:
            response = None
        else:
            version = self.context.api_version
            return error_response(self._request, version, code, TEXT, self.context.step)
        if response is None:
            raise RefusedRequestError(TEXT)  # as a Produce that fails without a response
        return response
