"""PushTelemetry (key 72, v0).

Takes the metrics that a client pushes as OTLP (KIP-714). The answer waits until they were read:
bytes that are not metrics get INVALID_RECORD. Any client may push."""

from collections.abc import Awaitable

from odradek.broker.requests.context import RequestContext
from odradek.protocol.compiler import MAX_SMALL_ITEMS, NotSmallError
from odradek.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse


def handle(
    context: RequestContext, request: PushTelemetryRequest
) -> PushTelemetryResponse | Awaitable[PushTelemetryResponse]:
    telemetry = context.broker.telemetry
    if context.slices is None and len(telemetry.subscriptions) > MAX_SMALL_ITEMS:
        raise NotSmallError
    taken = telemetry.push(request, context.session, context.client_id, context.step)
    return PushTelemetryResponse() if taken is None else answer_when_read(taken)


async def answer_when_read(taken: Awaitable[None]) -> PushTelemetryResponse:
    await taken
    return PushTelemetryResponse()
