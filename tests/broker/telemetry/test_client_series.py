"""What clients have pushed becomes series, with limits."""

import math
import tracemalloc
from collections.abc import AsyncIterator

import pytest

from odradek.broker.telemetry.client_series import (
    MAX_ATTRIBUTES,
    MAX_ATTRIBUTES_LENGTH,
    MAX_NAME_LENGTH,
    PREFIX,
    ClientSeries,
    LeftOut,
)
from odradek.broker.telemetry.instances import ClientInstance
from odradek.broker.telemetry.otlp import Point
from odradek.protocol.primitives import uuid_text
from tests.support.otlp import CUMULATIVE, DELTA, counter, gauge, metrics_data
from tests.support.telemetry import MAX_CLIENT_SERIES, MAX_SERIES, PEER, Telemetry

LAG = "org.apache.kafka.consumer.lag"
SENT = "org.apache.kafka.producer.sent.total"
INTERVAL_MS = 300_000


@pytest.fixture
async def telemetry() -> AsyncIterator[Telemetry]:
    rig = Telemetry()
    yield rig
    rig.disk.close()


async def push(telemetry: Telemetry, instance: ClientInstance, *metrics: bytes) -> None:
    telemetry.now_ms += INTERVAL_MS
    await telemetry.push(instance, metrics_data(*metrics, resource={"group_id": "kitchen"}))


def values(telemetry: Telemetry, name: str) -> list[float]:
    return [value for _, value in telemetry.series.by_name().get(name, [])]


async def test_a_series_has_the_labels_of_the_client_and_of_the_value(telemetry: Telemetry) -> None:
    instance = telemetry.subscribe()
    await push(telemetry, instance, gauge(LAG, 3.0, topic="orders", client_id="forged", empty=""))
    ((labels, value),) = telemetry.series.by_name()["org_apache_kafka_consumer_lag"]
    assert value == 3.0
    assert dict(labels) == {
        "client_id": "till",
        "client_instance_id": uuid_text(instance.id),
        "client_software_name": "librdkafka",
        "client_software_version": "2.8.0",
        "client_source_address": PEER[0],
        "group_id": "kitchen",
        "topic": "orders",
    }


async def test_deltas_are_added_and_other_values_replaced(telemetry: Telemetry) -> None:
    instance = telemetry.subscribe()
    for _ in range(3):
        await push(telemetry, instance, counter(SENT, 5, DELTA), gauge(LAG, 2.0))
    assert values(telemetry, "org_apache_kafka_producer_sent_total") == [15.0]
    assert values(telemetry, "org_apache_kafka_consumer_lag") == [2.0]
    await push(telemetry, instance, counter(SENT, 5, CUMULATIVE))
    assert values(telemetry, "org_apache_kafka_producer_sent_total") == [5.0]


@pytest.mark.parametrize("no_number", [math.nan, math.inf])
async def test_a_value_that_is_no_number_is_gone_with_the_next_one(
    telemetry: Telemetry, no_number: float
) -> None:
    instance = telemetry.subscribe()
    await push(telemetry, instance, counter(SENT, 5, DELTA), gauge(LAG, 2.0))
    await push(telemetry, instance, counter(SENT, no_number, DELTA), gauge(LAG, no_number))
    assert values(telemetry, "org_apache_kafka_producer_sent_total") == [5.0]
    assert values(telemetry, "org_apache_kafka_consumer_lag") == [
        pytest.approx(no_number, nan_ok=True)
    ]
    await push(telemetry, instance, counter(SENT, 5, DELTA), gauge(LAG, 2.0))
    assert values(telemetry, "org_apache_kafka_producer_sent_total") == [10.0]
    assert values(telemetry, "org_apache_kafka_consumer_lag") == [2.0]


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        (counter("org.apache.kafka.a-b", 1), "org_apache_kafka_a_b_total"),
        (counter("org.apache.kafka.a.total", 1), "org_apache_kafka_a_total"),
        (gauge("org.apache.kafka.a.total", 1), "org_apache_kafka_a"),
        (gauge("org.apache.kafka.größe", 1), "org_apache_kafka_gr__e"),
    ],
)
async def test_only_counters_end_in_total(telemetry: Telemetry, metric: bytes, name: str) -> None:
    await push(telemetry, telemetry.subscribe(), metric)
    assert list(telemetry.series.by_name()) == [name]


@pytest.mark.parametrize("label", ["__name__", "1st", "größe", "", 'a="b"', "a\nb"])
async def test_labels_have_names_that_prometheus_takes(telemetry: Telemetry, label: str) -> None:
    await push(telemetry, telemetry.subscribe(), gauge(LAG, 1, **{label: "v"}))
    ((labels, _),) = telemetry.series.by_name()["org_apache_kafka_consumer_lag"]
    for name, _ in labels:
        assert name.replace("_", "a").isalnum()
        assert name[0].isalpha()
        assert name.isascii()


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        (gauge("kafka_server_kafkaserver_brokerstate", 0), LeftOut.NAME),
        (gauge("org.apache.kafka." + "m" * MAX_NAME_LENGTH, 0), LeftOut.NAME),
        (gauge(LAG, 0, topic="t" * MAX_ATTRIBUTES_LENGTH), LeftOut.SIZE),
        (
            gauge(LAG, 0, **{f"label{number}": "1" for number in range(MAX_ATTRIBUTES)}),
            LeftOut.SIZE,
        ),
    ],
)
async def test_what_is_not_shown_is_counted(
    telemetry: Telemetry, metric: bytes, reason: LeftOut
) -> None:
    await push(telemetry, telemetry.subscribe(), metric)
    assert telemetry.series.count == 0
    assert telemetry.series.left_out == {reason: 1}


async def test_the_series_of_a_client_are_limited(telemetry: Telemetry) -> None:
    instance = telemetry.subscribe()
    metrics = [gauge(LAG, 1, partition=str(number)) for number in range(MAX_CLIENT_SERIES + 2)]
    for _ in range(2):
        await push(telemetry, instance, *metrics)
    assert telemetry.series.count == MAX_CLIENT_SERIES
    assert telemetry.series.left_out == {LeftOut.CLIENT_LIMIT: 4}


async def test_the_series_of_all_clients_are_limited(telemetry: Telemetry) -> None:
    for _ in range(MAX_SERIES + 2):
        await push(telemetry, telemetry.subscribe(), gauge(LAG, 1))
    assert telemetry.series.count == len(values(telemetry, "org_apache_kafka_consumer_lag"))
    assert telemetry.series.count == MAX_SERIES
    assert telemetry.series.left_out == {LeftOut.TOTAL_LIMIT: 2}
    telemetry.now_ms += 3 * INTERVAL_MS
    telemetry.clients.remove_expired()
    await push(telemetry, telemetry.subscribe(), gauge(LAG, 1))
    assert telemetry.series.count == 1


async def test_a_series_that_is_no_longer_pushed_expires_while_its_client_pushes_others(
    telemetry: Telemetry,
) -> None:
    instance = telemetry.subscribe()
    await push(telemetry, instance, gauge(LAG, 5.0, partition="0"), counter(SENT, 5, DELTA))
    for _ in range(3):
        assert values(telemetry, "org_apache_kafka_consumer_lag")[:1] == [5.0]
        await push(telemetry, instance, gauge(LAG, 1.0, partition="1"), counter(SENT, 5, DELTA))
        telemetry.clients.remove_expired()
    assert values(telemetry, "org_apache_kafka_consumer_lag") == [1.0]
    assert values(telemetry, "org_apache_kafka_producer_sent_total") == [20.0]
    assert telemetry.series.count == 2


@pytest.mark.slow
async def test_the_largest_series_take_seven_kilobytes(telemetry: Telemetry) -> None:
    series = ClientSeries(max_series=1_000, max_client_series=1_000)
    take = series.push_of(telemetry.subscribe(), telemetry.now_ms)
    tracemalloc.start()
    for number in range(2_000):
        name = f"{number:0>{MAX_NAME_LENGTH}}".replace("0" * len(PREFIX), PREFIX, 1)
        labels = {f"l{label}": f"{number}{'v' * 50}" for label in range(MAX_ATTRIBUTES)}
        take(Point(name, tuple(labels.items()), 1.0, is_monotonic=False, is_delta=False))
    held_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (series.count, series.left_out) == (1_000, {LeftOut.CLIENT_LIMIT: 1_000})
    assert held_bytes < 7_000_000
