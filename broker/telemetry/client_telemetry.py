"""Serves the two requests of client telemetry.

    GetTelemetrySubscriptions   what the client is to push, and how often
    PushTelemetry               its metrics: they go to /metrics, and to a topic

A request that comes too soon is refused with THROTTLING_QUOTA_EXCEEDED. The rules and the order of
the checks are Kafka's, so clients see the same errors.
Kafka: ClientMetricsManager.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial

from odradek.broker.admin.subscriptions import Subscriptions
from odradek.broker.common.background_tasks import BackgroundTasks
from odradek.broker.security.session import Session
from odradek.coordinator.runtime.steps import Step, no_step
from odradek.protocol.compression import CompressionType
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.push_telemetry import PushTelemetryRequest
from odradek.protocol.primitives import ZERO_UUID, random_uuid

from .client_series import ClientSeries
from .instances import ClientInstance, ClientInstances, attributes_of
from .payloads import Payloads
from .pushed_records import PushedRecords

# In the order of preference.
ACCEPTED_COMPRESSION_TYPES = (
    CompressionType.ZSTD,
    CompressionType.LZ4,
    CompressionType.GZIP,
    CompressionType.SNAPPY,
)
_KNOWN_COMPRESSION_TYPES = frozenset(CompressionType)
RESERVED_IDS = (ZERO_UUID, bytes(15) + b"\x01")
# After these errors a client may ask for its subscription at once.
_ASK_AT_ONCE = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


class ClientTelemetry:
    """The telemetry of all clients.

    `refused` counts the requests that were refused, by error, `pushed_count` the pushes that were
    not. `records` is None if what is pushed is written to no topic; it is set after the start.
    """

    def __init__(
        self,
        *,
        subscriptions: Subscriptions,
        series: ClientSeries,
        payloads: Payloads,
        background: BackgroundTasks,
        max_bytes: int,
        timer_ms: Callable[[], int],
    ) -> None:
        """`max_bytes`: telemetry.max.bytes. `timer_ms` is a clock that never jumps."""
        self.subscriptions = subscriptions
        self.instances = ClientInstances(subscriptions)
        self.series = series
        self.records: PushedRecords | None = None
        self.max_bytes = max_bytes
        self.pushed_count = 0
        self.refused: Counter[ErrorCode] = Counter()
        self._payloads = payloads
        self._background = background
        self._timer_ms = timer_ms

    def subscribe(
        self, id_: bytes, session: Session, client_id: str | None, step: Step = no_step
    ) -> ClientInstance:
        """The instance of a client that asks for its subscription; ZERO_UUID gets a new id.

        Raises THROTTLING_QUOTA_EXCEEDED.
        """
        now_ms = self._timer_ms()
        id_ = id_ if id_ != ZERO_UUID else random_uuid()
        instance = self._instance(id_, session, client_id, step)
        if not instance.may_get(now_ms) and instance.last_error not in _ASK_AT_ONCE:
            raise self._refusal(_too_soon())
        instance.last_error = ErrorCode.NONE
        return instance

    def push(
        self,
        request: PushTelemetryRequest,
        session: Session,
        client_id: str | None,
        step: Step = no_step,
    ) -> Awaitable[None] | None:
        """Take what a client pushes. The awaitable, if any, ends when it was read.

        Raises ApiError, and so does the awaitable. What is read is read to its end, also if the
        client disconnects: a client that closes pushes its last values.
        """
        id_ = request.client_instance_id
        if id_ in RESERVED_IDS:
            text = f"{id_.hex()} is no client instance id"
            raise self._refusal(ApiError(ErrorCode.INVALID_REQUEST, text))
        instance = self._instance(id_, session, client_id, step)
        try:
            self._check_push(request, instance)
        except ApiError as error:
            raise self._refusal(error, instance) from None
        finally:
            instance.is_terminating = request.terminating
        instance.last_error = ErrorCode.NONE
        if not request.metrics:
            return None
        return asyncio.shield(self._background.start(self._take(request, instance)))

    def connection_closed(self, session: Session) -> None:
        """Forget the client of a connection. Its series stay for a while."""
        if session.client_instance_id is not None:
            self.instances.forget(session.client_instance_id)

    def remove_expired(self) -> None:
        """Forget the clients that have been silent for too long, and their series."""
        now_ms = self._timer_ms()
        self.instances.remove_expired(now_ms)
        self.series.remove_expired(now_ms)

    def _instance(
        self, id_: bytes, session: Session, client_id: str | None, step: Step
    ) -> ClientInstance:
        attributes = partial(attributes_of, id_, session, client_id)
        instance, is_new = self.instances.heard_of(id_, attributes, self._timer_ms(), step)
        if is_new:
            session.client_instance_id = id_
        return instance

    def _check_push(self, request: PushTelemetryRequest, instance: ClientInstance) -> None:
        """Raise ApiError unless a client may push this now."""
        if instance.is_terminating:
            raise ApiError(ErrorCode.INVALID_REQUEST, "the client has pushed for the last time")
        if not instance.may_push(self._timer_ms()) and not request.terminating:
            raise _too_soon()
        if request.subscription_id != instance.subscription_id:
            text = f"{request.subscription_id} is not the client's subscription id"
            raise ApiError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, text)
        if request.compression_type not in _KNOWN_COMPRESSION_TYPES:
            text = f"compression type {request.compression_type} is not known"
            raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, text)
        if len(request.metrics) > self.max_bytes:
            text = f"{len(request.metrics)} bytes are more than {self.max_bytes}"
            raise ApiError(ErrorCode.TELEMETRY_TOO_LARGE, text)

    async def _take(self, request: PushTelemetryRequest, instance: ClientInstance) -> None:
        compression = CompressionType(request.compression_type)
        try:
            async with self._payloads.turn(request.metrics):
                take = self.series.push_of(instance, self._timer_ms())
                content = await self._payloads.read(compression, request.metrics, take)
                if self.records is not None:
                    await self.records.write(instance, content, compression)
        except ApiError as error:
            raise self._refusal(error, instance) from None
        self.pushed_count += 1

    def _refusal(self, error: ApiError, instance: ClientInstance | None = None) -> ApiError:
        self.refused[error.code] += 1
        if instance is not None:
            instance.last_error = error.code
        return error


def _too_soon() -> ApiError:
    return ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "the push interval has not passed yet")
