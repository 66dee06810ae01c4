"""What one request uses, and how long its client is throttled for it.

The response is sent at once and says the time; the connection then serves nothing until the time is
over (KIP-219). Only a Fetch is different: its response is empty, and its bytes are not counted.

The request quota is on the time in which the event loop works for a client, in per cent. The meter
is paused while a request waits (for records, other members, the disk). When the throttle time is
decided, the time to encode the response is not known yet: it is charged afterwards, and throttles a
later request.

Kafka: RequestHandlerHelper, KafkaApis.handleProduceRequest and handleFetchRequest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from typing import Any, TypeVar

from msgspec.structs import replace

from odradek.protocol.api_keys import ApiKey

from .client_quotas import Client, ThrottledError
from .quotas import Quotas

T = TypeVar("T")

# Their time is not limited: brokers send them, or clients that are not authenticated yet.
EXEMPT = frozenset({ApiKey.WRITE_TXN_MARKERS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
# From these versions on, a request above the quota on mutations is refused. An older client is
# throttled (KIP-599).
FIRST_STRICT_VERSION = {
    ApiKey.CREATE_TOPICS: 6,
    ApiKey.CREATE_PARTITIONS: 3,
    ApiKey.DELETE_TOPICS: 5,
}


class RequestMeter:
    """Meters one request. It starts when it is made; `throttle_ms` is set when it is settled."""

    __slots__ = (
        "_bandwidth_ms",
        "_client",
        "_is_exempt",
        "_key",
        "_mutations_until_ms",
        "_quotas",
        "_request_bytes",
        "_running_since_s",
        "_seconds",
        "_strict",
        "throttle_ms",
    )

    def __init__(
        self, quotas: Quotas, client: Client, key: ApiKey, version: int, request_bytes: int
    ) -> None:
        self.throttle_ms = 0
        self._quotas = quotas
        self._client = client
        self._key = key
        self._is_exempt = key in EXEMPT
        self._strict = version >= FIRST_STRICT_VERSION.get(key, 0)
        self._request_bytes = request_bytes
        self._mutations_until_ms = 0
        self._bandwidth_ms = 0
        self._seconds = 0.0
        self._running_since_s: float | None = quotas.seconds()

    # -- time -------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Stop counting the time: the request waits."""
        if self._running_since_s is not None:
            self._seconds += self._quotas.seconds() - self._running_since_s
            self._running_since_s = None

    def resume(self) -> None:
        """Count the time again."""
        if self._running_since_s is None:
            self._running_since_s = self._quotas.seconds()

    def finish(self) -> None:
        """Charge the time since the request was settled. It may only throttle later requests."""
        self._charge_time()

    def timed(self, pending: Awaitable[T]) -> Awaitable[T]:
        """Count the time that a coroutine works. What others do for a future is not counted."""
        return pending if isinstance(pending, asyncio.Future) else _Timed(self, pending)

    def _charge_time(self) -> int:
        """Charge the time since the last charge. Returns how long to throttle the client."""
        self.pause()
        self.resume()
        per_cent, self._seconds = self._seconds * 100, 0.0
        if self._is_exempt:
            return 0
        return self._quotas.request.charge(self._client, per_cent, self._quotas.timer_ms())

    # -- what handlers ask ------------------------------------------------------------------------

    def exempt(self) -> None:
        """Charge nothing for this request: it comes from a follower."""
        self._is_exempt = True

    def largest_fetch_bytes(self, asked_bytes: int) -> int:
        """The bytes that a Fetch may return. More would be throttled each time."""
        return int(min(asked_bytes, self._quotas.fetch.largest_amount(self._client)))

    def throttle_fetch(self, response_bytes: int) -> int:
        """Settle a Fetch. Returns how long to throttle the client; the response is then empty."""
        if self._is_exempt:
            return 0
        now_ms = self._quotas.timer_ms()
        bandwidth_ms = self._quotas.fetch.charge(self._client, response_bytes, now_ms)
        self.throttle_ms = max(bandwidth_ms, self._charge_time())
        if self.throttle_ms:
            self._quotas.fetch.charge(self._client, -response_bytes, now_ms)
        return self.throttle_ms

    def charge_fetch(self, response_bytes: int) -> None:
        """Charge records that are sent now, whatever the quota: the client is throttled after."""
        now_ms = self._quotas.timer_ms()
        self._bandwidth_ms = self._quotas.fetch.charge(self._client, response_bytes, now_ms)

    def take_permits(self, partition_count: int) -> None:
        """Take permits to create or delete partitions. Raises THROTTLING_QUOTA_EXCEEDED."""
        now_ms = self._quotas.timer_ms()
        try:
            throttle_ms = self._quotas.mutations.take(
                self._client, partition_count, now_ms, strict=self._strict
            )
        except ThrottledError as error:
            self._mutations_until_ms = now_ms + error.throttle_ms
            raise
        if throttle_ms:
            self._mutations_until_ms = now_ms + throttle_ms

    # -- the decision -----------------------------------------------------------------------------

    def settle(self, request: Any, response: Any) -> Any:
        """Decide how long to throttle the client. Returns the response with that time in it.

        The meter runs afterwards: a caller that cannot send the response at once must pause it.
        """
        self.resume()
        if self._key is ApiKey.FETCH:
            return response  # its handler has called `throttle_fetch`
        if self._key is ApiKey.PRODUCE:
            self.throttle_ms = self._quotas.produce.charge(
                self._client, self._request_bytes, self._quotas.timer_ms()
            )
            # Without a response, only the bytes count.
            self._is_exempt = request.acks == 0
            self.throttle_ms = max(self.throttle_ms, self._charge_time())
        else:
            mutations_ms = self._mutations_until_ms - self._quotas.timer_ms()
            self.throttle_ms = max(0, mutations_ms, self._bandwidth_ms, self._charge_time())
        return self.with_throttle_time(response)

    def with_throttle_time(self, response: Any) -> Any:
        """Return the response with the throttle time that `settle` has decided."""
        if self.throttle_ms and hasattr(response, "throttle_time_ms"):
            return replace(response, throttle_time_ms=self.throttle_ms)
        return response


class _Timed(Awaitable[T]):
    """An awaitable whose steps are metered."""

    def __init__(self, meter: RequestMeter, awaitable: Awaitable[T]) -> None:
        self._meter = meter
        self._awaitable = awaitable

    def __await__(self) -> Generator[Any, Any, T]:
        steps = self._awaitable.__await__()
        error: BaseException | None = None
        while True:
            self._meter.resume()
            try:
                waits_for = steps.send(None) if error is None else steps.throw(error)
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                self._meter.pause()
            try:
                yield waits_for
                error = None
            except BaseException as thrown:  # noqa: BLE001 # passed on to the awaitable
                error = thrown
