"""OTLP bytes are read as they were written, and no bytes do any harm."""

import random
import struct
import tracemalloc
from contextlib import suppress

import pytest

from odradek.broker.telemetry.otlp import (
    MAX_FIELDS,
    MAX_MESSAGE_BYTES,
    OtlpError,
    Point,
    TooManyFieldsError,
    read_points,
)
from tests.support.otlp import (
    CUMULATIVE,
    attributes,
    counter,
    data_point,
    fixed64,
    gauge,
    integer,
    message,
    metrics_data,
)

LAG = "org.apache.kafka.consumer.lag"
SENT = "org.apache.kafka.producer.record.send.total"


def points(data: bytes) -> list[Point]:
    return [point for point in read_points(data) if point is not None]


def test_a_gauge_has_the_attributes_of_its_resource_and_its_own() -> None:
    data = metrics_data(gauge(LAG, 1.5, topic="orders"), resource={"group_id": "kitchen"})
    attributes = (("group_id", "kitchen"), ("topic", "orders"))
    assert points(data) == [Point(LAG, attributes, 1.5, is_monotonic=False, is_delta=False)]


def test_a_counter_says_whether_it_is_a_delta() -> None:
    data = metrics_data(counter(SENT, 7), counter(SENT, -7, CUMULATIVE))
    assert points(data) == [
        Point(SENT, (), 7.0, is_monotonic=True, is_delta=True),
        Point(SENT, (), -7.0, is_monotonic=True, is_delta=False),
    ]


def test_all_points_of_all_metrics_of_a_scope_are_read() -> None:
    two_points = b"".join(message(1, data_point(value, {})) for value in (1.0, 2.0))
    metrics = [message(1, LAG.encode()) + message(5, two_points), gauge("b", 3.0)]
    data = message(1, message(2, b"".join(message(2, each) for each in metrics)))
    assert [(point.name, point.value) for point in points(data)] == [
        (LAG, 1.0),
        (LAG, 2.0),
        ("b", 3.0),
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (integer(2, 1), "true"),
        (integer(2, 0), "false"),
        (integer(3, 12), "12"),
        (integer(3, (1 << 64) - 1), "-1"),
        (fixed64(4, struct.pack("<d", 0.5)), "0.5"),
        (message(5, b""), ""),
    ],
)
def test_attributes_are_texts(value: bytes, text: str) -> None:
    attribute = message(7, message(1, b"k") + message(2, value))
    metric = message(1, b"m") + message(5, message(1, attribute))
    (point,) = points(message(1, message(2, message(2, metric))))
    assert point.attributes == (("k", text),)


def test_other_kinds_of_metrics_and_unknown_fields_are_skipped() -> None:
    histogram = message(1, b"h") + message(9, message(1, b""))
    unknown = integer(90, 1 << 63) + fixed64(9, bytes(8)) + bytes([15 << 3 | 5]) + bytes(4)
    data = metrics_data(histogram + unknown, gauge(LAG, 1.0)) + unknown
    assert [point.name for point in points(data)] == [LAG]


def test_every_cut_of_a_message_is_refused_or_a_shorter_one() -> None:
    data = metrics_data(gauge(LAG, 1.5, topic="orders"), counter(SENT, 7))
    first = len(metrics_data(gauge(LAG, 1.5, topic="orders")))
    for end in range(1, len(data)):
        if end == first:
            continue
        with pytest.raises(OtlpError):
            points(data[:end])


@pytest.mark.parametrize(
    "data",
    [
        b"\xff" * 20,  # an integer without an end
        b"\x80" * 9 + b"\x00",  # a field without a number
        b"\x0b",  # a group
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f",  # 2**63 bytes
        metrics_data(message(1, b"\xc3")),  # not UTF-8
        metrics_data(gauge("m" * (MAX_MESSAGE_BYTES + 1), 1.0)),
        metrics_data(gauge("m", 1.0, topic="t" * MAX_MESSAGE_BYTES)),
        message(1, message(1, attributes(1, {"k": "v" * MAX_MESSAGE_BYTES}))),
    ],
)
def test_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(OtlpError):
        points(data)


def test_random_changes_end_in_points_or_in_the_error() -> None:
    data = metrics_data(*(gauge(LAG, float(i), topic="t") for i in range(5)), counter(SENT, 1))
    chance = random.Random(714)
    for _ in range(3_000):
        changed = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        with suppress(OtlpError):
            points(bytes(changed))


def test_the_attributes_of_a_resource_count_for_each_of_its_points() -> None:
    attributes_of_resource = {f"{number}": "" for number in range(100)}
    many_points = message(1, b"m") + message(5, message(1, b"") * 2_000)
    data = metrics_data(many_points, resource=attributes_of_resource)
    found: list[Point | None] = []
    with pytest.raises(TooManyFieldsError):
        found.extend(read_points(data))
    assert 1_000 < len(found) - found.count(None) < MAX_FIELDS / 300


@pytest.mark.parametrize("holder", ["resource", "point"])
def test_others_may_go_on_between_two_attributes(holder: str) -> None:
    count = 5_000
    point = message(1, message(7, b"") * count)
    metric = message(1, b"m") + message(5, point)
    metrics = {
        "resource": message(1, message(1, message(1, b"") * count)),
        "point": metrics_data(metric),
    }[holder]
    assert sum(1 for _ in read_points(metrics)) > count


@pytest.mark.slow
def test_very_many_empty_messages_take_no_memory() -> None:
    points_of_a_sum = message(7, b"\x0a\x00" * 100_000)  # they are looked at twice
    data = message(1, message(2, message(2, points_of_a_sum))) + message(1, b"") * 100_000
    tracemalloc.start()
    steps = sum(1 for _ in read_points(data))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert steps > 400_000
    assert peak_bytes < 100_000


def test_the_reader_agrees_with_opentelemetrys_own() -> None:
    messages = pytest.importorskip(
        "opentelemetry.proto.metrics.v1.metrics_pb2", reason="opentelemetry-proto is not installed"
    )
    data = messages.MetricsData()
    for number in range(20):
        of_resource = data.resource_metrics.add()
        attribute = of_resource.resource.attributes.add()
        attribute.key, attribute.value.string_value = "group_id", f"größe-{number}"
        metric = of_resource.scope_metrics.add().metrics.add(name=f"metric.{number}", unit="s")
        kind = metric.sum if number % 2 else metric.gauge
        if number % 2:
            metric.sum.is_monotonic, metric.sum.aggregation_temporality = True, 1 + number % 3 % 2
        point = kind.data_points.add(time_unix_nano=number, start_time_unix_nano=1)
        if number % 3:
            point.as_double = number / 3
        else:
            point.as_int = -number
        attribute = point.attributes.add()
        attribute.key, attribute.value.int_value = "partition", -number
    assert points(data.SerializeToString()) == [
        Point(
            f"metric.{number}",
            (("group_id", f"größe-{number}"), ("partition", str(-number))),
            number / 3 if number % 3 else float(-number),
            is_monotonic=bool(number % 2),
            is_delta=bool(number % 2) and 1 + number % 3 % 2 == 1,
        )
        for number in range(20)
    ]
