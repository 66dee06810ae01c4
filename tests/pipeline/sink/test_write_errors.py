"""Rows that cannot be written: the error names what is missing, and comes within seconds."""

from collections.abc import Iterator

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException

from odradek.pipeline.sink import marks, row_sender
from odradek.pipeline.sink.row_sender import FencedError, RowSender
from odradek.pipeline.sink.rows import WriteError
from odradek.pipeline.sink.task_name import TaskName
from odradek.pipeline.sink.task_writing import write_rows
from odradek.pipeline.sink.write_options import write_options
from tests.support.broker_process import BrokerProcess, free_ports, running_broker
from tests.support.task_attempts import rows
from tests.support.topics import create_topic

pytestmark = pytest.mark.slow
DELIVERIES = ("exactly-once", "at-least-once")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = {"auto.create.topics.enable": "false"}
    with running_broker(tmp_path_factory.mktemp("broker"), settings) as started:
        create_topic(started.bootstrap, "orders", 2)
        yield started


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (marks, row_sender):
        monkeypatch.setattr(module, "FIRST_ANSWER_S", 0.5)
    monkeypatch.setattr(marks, "_ATTEMPT_S", 0.2)
    monkeypatch.setattr(row_sender, "_CONNECT_S", 0.2)


def write(servers: str, delivery: str, batch: pa.RecordBatch, topic: str = "orders") -> None:
    said = {"kafka.bootstrap.servers": servers, "kafka.log_level": "0", "delivery": delivery}
    task = TaskName(f"odradek-{delivery}", 0, 0)
    write_rows(write_options({**said, "topic": topic}), task, [batch])


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_partition_that_does_not_exist_is_named(broker: BrokerProcess, delivery: str) -> None:
    batch = pa.record_batch({"value": ["a", "b"], "partition": pa.array([1, 17], pa.int32())})
    with pytest.raises(WriteError, match="topic orders has no partition 17"):
        write(broker.bootstrap, delivery, batch)


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_topic_that_does_not_exist_is_named(broker: BrokerProcess, delivery: str) -> None:
    with pytest.raises(WriteError, match="topic missing does not exist"):
        write(broker.bootstrap, delivery, rows("a"), "missing")


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_broker_that_is_down_is_reported_soon(delivery: str) -> None:
    servers = f"127.0.0.1:{free_ports(1)[0]}"
    with pytest.raises(WriteError, match=f"no broker answers at {servers} .*Connection refused"):
        write(servers, delivery, rows("a"))


class FencedProducer:
    """Stands for a producer of librdkafka that was fenced, and has stopped."""

    def poll(self, _wait_s: float) -> int:
        return 0

    def begin_transaction(self) -> None:
        raise KafkaException(KafkaError(KafkaError._FENCED, fatal=True))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (KafkaError._PURGE_QUEUE, FencedError),
        (KafkaError._FATAL, FencedError),
        (KafkaError.MSG_SIZE_TOO_LARGE, WriteError),
    ],
)
def test_a_row_that_was_given_up_has_the_reason_for_which_the_producer_stopped(
    code: int, expected: type[WriteError]
) -> None:
    sender = RowSender({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    sender.producer = FencedProducer()  # type: ignore[assignment] # as much of one
    with pytest.raises(WriteError) as raised:
        sender.raise_reason(KafkaException(KafkaError(code)))
    assert type(raised.value) is expected
