"""Clients ask for their subscription and push: what they are refused, and what is forgotten."""

from collections.abc import AsyncIterator

import pytest

from odradek.broker.telemetry.instances import MAX_ATTRIBUTE_LENGTH, MAX_INSTANCES
from odradek.protocol.compression import CompressionType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.push_telemetry import PushTelemetryRequest
from odradek.protocol.primitives import ZERO_UUID
from tests.support.otlp import gauge, metrics_data
from tests.support.telemetry import MAX_BYTES, Telemetry, new_session, refused

INTERVAL_MS = 1_000
PUSHED = metrics_data(gauge("org.apache.kafka.producer.a", 1.0))
MINUTE_MS = 60_000


@pytest.fixture
async def telemetry() -> AsyncIterator[Telemetry]:
    """With a subscription to all metrics, each second."""
    rig = Telemetry()
    rig.configure("all", metrics="*", interval_ms=str(INTERVAL_MS))
    yield rig
    rig.disk.close()


async def test_a_client_gets_an_id_and_keeps_it(telemetry: Telemetry) -> None:
    first = telemetry.subscribe()
    assert first.id != ZERO_UUID
    telemetry.now_ms += INTERVAL_MS
    assert telemetry.subscribe(first.id) is first
    assert telemetry.subscribe().id != first.id


@pytest.mark.parametrize("compression", CompressionType)
async def test_a_client_pushes_with_every_compression(
    telemetry: Telemetry, compression: CompressionType
) -> None:
    instance = telemetry.subscribe()
    await telemetry.push(instance, PUSHED, compression=compression)
    assert telemetry.series.count == telemetry.clients.pushed_count == 1


async def test_a_client_may_push_at_once_and_then_after_each_interval(telemetry: Telemetry) -> None:
    instance = telemetry.subscribe()
    await telemetry.push(instance)
    telemetry.now_ms += INTERVAL_MS - 1
    with refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED):
        await telemetry.push(instance)
    with refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED):
        telemetry.subscribe(instance.id)
    telemetry.now_ms += 1
    await telemetry.push(instance)
    assert telemetry.clients.refused == {ErrorCode.THROTTLING_QUOTA_EXCEEDED: 2}


async def test_a_client_that_ends_pushes_at_any_time_and_for_the_last_time(
    telemetry: Telemetry,
) -> None:
    instance = telemetry.subscribe()
    await telemetry.push(instance)
    await telemetry.push(instance, PUSHED, terminating=True)
    telemetry.now_ms += INTERVAL_MS
    with refused(ErrorCode.INVALID_REQUEST):
        await telemetry.push(instance, PUSHED)


async def test_a_changed_subscription_is_unknown_and_may_be_asked_for_at_once(
    telemetry: Telemetry,
) -> None:
    instance = telemetry.subscribe()
    telemetry.configure("all", metrics="a")
    with refused(ErrorCode.UNKNOWN_SUBSCRIPTION_ID):
        await telemetry.push(instance, PUSHED)
    changed = telemetry.subscribe(instance.id)
    assert (changed.wanted.metrics, changed.attributes) == (("a",), instance.attributes)
    telemetry.configure("all", metrics=None, interval_ms=None)
    assert telemetry.subscribe(instance.id).wanted.metrics == ()


@pytest.mark.parametrize(
    ("compression", "content", "error"),
    [
        (5, PUSHED, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (-1, PUSHED, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (0, bytes(MAX_BYTES + 1), ErrorCode.TELEMETRY_TOO_LARGE),
        (0, b"garbage", ErrorCode.INVALID_RECORD),
    ],
)
async def test_a_push_that_is_wrong_is_refused(
    telemetry: Telemetry, compression: int, content: bytes, error: ErrorCode
) -> None:
    instance = telemetry.subscribe()
    with refused(error):
        await telemetry.push(instance, content, compression=compression)
    assert telemetry.clients.refused == {error: 1}


@pytest.mark.parametrize("reserved", [0, 1])
async def test_reserved_ids_are_no_clients(telemetry: Telemetry, reserved: int) -> None:
    request = PushTelemetryRequest(
        client_instance_id=reserved.to_bytes(16, "big"),
        subscription_id=0,
        terminating=False,
        compression_type=0,
        metrics=b"",
    )
    with refused(ErrorCode.INVALID_REQUEST):
        await telemetry.push_request(request)
    assert len(telemetry.clients.instances) == 0


async def test_a_client_is_forgotten_when_its_connection_closes(telemetry: Telemetry) -> None:
    instance = telemetry.subscribe()
    await telemetry.push(instance, PUSHED)
    telemetry.clients.connection_closed(new_session())  # another's
    assert instance.id in telemetry.clients.instances
    telemetry.clients.connection_closed(telemetry.session)
    assert instance.id not in telemetry.clients.instances
    assert telemetry.series.count == 1, "its last values are still shown"


@pytest.mark.parametrize(("interval_ms", "life_ms"), [(100, MINUTE_MS), (30_000, 90_000)])
async def test_a_silent_client_is_forgotten_with_its_series(
    telemetry: Telemetry, interval_ms: int, life_ms: int
) -> None:
    telemetry.configure("all", interval_ms=str(interval_ms))
    await telemetry.push(telemetry.subscribe(), PUSHED)
    telemetry.now_ms += life_ms - 1
    telemetry.clients.remove_expired()
    assert len(telemetry.clients.instances) == telemetry.series.count == 1
    telemetry.now_ms += 1
    telemetry.clients.remove_expired()
    assert len(telemetry.clients.instances) == telemetry.series.count == 0


@pytest.mark.slow
async def test_a_hundred_thousand_clients_are_not_all_remembered(telemetry: Telemetry) -> None:
    kept = telemetry.subscribe()
    for number in range(100_000):
        telemetry.subscribe(client_id="x" * 32_000)
        if number % MAX_INSTANCES == 0:
            telemetry.now_ms += INTERVAL_MS
            telemetry.subscribe(kept.id)  # heard of lately: it stays
    assert len(telemetry.clients.instances) == MAX_INSTANCES
    assert kept.id in telemetry.clients.instances
    assert len(telemetry.subscribe(client_id="x" * 32_000).attributes["client_id"] or "") == (
        MAX_ATTRIBUTE_LENGTH
    )
