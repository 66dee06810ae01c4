"""What depends only on the API and version of a request: it is looked up once."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from odradek.broker.common.traffic import RequestTraffic
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.compiler import Codec
from odradek.protocol.headers import RequestHeader

from .context import RequestContext

Handler = Callable[[RequestContext, Any], Any]

RESPONSE_HEADER = struct.Struct(">ii")  # the size of what follows, and the correlation id
_FLEXIBLE_HEADER = struct.Struct(">iiB")  # and no tagged fields
_SIZE_BYTES = 4


@dataclass(frozen=True, slots=True)
class Route:
    """The constants of one API and version.

    `codec` reads the request; it is None if the body is not read. `counts` is None if no metrics
    are kept. `is_sliced`: each request is served in slices, also a small one. A request that waits
    may be cancelled when its client disconnects, and its response may have to wait for what a
    coordinator has written. `shows_writes`: so may a response that is there at once.
    """

    key: ApiKey
    version: int
    codec: Codec | None
    handle: Handler
    flexible_header: bool
    counts: RequestTraffic | None
    is_sliced: bool
    is_cancelled_on_disconnect: bool
    may_await_coordinator: bool
    shows_writes: bool

    def frame(self, body: bytearray, correlation_id: int) -> bytes:
        """Frame a response that a handler has encoded."""
        if self.flexible_header:
            size = _FLEXIBLE_HEADER.size - _SIZE_BYTES + len(body)
            return _FLEXIBLE_HEADER.pack(size, correlation_id, 0) + body
        return RESPONSE_HEADER.pack(_SIZE_BYTES + len(body), correlation_id) + body


class KnownTarget(Protocol):
    """What the first bytes of a request say."""

    @property
    def route(self) -> Route: ...

    @property
    def client_id(self) -> str: ...


class KnownRequest(Protocol):
    """A request that is handed to its handler as it is, because its first bytes are known."""

    @property
    def target(self) -> KnownTarget: ...

    @property
    def correlation_id(self) -> int: ...


class KnownFrames(Protocol):
    """Recognises requests of one API by their first bytes."""

    @property
    def key(self) -> ApiKey:
        """The API."""

    def find(self, frame: memoryview) -> KnownRequest | None:
        """Return the request of a frame, or None if it must be decoded."""

    def keep(self, frame: memoryview, header: RequestHeader, request: Any, route: Route) -> None:
        """Remember the first bytes of a decoded request, if others may begin with them."""
