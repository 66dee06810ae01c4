"""What a worker does with its logs beside requests, and to clients that exceed their quota."""

import contextlib
import os
import time
import uuid

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.create_topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    CreateTopicsTopic,
)
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicData,
)
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.support.broker_with_workers import (
    PARTITIONS,
    BrokerWithWorkers,
    new_topic,
    values_in,
)
from tests.support.quotas import alter_quota
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

pytestmark = pytest.mark.slow

SEGMENT_BYTES = 1 << 20
QUICKLY = {
    "log.cleaner.backoff.ms": "200",
    "log.retention.check.interval.ms": "200",
    "log.initial.task.delay.ms": "100",
}


@pytest.fixture(scope="module")
def overrides() -> dict[str, str]:
    return QUICKLY


def write_segments(broker: BrokerWithWorkers, topic: str) -> None:
    """Write more than two segments to partitions 0 and 1, so to both workers, with few keys."""
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(100):
        producer.produce(topic, os.urandom(50_000), key=str(number % 4), partition=number % 2)
    assert producer.flush(30) == 0


def bytes_in(broker: BrokerWithWorkers, topic: str, partition: int) -> int:
    size = 0
    for file in (broker.data / f"{topic}-{partition}").glob("*.log"):
        with contextlib.suppress(FileNotFoundError):  # it has just been deleted
            size += file.stat().st_size
    return size


@pytest.mark.parametrize(
    "policy",
    [
        {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
        {"cleanup.policy": "delete", "retention.bytes": str(SEGMENT_BYTES)},
    ],
    ids=["compaction", "retention"],
)
def test_each_worker_deletes_what_its_logs_need_not_keep(
    broker: BrokerWithWorkers, admin: AdminClient, policy: dict[str, str]
) -> None:
    topic = str(uuid.uuid4())
    configs = {"segment.bytes": str(SEGMENT_BYTES), **policy}
    admin.create_topics([NewTopic(topic, 2, 1, config=configs)])[topic].result(30)
    write_segments(broker, topic)
    wait_until(
        lambda: all(bytes_in(broker, topic, index) < 2 * SEGMENT_BYTES for index in range(2))
    )


def throttle_ms(client: WireClient, topic: str, partition: int) -> int:
    """Produce 10 kB; what the response says."""
    batch = build_batch([Record(None, bytes(10_000), 1)])
    data = [ProducePartitionData(index=partition, records=batch)]
    request = ProduceRequest(
        acks=1, timeout_ms=1000, topic_data=[ProduceTopicData(name=topic, partition_data=data)]
    )
    response = client.ask(request, ProduceResponse, 9)
    assert response.responses[0].partition_responses[0].error_code == 0
    return response.throttle_time_ms


def test_each_worker_has_the_whole_quota_of_a_client(
    broker: BrokerWithWorkers, admin: AdminClient
) -> None:
    topic = new_topic(admin, str(uuid.uuid4()))
    partitions = admin.list_topics(topic, timeout=30).topics[topic].partitions
    name = str(uuid.uuid4())
    # 11 samples of a second: the second request exceeds it.
    alter_quota(broker.port, {"client-id": name}, producer_byte_rate=1_500.0)
    for partition in (0, 1):
        port = broker.port_of(partitions[partition].leader)
        with WireClient(port, client_id=name) as client:
            assert throttle_ms(client, topic, partition) == 0
            assert throttle_ms(client, topic, partition) > 0


def test_a_worker_serves_nothing_while_a_client_is_throttled_for_a_forwarded_request(
    broker: BrokerWithWorkers,
) -> None:
    name = str(uuid.uuid4())
    alter_quota(broker.port, {"client-id": name}, controller_mutation_rate=1.0)
    topic = CreateTopicsTopic(
        name=name, num_partitions=12, replication_factor=1, assignments=[], configs=[]
    )
    began_s = time.monotonic()
    with WireClient(broker.port_of(1), client_id=name) as client:
        # 11 samples of a second allow 11 partitions. Before v6 the excess is created, too.
        created = client.ask(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse, 5)
        assert created.topics[0].error_code == ErrorCode.NONE
        assert created.throttle_time_ms > 0
        client.ask(ApiVersionsRequest(), ApiVersionsResponse, 2)
    assert time.monotonic() - began_s >= created.throttle_time_ms / 1000


def test_topics_come_and_go_while_others_are_written_to(
    broker: BrokerWithWorkers, admin: AdminClient
) -> None:
    topic = new_topic(admin, str(uuid.uuid4()))
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    errors: list[KafkaError | None] = []
    values: list[str] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        errors.append(error)

    for number in range(20):
        name = f"{topic}-{number}"
        created = admin.create_topics([NewTopic(name, PARTITIONS, 1)])
        for index in range(PARTITIONS):
            values.append(f"{number}-{index}")
            producer.produce(topic, values[-1], partition=index, on_delivery=delivered)
        producer.poll(0)
        created[name].result(30)
        deleted = admin.delete_topics([name])
        producer.poll(0)
        deleted[name].result(30)
    assert producer.flush(30) == 0
    assert errors == [None] * len(values)
    assert values_in(broker.bootstrap, topic, len(values)) == sorted(values)
    assert list(admin.list_topics(timeout=30).topics).count(topic) == 1
