"""Rows that are sent as columns arrive as if they were sent one by one."""

from collections.abc import Iterator
from importlib.metadata import version

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from odradek.pipeline.sink import column_sender, row_sender
from odradek.pipeline.sink.column_sender import can_send_columns
from odradek.pipeline.sink.rows import WriteError
from odradek.pipeline.sink.task_name import TaskName
from odradek.pipeline.sink.task_writing import write_rows
from odradek.pipeline.sink.write_options import WriteOptions, write_options
from tests.support.archives import logged
from tests.support.broker_process import BrokerProcess, running_broker
from tests.support.committed import committed_by_partition
from tests.support.topics import create_topic

pytestmark = pytest.mark.slow
PARTITIONS = 3
TOPICS = ("columns", "rows")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = {"auto.create.topics.enable": "false"}
    with running_broker(tmp_path_factory.mktemp("broker"), settings) as started:
        yield started


def options(broker: BrokerProcess, topic: str, **client: str) -> WriteOptions:
    return WriteOptions(client={"bootstrap.servers": broker.bootstrap, **client}, topic=topic)


def values_of(broker: BrokerProcess, topic: str) -> list[str]:
    found = committed_by_partition(broker.bootstrap, [(topic, 0)])
    return [value.decode() for value in found[topic, 0]]


def records_of(broker: BrokerProcess, topic: str) -> list[object]:
    """Partition, key and value of each record."""
    return [
        (partition, row[3], row[4])
        for partition in range(PARTITIONS)
        for row in logged(broker.data / f"{topic}-{partition}")
    ]


@pytest.fixture
def any_version(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Send columns with the installed client, to find out whether its version can be listed."""
    monkeypatch.setattr(column_sender, "TESTED_VERSIONS", {version("confluent-kafka")})
    can_send_columns.cache_clear()
    assert can_send_columns()
    yield
    can_send_columns.cache_clear()


def test_only_versions_that_were_tested_take_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    can_send_columns.cache_clear()
    monkeypatch.setattr(column_sender, "version", lambda _: "2.16.999")
    assert not can_send_columns()
    can_send_columns.cache_clear()


@pytest.mark.parametrize("switch", ["true", "false"])
def test_columns_can_be_switched_off(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch, any_version: None, switch: str
) -> None:
    sent = []
    monkeypatch.setattr(row_sender, "send_columns", lambda *_: sent.append("columns"))
    topic = f"switch-{switch}"
    create_topic(broker.bootstrap, topic)
    to = write_options(
        {"kafka.bootstrap.servers": broker.bootstrap, "topic": topic, "sendColumns": switch}
    )
    write_rows(to, TaskName(topic, 0, 0), [pa.record_batch({"value": ["a"]})])
    assert bool(sent) == (switch == "true")
    assert values_of(broker, topic) == ([] if sent else ["a"])


def test_rows_arrive_as_if_they_were_sent_one_by_one(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch, any_version: None
) -> None:
    values = pa.array([b"one", None, b"", b"four" * 1000, b"", None, b"seven"], pa.binary())
    keys = pa.array(["a", "b", None, "", "e", "f", "a"])
    batches = [
        pa.record_batch({"value": values, "key": keys}).filter(keys.is_valid()),
        pa.record_batch({"value": values, "key": keys}).slice(3, 2),
        pa.record_batch({"value": values.cast(pa.large_binary()), "key": keys}).slice(3, 2),
        pa.record_batch({"value": pa.array(["ü", None], pa.large_string()), "key": ["k", "l"]}),
        pa.record_batch({"value": pa.array([b"", b""]), "key": ["", ""]}),
        pa.record_batch({"value": pa.array([None, None], pa.binary()), "key": ["k", "l"]}),
        pa.record_batch({"value": values, "key": keys, "partition": pa.array([1] * 7, pa.int32())}),
        pa.record_batch({"value": pa.array([], pa.binary())}),
    ]
    for topic in TOPICS:
        create_topic(broker.bootstrap, topic, PARTITIONS)
        if topic == "rows":
            monkeypatch.setattr(row_sender, "can_send_columns", lambda: False)
        for number, batch in enumerate(batches):
            write_rows(options(broker, topic), TaskName(topic, number, 0), [batch])
    found, expected = (records_of(broker, topic) for topic in TOPICS)
    assert found == expected
    assert len(found) == sum(map(len, batches))


@pytest.mark.parametrize("limit", [("messages", "10"), ("kbytes", "10")])
def test_a_small_queue_keeps_the_order(
    broker: BrokerProcess, any_version: None, limit: tuple[str, str]
) -> None:
    topic = f"order-{limit[0]}"
    create_topic(broker.bootstrap, topic)
    texts = [f"{number:05}".ljust(5000 if number % 50 == 7 else 20) for number in range(2000)]
    client = {f"queue.buffering.max.{limit[0]}": limit[1], "linger.ms": "0"}
    batch = pa.record_batch({"value": texts})
    write_rows(options(broker, topic, **client), TaskName(topic, 0, 0), [batch])
    assert values_of(broker, topic) == texts


def test_a_row_that_is_larger_than_the_queue_is_refused(
    broker: BrokerProcess, any_version: None
) -> None:
    create_topic(broker.bootstrap, "large")
    batch = pa.record_batch({"value": ["small", "x" * 2000, "small"]})
    to = options(broker, "large", **{"queue.buffering.max.kbytes": "1"})
    with pytest.raises(WriteError, match="a row for large is too large to send"):
        write_rows(to, TaskName("large", 0, 0), [batch])
    assert values_of(broker, "large") == []
