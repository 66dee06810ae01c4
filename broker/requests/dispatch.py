"""Decodes requests, calls the handler of their API, and encodes the responses.

What depends only on (API, version) is looked up once and kept in a Route: the codec of the request,
the handler, and whether the response header is flexible. The codec of a response is found by its
class.

A request that cannot be decoded, or whose API or version is not served, closes the connection, as
in Kafka: there is no response that the client would understand. ApiVersions is the exception,
because clients use it to find out what is served: an unknown version of it is answered in v0
(KIP-511).

A small request of the APIs that clients use all the time is served at once. Any other is served in
slices (broker/turns/slices.py): decoding, handling and encoding give way to other requests. A
handler may find that a small request asks for a lot. It then raises NotSmallError, before it has
changed anything, and the request is served again from its start, in slices.
"""

from __future__ import annotations

import asyncio
import inspect
import struct
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from types import UnionType
from typing import Any, get_args

from msgspec import Struct

from odradek.broker.broker import Broker
from odradek.broker.common.traffic import TIMED_EVERY_MS
from odradek.broker.disk.log_sync import Sync
from odradek.broker.quotas.client_quotas import Client
from odradek.broker.quotas.request_meter import RequestMeter
from odradek.broker.security.sasl.authenticator import Authenticator, LoginFailedError
from odradek.broker.security.session import Session
from odradek.broker.turns.message_parts import parts_of
from odradek.broker.turns.slices import Slices, TooManyItemsError
from odradek.coordinator.runtime.steps import free
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.compiler import NotSmallError
from odradek.protocol.headers import (
    RequestHeader,
    has_flexible_response_header,
    read_request_header,
)
from odradek.protocol.schema import DecodeError, Message, codec_for

from .answer import Answer, Framed, RawToken, RefusedRequestError, SlicedAnswer
from .context import RequestContext, ServedVersions
from .error_responses import handle_or_refuse
from .lost_writes import retry_if_lost
from .route import Handler, KnownFrames, Route
from .timed_requests import handle_timed

_KEY_AND_VERSION = struct.Struct(">hh")
# These responses never reveal what a coordinator has written. Handlers of these APIs that need an
# fsync wait for it themselves.
_INDEPENDENT_OF_COORDINATORS = (
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
)
# Nor do these, if they are answered at once: they show metadata, offsets in logs, or that a group
# rebalances.
_SHOW_NO_WRITES = (
    *_INDEPENDENT_OF_COORDINATORS,
    ApiKey.API_VERSIONS,
    ApiKey.METADATA,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    ApiKey.LIST_OFFSETS,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.FIND_COORDINATOR,
    ApiKey.HEARTBEAT,
)
# These requests wait for what other clients do. They are cancelled when their own client
# disconnects; the others run to their end, as all do in Kafka.
_CANCELLED_ON_DISCONNECT = (
    ApiKey.FETCH,
    ApiKey.SHARE_FETCH,
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
)
# A small request of these APIs takes little time. A small request of any other may still read much
# of the broker's state.
_SERVED_AT_ONCE = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.OFFSET_COMMIT,
        ApiKey.FIND_COORDINATOR,
        ApiKey.JOIN_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.API_VERSIONS,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.END_TXN,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        ApiKey.PUSH_TELEMETRY,
        ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.SHARE_FETCH,
        ApiKey.SHARE_ACKNOWLEDGE,
        ApiKey.STREAMS_GROUP_HEARTBEAT,
    }
)
# A request of at most this many bytes that cannot be decoded is refused at once.
_SHORT_BYTES = 1024
# At most this many items are decoded in one slice.
_ITEMS_OF_A_SLICE = 500
# An HTTP client may be throttled for longer, but does not wait for longer at once.
_LONGEST_WAIT_MS = 5_000


class Dispatcher:
    """Serves the requests of all connections by the table of handlers.

    `known` recognises requests of one frequent API by their first bytes. They go to the handler
    without being decoded.
    """

    def __init__(
        self,
        broker: Broker,
        handlers: Mapping[ApiKey, Handler],
        known: KnownFrames,
    ) -> None:
        self._broker = broker
        self._handlers = handlers
        self._served = served_versions(handlers)
        self._routes: dict[tuple[int, int], Route] = {}
        self._known = known
        self._now_ms = broker.clock.now_ms
        self._quotas = broker.quotas
        self._log_syncs = broker.log_syncs

    def dispatch(self, session: Session, frame: memoryview) -> Answer | bytes | None:
        """Serve one request. Returns None if the request has no response (Produce with acks=0).

        Returns bytes, the framed response, if the handler has encoded it. While quotas are in
        force, a request with acks=0 has an answer too, with a meter and no response. Raises
        DecodeError and RefusedRequestError: the connection must be closed.
        """
        if session.guard is not None:
            answer = self._guarded(session, session.guard, frame)
            if answer is not None:
                return answer
        known = self._known.find(frame)
        if known is not None:
            target, correlation_id = known.target, known.correlation_id
            return self._serve(
                session, target.route, target.client_id, correlation_id, known, len(frame)
            )
        route, header, position = self._read_header(frame)
        try:
            request = self._read_small(route, frame, position)
            if route.key is self._known.key:
                self._known.keep(frame, header, request, route)
            return self._serve(
                session, route, header.client_id, header.correlation_id, request, len(frame)
            )
        except NotSmallError:
            serve = partial(self._serve_in_slices, session, route, header, position)
            sliced = SlicedAnswer(self._broker.turns.slices, serve)
            sliced.is_cancelled_on_disconnect = route.is_cancelled_on_disconnect
            return sliced

    def _serve(
        self,
        session: Session,
        route: Route,
        client_id: str | None,
        correlation_id: int,
        request: Any,
        frame_bytes: int,
        slices: Slices | None = None,
    ) -> Answer | bytes | None:
        """Handle a decoded request. Returns what `dispatch` returns.

        Raises NotSmallError if the handler does: then the request is to be served in slices.
        """
        self._log_syncs.due.clear()  # a timer started them; this request need not wait
        lost_before = self._log_syncs.lost_count
        meter = (
            self._meter(session, client_id, route, frame_bytes) if self._quotas.is_active else None
        )
        if slices is not None and meter is not None:
            slices.on_begin, slices.on_end = meter.resume, meter.pause
        now_ms = self._now_ms()
        context = RequestContext(
            self._broker,
            session,
            self._served,
            route.version,
            client_id,
            now_ms,
            route.key,
            meter,
            slices,
        )
        handle, counts = route.handle, route.counts
        if counts is not None:
            # One request in each TIMED_EVERY_MS is timed. The others are only counted.
            if 0 <= now_ms - counts.timed_at_ms < TIMED_EVERY_MS:
                counts.untimed += 1
            else:
                handle = partial(handle_timed, counts, handle)
        try:
            result = handle_or_refuse(handle, context, request)
        except NotSmallError:
            if counts is not None and handle is route.handle:
                counts.untimed -= 1  # it is counted when it is served
            raise
        if result.__class__ is bytearray:  # encoded by the handler, which does so without a meter
            return route.frame(result, correlation_id)
        if result is None and meter is None:
            return None
        answer = Answer(correlation_id, route.version, route.flexible_header)
        if meter is not None:
            result = self._metered(answer, meter, request, result)
            if result is None:
                return answer
        answer.lost_before = lost_before
        self._fill(answer, route, context, request, result)
        return answer

    async def _serve_in_slices(
        self,
        session: Session,
        route: Route,
        header: RequestHeader,
        position: int,
        sliced: SlicedAnswer,
        frame: memoryview,
        slices: Slices,
    ) -> Framed | None:
        """Serve a request as `dispatch`. Returns the framed response and its splices."""
        request = self._read_in_slices(route, frame, position, slices)
        answer = self._serve(
            session,
            route,
            header.client_id,
            header.correlation_id,
            request,
            len(frame),
            slices,
        )
        if answer is None or isinstance(answer, bytes):
            return None if answer is None else (bytearray(answer), [])
        await self.complete(answer)
        sliced.meter = answer.meter
        if answer.meter is not None:
            answer.meter.resume()  # it was paused when the response was there
        framed = None if answer.response is None else answer.encoded_in_slices(slices)
        if slices.is_first:  # the messages are small, and freed at once when this returns
            return framed
        # Large messages are freed piece by piece, before a reference to a whole one would go.
        parts = parts_of(request, slices)
        if isinstance(answer.response, Struct):
            parts += parts_of(answer.response, slices)
        del request, answer
        free(slices.step, parts)
        return framed

    def ask(
        self, session: Session, client_id: str, request: Message, size_bytes: int = 0
    ) -> asyncio.Task[Message]:
        """Serve a request that this process makes itself, in slices. It is never encoded.

        It may do what the session's principal may, and is charged to its quotas, with `size_bytes`.
        The task ends when the throttle time is over. It raises ApiError where a client's connection
        would be closed.
        """
        spec = type(request).SPEC
        assert spec.key is not None
        route = self._route(spec.key, spec.advertised.highest)
        serve = partial(self._serve_own, session, client_id, route, request, size_bytes)
        return self._broker.turns.slices.run(serve)

    async def _serve_own(
        self,
        session: Session,
        client_id: str,
        route: Route,
        request: Message,
        size_bytes: int,
        slices: Slices,
    ) -> Message:
        answer = self._serve(session, route, client_id, 0, request, size_bytes, slices)
        assert isinstance(answer, Answer)  # only the frames of clients are answered by bytes
        await self.complete(answer)
        if answer.meter is not None:
            answer.meter.finish()
            if answer.meter.throttle_ms:
                await asyncio.sleep(min(answer.meter.throttle_ms, _LONGEST_WAIT_MS) / 1000)
        response: Message = answer.response
        return response

    async def complete(self, answer: Answer) -> None:
        """Wait until the response of an answer is there, and may be sent."""
        pending = answer.pending
        while pending is not None:
            answer.response = await pending
            pending = self.wait_for_coordinators(answer)

    def _read_header(self, frame: memoryview) -> tuple[Route, RequestHeader, int]:
        """Return the route, the header, and the position of the body. Raises as `dispatch`."""
        try:
            header, position = read_request_header(frame)
        except DecodeError:
            self._check_api(frame)
            raise
        route = self._routes.get((header.api_key, header.api_version))
        if route is None:
            route = self._route(header.api_key, header.api_version)
        return route, header, position

    def _read_in_slices(
        self, route: Route, frame: memoryview, position: int, slices: Slices
    ) -> Any:
        """Decode a request. Raises DecodeError and RefusedRequestError."""
        assert route.codec is not None
        try:
            return route.codec.decode_small(frame, position, _ITEMS_OF_A_SLICE)[0]
        except NotSmallError:
            pass
        try:
            return route.codec.decode_in_steps(frame, position, slices.count)[0]
        except TooManyItemsError as error:
            raise RefusedRequestError(f"{route.key.name} v{route.version}: {error}") from None

    def _read_small(self, route: Route, frame: memoryview, position: int) -> Any:
        """Decode a request that is served at once. Raises DecodeError for a short frame.

        Raises NotSmallError if the request is to be served in slices.
        """
        if route.is_sliced:
            raise NotSmallError
        if route.codec is None:
            return None
        try:
            return route.codec.decode_small(frame, position)[0]
        except NotSmallError:
            # It may be invalid, for example have a corrupt count. A short frame is decoded here to
            # find out: that raises DecodeError then. A valid one is decoded again, in slices.
            if len(frame) <= _SHORT_BYTES:
                route.codec.decode(frame, position)
            raise

    def _fill(
        self, answer: Answer, route: Route, context: RequestContext, request: Any, result: Any
    ) -> None:
        """Set what the connection sends, or waits for: `result` is a response, or pending."""
        if isinstance(result, Struct):  # testing for Message takes twice as long
            answer.response = result
            syncs: Iterable[Sync]
            if self._log_syncs.due:
                syncs = self._log_syncs.take_due().values()
            elif self._log_syncs.coordinators and route.shows_writes:
                # The response may reveal what another request has written.
                syncs = self._log_syncs.coordinators
            else:
                return
            if answer.meter is not None:
                answer.meter.pause()  # until it is encoded
            answer.pending = self._when_synced(answer, syncs)
        else:
            answer.pending = result
            answer.is_cancelled_on_disconnect = route.is_cancelled_on_disconnect
            answer.awaits_coordinator = route.may_await_coordinator
            if not answer.awaits_coordinator:
                return
        answer.retry = partial(retry_if_lost, route.handle, context, request)

    def _guarded(self, session: Session, guard: Authenticator, frame: memoryview) -> Answer | None:
        """Check a frame of a client that is logging in, or whose login has a deadline.

        Returns the answer to a token without a request's header, and None for a request that may
        be served. Raises RefusedRequestError.
        """
        if guard.takes_raw_tokens:
            try:
                return RawToken(guard.evaluate(session, bytes(frame)).token)
            except LoginFailedError:
                answer = RawToken(b"")  # sent after the delay, which slows down guessing
                answer.pending = self._broker.security.logins.delayed(session, None)
                return answer
        api_key, _ = _KEY_AND_VERSION.unpack_from(frame) if len(frame) >= 4 else (-1, 0)
        if not guard.admits(session, api_key):
            raise RefusedRequestError
        return None

    def _check_api(self, frame: memoryview) -> None:
        """Raise RefusedRequestError if the API is not served: it explains a header that is bad."""
        if len(frame) >= _KEY_AND_VERSION.size:
            self._route(*_KEY_AND_VERSION.unpack_from(frame))

    def _meter(
        self, session: Session, client_id: str | None, route: Route, size_bytes: int
    ) -> RequestMeter | None:
        """What measures a request, or None before the client is authenticated."""
        if session.principal is None:
            return None
        client = Client(session.principal.name, client_id or "")
        return RequestMeter(self._quotas, client, route.key, route.version, size_bytes)

    def _metered(self, answer: Answer, meter: RequestMeter, request: Any, result: Any) -> Any:
        """Settle what the request has used, now or when its response is there."""
        answer.meter = meter
        if result is None or isinstance(result, Struct):
            return meter.settle(request, result)
        meter.pause()
        return self._settle_later(meter, request, result)

    async def _settle_later(
        self, meter: RequestMeter, request: Any, pending: Awaitable[Any]
    ) -> Message | None:
        response: Message | None = meter.settle(request, await meter.timed(pending))
        meter.pause()  # until it is encoded: others may be served before
        return response

    def wait_for_coordinators(self, answer: Answer) -> Awaitable[Message] | None:
        """Return the fsyncs that a response must wait for after it had to wait, or None.

        The response may reveal what a coordinator has just written for another request, to a log
        that has reached its flush.messages. It is sent once that write is synced. An fsync may also
        have failed while the response was made.
        """
        syncs, lost = self._log_syncs.coordinators, self._log_syncs.lost_count
        if not answer.awaits_coordinator or (not syncs and lost == answer.lost_before):
            return None
        answer.awaits_coordinator = False
        return self._when_synced(answer, syncs)

    async def _when_synced(self, answer: Answer, syncs: Iterable[Sync]) -> Message:
        """Return the response when the syncs have ended. If any failed, handle the request again.

        A coordinator whose records could not be synced has lost its log (LogSyncs.on_lost).
        """
        running = list(syncs)
        if running:
            await asyncio.wait(running)
        response: Message = answer.response
        if answer.retry is not None and self._log_syncs.lost_count != answer.lost_before:
            response = await answer.retry(response)
            if answer.meter is not None:
                response = answer.meter.with_throttle_time(response)
        return response

    def _route(self, api_key: int, version: int) -> Route:
        handle = self._handlers.get(api_key)  # type: ignore[call-overload] # an int finds its IntEnum
        if handle is None:
            raise RefusedRequestError(f"API key {api_key} is not served")
        key = ApiKey(api_key)
        spec = request_class(handle).SPEC
        if version not in spec.versions:
            if key is not ApiKey.API_VERSIONS:
                raise RefusedRequestError(
                    f"{key.name} v{version} is not served, only {spec.versions}"
                )
            version_served, codec, is_flexible = 0, None, False
        else:
            version_served = version
            codec = codec_for(request_class(handle), version)
            is_flexible = has_flexible_response_header(key, version in spec.flexible)
        traffic = self._broker.traffic
        route = Route(
            key=key,
            version=version_served,
            codec=codec,
            handle=handle,
            flexible_header=is_flexible,
            counts=None if traffic is None else traffic.of_api(key, version_served),
            is_sliced=key not in _SERVED_AT_ONCE,
            is_cancelled_on_disconnect=key in _CANCELLED_ON_DISCONNECT,
            may_await_coordinator=key not in _INDEPENDENT_OF_COORDINATORS,
            shows_writes=key not in _SHOW_NO_WRITES,
        )
        self._routes[api_key, version] = route
        return route


def request_class(handle: Callable[[Any, Any], Any]) -> type[Message]:
    """The message class that a handler takes, by its annotation."""
    handle = inspect.unwrap(handle)
    annotation = handle.__annotations__["request"]
    if isinstance(annotation, str):
        annotation = handle.__globals__[annotation]
    if isinstance(annotation, UnionType):  # ApiVersions: None where the version is unknown
        annotation = get_args(annotation)[0]
    return annotation  # type: ignore[no-any-return] # handlers annotate their request


def served_versions(handlers: Mapping[ApiKey, Callable[[Any, Any], Any]]) -> ServedVersions:
    """The versions of each API that has a handler."""
    specs = {key: request_class(handle).SPEC for key, handle in handlers.items()}
    return ServedVersions(
        advertised={key: spec.advertised for key, spec in specs.items()},
        accepted={key: spec.versions for key, spec in specs.items()},
    )
