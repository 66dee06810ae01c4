"""From the bytes of a request to the handler of its API, and back to the bytes of an answer.

Everything that depends only on (API, version) is looked up once and kept in a route: the compiled
reader, the handler, and whether the response header is flexible. The writer is found by the class
of the response, so that a handler that answers is all there is to know.

A request that can't be decoded, or of an API or version that is not served, closes the connection,
as Kafka does: there is no way to answer in a form that the client would understand. The one
exception is ApiVersions, by which a client finds out: an unknown version of it is answered in v0
(KIP-511).
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from msgspec import Struct

from ...protocol.api_keys import ApiKey
from ...protocol.headers import has_flexible_response_header, read_request_header
from ...protocol.schema import DecodeError, Message, Splices, codec_for
from .context import RequestContext
from .lost_writes import answer_again

if TYPE_CHECKING:
    from ...storage.log import PartitionLog
    from ..broker import Broker
    from ..disk.log_sync import Sync
    from ..network.connection import Connection

Again = Callable[[Message], Awaitable[Message]]
Handler = Callable[[RequestContext, Any], Any]

_SIZE = struct.Struct(">i")
_RESPONSE_HEADER = struct.Struct(">ii")
_KEY_AND_VERSION = struct.Struct(">hh")
# Whose answers are no coordinator's: what they wait for, they know themselves.
_WAIT_FOR_THEIR_OWN = (ApiKey.PRODUCE, ApiKey.FETCH)


class Refusal(Exception):  # noqa: N818 # it is what the broker does, not what went wrong in it
    """A request that is not answered: its connection is closed, with this as the reason."""


class Route(NamedTuple):
    """What is known of all requests of one API and version."""

    name: str
    version: int
    decode: Callable[[memoryview, int], tuple[Any, int]]
    handle: Handler
    flexible_header: bool


class Answer:
    """A response and what is needed to write it; `pending` where it is still to come.

    `may_tell_of_writes`: a coordinator may have written what it tells, see Dispatcher.cover; then
    `again` is what to do if that is lost.
    """

    __slots__ = (
        "_correlation_id",
        "_flexible_header",
        "_version",
        "again",
        "may_tell_of_writes",
        "pending",
        "response",
    )

    def __init__(self, correlation_id: int, version: int, flexible_header: bool) -> None:
        self.pending: Awaitable[Message | None] | None = None
        self.response: Any = None
        self.may_tell_of_writes = False
        self.again: Again | None = None
        self._correlation_id = correlation_id
        self._version = version
        self._flexible_header = flexible_header

    def write(self, out: bytearray, splices: Splices) -> None:
        """Append the framed response; `splices` says where file slices belong."""
        out += _RESPONSE_HEADER.pack(0, self._correlation_id)
        if self._flexible_header:
            out.append(0)
        codec_for(self.response.__class__, self._version).write(self.response, out, splices)
        size = len(out) - _SIZE.size
        for _, records in splices:
            size += records.size_bytes
        _SIZE.pack_into(out, 0, size)


class Dispatcher:
    """Serves the requests of all connections, by the table of handlers."""

    def __init__(self, broker: Broker, handlers: Mapping[ApiKey, Handler]) -> None:
        self._broker = broker
        self._handlers = handlers
        self._routes: dict[tuple[int, int], Route] = {}
        self._now_ms = broker.now_ms

    def dispatch(self, connection: Connection, frame: memoryview) -> Answer | None:
        """Serve one request. None when it wants no answer (Produce with acks=0).

        Raises DecodeError and Refusal: the connection must be closed.
        """
        try:
            header, position = read_request_header(frame)
        except DecodeError:
            if len(frame) >= _KEY_AND_VERSION.size:
                # Where nobody serves it, that says more than what is wrong with the header.
                self._route(*_KEY_AND_VERSION.unpack_from(frame))
            raise
        route = self._routes.get((header.api_key, header.api_version))
        if route is None:
            route = self._route(header.api_key, header.api_version)
        request, _ = route.decode(frame, position)
        if self._broker.log_syncs.due:  # a timer's: no request waits for them
            self._broker.log_syncs.due.clear()
        context = RequestContext(
            self._broker, connection, header.api_version, header.client_id, self._now_ms()
        )
        result = route.handle(context, request)
        if result is None:
            return None
        answer = Answer(header.correlation_id, route.version, route.flexible_header)
        if isinstance(result, Struct):  # to ask Message itself takes twice as long
            answer.response = result
            if self._broker.log_syncs.due:
                due = self._broker.log_syncs.take_due()
                answer.again = partial(answer_again, route.handle, context, request)
                answer.pending = self._when_synced(answer, {due[log]: log for log in due})
        else:
            answer.pending = result
            answer.may_tell_of_writes = header.api_key not in _WAIT_FOR_THEIR_OWN
            if answer.may_tell_of_writes:
                answer.again = partial(answer_again, route.handle, context, request)
        return answer

    def cover(self, answer: Answer) -> Awaitable[Message] | None:
        """What an answer that has come late must wait for besides; None: it may leave.

        It may tell of what a coordinator has written just now, on whosever behalf, to a log whose
        flush.messages was reached by that.
        """
        syncs = self._broker.log_syncs.coordinators
        if not syncs or not answer.may_tell_of_writes:
            return None
        answer.may_tell_of_writes = False
        return self._when_synced(answer, dict(syncs))

    async def _when_synced(self, answer: Answer, syncs: Mapping[Sync, PartitionLog]) -> Message:
        """The answer that tells of writes to logs whose flush.messages is reached, once it is true.

        Where a coordinator's records could not be synced, they count for nothing any more, and the
        coordinator is gone with its log.
        """
        await asyncio.wait(syncs)
        lost = [log for sync, log in syncs.items() if sync.exception() is not None]
        for log in lost:
            self._broker.coordinator_lost(log)
        response: Message = answer.response
        if lost and answer.again is not None:
            response = await answer.again(response)
        return response

    def _route(self, api_key: int, version: int) -> Route:
        handle = self._handlers.get(api_key)  # type: ignore[call-overload] # an int finds its IntEnum
        if handle is None:
            raise Refusal(f"API key {api_key} is not served")
        key = ApiKey(api_key)
        spec = request_class(handle).SPEC
        if version not in spec.versions:
            if key is not ApiKey.API_VERSIONS:
                raise Refusal(f"{key.name} v{version} is not served, only {spec.versions}")
            route = Route(key.name, 0, _no_request, handle, flexible_header=False)
        else:
            codec = codec_for(request_class(handle), version)
            flexible = has_flexible_response_header(key, version in spec.flexible)
            route = Route(key.name, version, codec.decode, handle, flexible)
        self._routes[api_key, version] = route
        return route


def _no_request(frame: memoryview, position: int) -> tuple[None, int]:  # noqa: ARG001 # a reader's signature
    """The body of an ApiVersions request of a version we do not know: not ours to read."""
    return None, position


def request_class(handle: Handler) -> type[Message]:
    """The message that a handler takes, as its annotation says."""
    annotation = handle.__annotations__["request"]
    if isinstance(annotation, str):
        annotation = handle.__globals__[annotation]
    if isinstance(annotation, UnionType):  # ApiVersions: None where the version is unknown
        annotation = get_args(annotation)[0]
    return annotation  # type: ignore[no-any-return] # handlers annotate their request
