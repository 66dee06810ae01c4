"""Ranges of offsets through a broker: where they end in no record, and where records have gone."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

pytest.importorskip("pyarrow")

import pyarrow as pa

from odradek.pipeline.decoding.decoded_records import MAX_MS
from odradek.pipeline.reading.range_reader import DataLostError, OffsetRange
from odradek.pipeline.source import broker_reader
from odradek.pipeline.source.broker_origin import BrokerError, BrokerOrigin
from odradek.pipeline.source.broker_reader import BrokerReader
from odradek.pipeline.source.files_origin import FilesOrigin
from odradek.pipeline.source.options import read_options
from odradek.pipeline.source.task import read_range
from odradek.storage.log import PartitionLog
from odradek.storage.topic_partition import TopicPartition
from tests.support.broker_process import BrokerProcess
from tests.support.dirty_logs import end_transaction
from tests.support.log_box import NOW_MS, batch_of, put
from tests.support.partition_logs import open_log
from tests.support.secured_broker import secured_broker
from tests.support.topics import create_topic

LIMIT_SECONDS = 100.0


def read(
    broker: BrokerProcess, topic: str, start: int, end: int, **more: Any
) -> list[tuple[int, bytes]]:
    wanted = OffsetRange(TopicPartition(topic, 0), start, end)
    client = {"bootstrap.servers": broker.bootstrap}
    reader = BrokerReader(client, wanted, ("offset", "value"), **more)
    return [(row["offset"], row["value"]) for made in reader.read() for row in made.to_pylist()]


def in_transaction(log: PartitionLog, producer_id: int, sequence: int, value: bytes) -> None:
    batch = batch_of(value, producer=(producer_id, 0, sequence), is_transactional=True)
    log.append(batch, now_ms=NOW_MS, transaction_verified=True)


@pytest.mark.slow
def test_a_range_may_end_in_markers_and_aborted_records(
    start_broker: Callable[..., BrokerProcess], topic: str
) -> None:
    broker = start_broker()
    create_topic(broker.bootstrap, topic)
    broker.terminate()
    log = open_log(broker.data, topic, clean=True)
    put(log, b"0")
    in_transaction(log, 1, 0, b"1 aborted")
    in_transaction(log, 2, 0, b"2")
    end_transaction(log, 2, 0, commit=True)
    in_transaction(log, 1, 1, b"4 aborted")
    end_transaction(log, 1, 0, commit=False)
    in_transaction(log, 3, 0, b"6 open")
    put(log, b"7")
    log.close(NOW_MS)
    broker.start()
    partition = TopicPartition(topic, 0)
    client = {"bootstrap.servers": broker.bootstrap}
    everything = BrokerOrigin(client, committed_only=False).bounds([partition])
    origin = BrokerOrigin(client, committed_only=True)
    committed = origin.bounds([partition])
    assert (everything, committed) == ({partition: (0, 8)}, {partition: (0, 6)})
    assert origin.log_ends([partition]) == {partition: 8}
    assert read(broker, topic, 0, 6, read_committed=True) == [(0, b"0"), (2, b"2")]
    assert read(broker, topic, 1, 4, read_committed=True) == [(2, b"2")]
    assert [offset for offset, _ in read(broker, topic, 0, 8)] == [0, 1, 2, 4, 6, 7]
    assert [offset for offset, _ in read(broker, topic, 0, 4)] == [0, 1, 2]


@pytest.mark.slow
def test_a_short_range_takes_no_time(broker: BrokerProcess, topic: str) -> None:
    create_topic(broker.bootstrap, topic)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(20):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(LIMIT_SECONDS) == 0
    began = time.monotonic()
    for start in range(10):
        assert len(read(broker, topic, start, start + 2)) == 2
    assert time.monotonic() - began < 5  # it waited for a second, for more than there was


@pytest.mark.slow
def test_reading_needs_no_right_to_a_group(tmp_path: Path, topic: str) -> None:
    readable = AclBinding(
        *(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL),
        *("User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW),
    )
    with secured_broker("odradek", tmp_path / "broker", tls=False) as broker:
        open_settings = {"bootstrap.servers": broker.plain_servers}
        create_topic(broker.plain_servers, topic)
        producer = Producer(open_settings)
        producer.produce(topic, b"0")
        assert producer.flush(LIMIT_SECONDS) == 0
        admin = AdminClient(open_settings)
        admin.create_acls([readable])[readable].result(LIMIT_SECONDS)
        alice = {
            "bootstrap.servers": broker.sasl_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": "alice-secret",
        }
        reader = BrokerReader(alice, OffsetRange(TopicPartition(topic, 0), 0, 1), ("value",))
        assert [made.num_rows for made in reader.read()] == [1]


@pytest.mark.slow
def test_records_that_were_deleted_are_lost_data(broker: BrokerProcess, topic: str) -> None:
    create_topic(broker.bootstrap, topic)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(20):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(LIMIT_SECONDS) == 0
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.delete_records([ClientPartition(topic, 0, 5)]).values():
        future.result(LIMIT_SECONDS)
    with pytest.raises(DataLostError, match="records are lost"):
        read(broker, topic, 0, 20)
    assert read(broker, topic, 0, 20, fail_on_data_loss=False)[0] == (5, b"5")
    assert read(broker, topic, 0, 3, fail_on_data_loss=False) == []
    with pytest.raises(DataLostError, match="offsets 20 to 29 are after the log's end"):
        read(broker, topic, 10, 30)
    assert len(read(broker, topic, 10, 30, fail_on_data_loss=False)) == 10


@pytest.mark.slow
def test_a_topic_that_was_created_again_since_the_range_was_planned_is_lost_data(
    broker: BrokerProcess, topic: str
) -> None:
    create_topic(broker.bootstrap, topic)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, b"0")
    assert producer.flush(LIMIT_SECONDS) == 0
    client, partition = {"bootstrap.servers": broker.bootstrap}, TopicPartition(topic, 0)
    topic_id = BrokerOrigin(client, committed_only=False).topic_ids([partition])[topic]
    planned = OffsetRange(partition, 0, 1, topic_id=topic_id)
    reader = BrokerReader(client, planned, ("value",), fail_on_data_loss=False)
    assert [made.num_rows for made in reader.read()] == [1]
    reader = replace(reader, wanted=replace(planned, topic_id=bytes(16)))
    with pytest.raises(DataLostError, match="created again while it was read"):
        list(reader.read())


@pytest.mark.slow
def test_a_broker_and_its_files_have_the_same_offsets(broker: BrokerProcess, topic: str) -> None:
    create_topic(broker.bootstrap, topic, 2)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(6):
        producer.produce(topic, b"x", partition=1, timestamp=1000 + number)
    assert producer.flush(LIMIT_SECONDS) == 0
    origin = BrokerOrigin({"bootstrap.servers": broker.bootstrap}, committed_only=False)
    empty, full = TopicPartition(topic, 0), TopicPartition(topic, 1)
    assert {empty, full} <= set(origin.partitions())
    bounds = origin.bounds([empty, full, TopicPartition("nobody", 0)])
    assert bounds == {empty: (0, 0), full: (0, 6)}
    assert origin.offsets_at({empty: 1, full: 1003}, bounds) == {empty: None, full: 3}
    assert origin.offsets_at({full: 2000}, bounds) == {full: None}
    ids = origin.topic_ids([empty, full, TopicPartition("nobody", 0)])
    files = FilesOrigin([broker.data], committed_only=False, max_split_bytes=None)
    assert ids == files.topic_ids([empty, full]) != {}
    assert origin.bounds([TopicPartition("nobody", 0)]) == {}


@pytest.mark.slow
def test_timestamps_that_spark_cannot_hold_are_clipped_and_counted_by_both_readers(
    broker: BrokerProcess, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    any_time = {"message.timestamp.after.max.ms": str((1 << 63) - 1)}
    create_topic(broker.bootstrap, topic, 1, any_time)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    nanoseconds = NOW_MS * 1_000_000
    for timestamp_ms in (NOW_MS, nanoseconds, (1 << 63) - 1, MAX_MS - 1):
        producer.produce(topic, b"x", timestamp=timestamp_ms)
    assert producer.flush(LIMIT_SECONDS) == 0
    wanted = OffsetRange(TopicPartition(topic, 0), 0, 4)
    for mode in ("files", "broker"):
        where = {"path": str(broker.data), "kafka.bootstrap.servers": broker.bootstrap}
        options = read_options({**where, "subscribe": topic, "mode": mode}, streaming=False)
        table = pa.Table.from_batches(read_range(options, wanted, ("timestamp",)))
        found = [number // 1000 for number in table["timestamp"].cast(pa.int64()).to_pylist()]
        assert found == [NOW_MS, MAX_MS, MAX_MS, MAX_MS - 1]
        assert f"{topic}-0, offsets 0 to 3: 2 timestamps" in caplog.text
        caplog.clear()


def test_an_unreachable_broker_is_an_error() -> None:
    client = {"bootstrap.servers": "127.0.0.1:1", "log_level": "0"}
    origin = BrokerOrigin(client, committed_only=False, timeout_s=0.3)
    with pytest.raises(BrokerError, match=r"127\.0\.0\.1:1"):
        origin.partitions()


class SilentConsumer:
    """Never says anything."""

    def __init__(self, config: dict[str, Any]) -> None:
        pass

    def assign(self, partitions: Sequence[ClientPartition]) -> None:
        pass

    def consume(self, count: int, timeout_s: float) -> list[KafkaError]:
        return []

    def close(self) -> None:
        pass


def test_a_broker_that_stops_answering_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(broker_reader, "Consumer", SilentConsumer)
    wanted = OffsetRange(TopicPartition("a", 0), 0, 1)
    reader = BrokerReader({"bootstrap.servers": "h:1"}, wanted, ("value",), timeout_ms=3000)
    with pytest.raises(BrokerError, match="no answer from h:1 within 3000 ms"):
        list(reader.read())


class ShrinkingLog(SilentConsumer):
    """Has offsets up to 19. Then its log begins at 7 and ends at 15."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._answers = [
            [Answer(number) for number in range(5, 20)],
            [Answer(20, KafkaError(KafkaError.OFFSET_OUT_OF_RANGE))],
        ]

    def assign(self, partitions: Sequence[ClientPartition]) -> None:
        offset = partitions[0].offset
        if not self._answers:
            self._answers.append([Answer(number) for number in range(offset, 15)])
            self._answers.append([Answer(15, KafkaError(KafkaError._PARTITION_EOF))])

    def consume(self, count: int, timeout_s: float) -> list[Any]:
        return self._answers.pop(0)

    def get_watermark_offsets(
        self, partition: ClientPartition, *, timeout: float
    ) -> tuple[int, int]:
        return 7, 15


class Answer:
    """A message without anything but an offset, or an error."""

    def __init__(self, offset: int, error: KafkaError | None = None) -> None:
        self.offset = lambda: offset
        self.error = lambda: error


def test_records_are_not_read_again_if_the_log_is_cut_at_both_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(broker_reader, "Consumer", ShrinkingLog)
    wanted = OffsetRange(TopicPartition("a", 0), 5, 30)
    reader = BrokerReader({}, wanted, ("offset",), fail_on_data_loss=False)
    found = [offset for batch in reader.read() for offset in batch["offset"].to_pylist()]
    assert found == list(range(5, 20))


class LaggingFollower(SilentConsumer):
    """Has offsets up to 9, as the leader does, and knows up to 4 at first that they are there."""

    def __init__(self, config: dict[str, Any]) -> None:
        end = KafkaError(KafkaError._PARTITION_EOF)
        self._answers: list[list[Answer]] = [
            [*(Answer(number) for number in range(5)), Answer(5, end)],
            [],
            [*(Answer(number) for number in range(5, 10)), Answer(10, end)],
        ]

    def consume(self, count: int, timeout_s: float) -> list[Any]:
        return self._answers.pop(0)

    def get_watermark_offsets(
        self, partition: ClientPartition, *, timeout: float
    ) -> tuple[int, int]:
        return 0, 10


def test_a_follower_that_does_not_know_the_end_yet_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(broker_reader, "Consumer", LaggingFollower)
    reader = BrokerReader({}, OffsetRange(TopicPartition("a", 0), 0, 10), ("offset",))
    found = [offset for batch in reader.read() for offset in batch["offset"].to_pylist()]
    assert found == list(range(10))


class RestartingBroker(SilentConsumer):
    """Cannot be reached at first."""

    def __init__(self, config: dict[str, Any]) -> None:
        down = [Answer(-1, KafkaError(KafkaError._ALL_BROKERS_DOWN))]
        self._answers = [down, down, [Answer(0)]]

    def consume(self, count: int, timeout_s: float) -> list[Any]:
        return self._answers.pop(0)


class LostBroker(SilentConsumer):
    """Cannot be reached."""

    def consume(self, count: int, timeout_s: float) -> list[Any]:
        return [Answer(-1, KafkaError(KafkaError._ALL_BROKERS_DOWN))]


def test_a_broker_that_restarts_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = BrokerReader(
        {"bootstrap.servers": "h:1"}, OffsetRange(TopicPartition("a", 0), 0, 1), ("offset",)
    )
    monkeypatch.setattr(broker_reader, "Consumer", RestartingBroker)
    assert [made["offset"].to_pylist() for made in reader.read()] == [[0]]
    monkeypatch.setattr(broker_reader, "Consumer", LostBroker)
    with pytest.raises(BrokerError, match="no answer from h:1"):
        list(reader.read())


REFUSAL = KafkaException(KafkaError(KafkaError._TRANSPORT, "gone"))


class RefusingConsumer(SilentConsumer):
    """Refuses to read."""

    def consume(self, count: int, timeout_s: float) -> list[Any]:
        raise REFUSAL


class SilentAboutOffsets(SilentConsumer):
    """Has lost what is read, and does not say where the log begins."""

    def consume(self, count: int, timeout_s: float) -> list[Any]:
        return [Answer(0, KafkaError(KafkaError.OFFSET_OUT_OF_RANGE))]

    def get_watermark_offsets(
        self, partition: ClientPartition, *, timeout: float
    ) -> tuple[int, int]:
        assert timeout == 3
        raise REFUSAL


@pytest.mark.parametrize("consumer", [RefusingConsumer, SilentAboutOffsets])
def test_an_exception_of_the_client_is_an_error_of_the_broker(
    monkeypatch: pytest.MonkeyPatch, consumer: type[SilentConsumer]
) -> None:
    monkeypatch.setattr(broker_reader, "Consumer", consumer)
    wanted = OffsetRange(TopicPartition("a", 0), 0, 9)
    reader = BrokerReader({}, wanted, ("value",), fail_on_data_loss=False, timeout_ms=3000)
    with pytest.raises(BrokerError, match="a-0: gone"):
        list(reader.read())


def test_a_setting_that_the_client_does_not_know_is_an_error_of_the_broker() -> None:
    client = {"bootstrap.servers": "127.0.0.1:1", "no.such.setting": "1"}
    reader = BrokerReader(client, OffsetRange(TopicPartition("a", 0), 0, 9), ("value",))
    with pytest.raises(BrokerError, match=r"no\.such\.setting"):
        list(reader.read())
    with pytest.raises(BrokerError, match=r"no\.such\.setting"):
        BrokerOrigin(client, committed_only=False)
