"""GetTelemetrySubscriptions (key 71, v0).

Tells a client which metrics to push, how often, and how to compress them (KIP-714). A client that
has no instance id gets one. Everybody may ask."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.telemetry.client_telemetry import ACCEPTED_COMPRESSION_TYPES
from odradek.protocol.compiler import MAX_SMALL_ITEMS, NotSmallError
from odradek.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)


def handle(
    context: RequestContext, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    telemetry = context.broker.telemetry
    if context.slices is None and len(telemetry.subscriptions) > MAX_SMALL_ITEMS:
        raise NotSmallError
    instance = telemetry.subscribe(
        request.client_instance_id, context.session, context.client_id, context.step
    )
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance.id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=list(ACCEPTED_COMPRESSION_TYPES),
        push_interval_ms=instance.wanted.push_interval_ms,
        telemetry_max_bytes=telemetry.max_bytes,
        delta_temporality=True,
        requested_metrics=list(instance.wanted.metrics),
    )
