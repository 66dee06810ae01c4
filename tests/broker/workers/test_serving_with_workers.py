"""A broker with two workers, seen by unmodified clients."""

import uuid
from base64 import b64decode

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    OffsetSpec,
    ResourceType,
)
from kafka import KafkaConsumer, KafkaProducer

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from odradek.protocol.messages.node_endpoint import NodeEndpoint
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
    produce,
    values_in,
)
from tests.support.wire import WireClient

pytestmark = pytest.mark.slow


@pytest.fixture
def topic(admin: AdminClient) -> str:
    return new_topic(admin, f"t-{uuid.uuid4()}")


def test_each_partition_is_led_by_a_worker_which_is_a_node(
    broker: BrokerWithWorkers, admin: AdminClient, topic: str
) -> None:
    described = admin.list_topics(topic, timeout=30)
    assert {node.id: f"{node.host}:{node.port}" for node in described.brokers.values()} == {
        number: broker.bootstrap_of(number) for number in range(3)
    }
    leaders = [each.leader for each in described.topics[topic].partitions.values()]
    assert sorted(set(leaders)) == [1, 2]
    assert [each.isrs for each in described.topics[topic].partitions.values()] == [
        [leader] for leader in leaders
    ]
    cluster = admin.describe_cluster().result(30)
    assert {node.id for node in cluster.nodes} == {0, 1, 2}
    assert cluster.controller.id == 0


def test_records_are_written_and_read_by_unmodified_clients(
    broker: BrokerWithWorkers, topic: str
) -> None:
    values = [f"value-{number:04}" for number in range(600)]
    produce(broker.bootstrap, topic, values)
    assert values_in(broker.bootstrap, topic, 600) == values
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    for _ in range(60):
        producer.send(topic, b"more").add_errback(pytest.fail)
    producer.close()
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=broker.bootstrap,
        group_id=str(uuid.uuid4()),
        auto_offset_reset="earliest",
    )
    found = 0
    while found < 660:
        records = consumer.poll(30_000)
        assert records, f"only {found} records"
        found += sum(map(len, records.values()))
    consumer.close()


def test_a_transaction_ends_in_all_its_partitions(broker: BrokerWithWorkers, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    for value in ("aborted", "committed"):
        producer.begin_transaction()
        for index in range(PARTITIONS):
            producer.produce(topic, value, partition=index)
        if value == "aborted":
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    assert values_in(broker.bootstrap, topic, PARTITIONS) == ["committed"] * PARTITIONS


def test_a_worker_answers_for_the_whole_cluster(broker: BrokerWithWorkers) -> None:
    bootstrap = broker.bootstrap_of(1)
    name = new_topic(AdminClient({"bootstrap.servers": bootstrap}), f"t-{uuid.uuid4()}")
    produce(bootstrap, name, ["one"])
    assert values_in(bootstrap, name, 1) == ["one"]


def test_a_group_is_listed_once(broker: BrokerWithWorkers, admin: AdminClient, topic: str) -> None:
    produce(broker.bootstrap, topic, ["one"])
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic})
    consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    consumer.close()
    listed = admin.list_consumer_groups().result(30)
    assert [each.group_id for each in listed.valid].count(topic) == 1
    assert listed.errors == []


def test_a_topic_that_is_created_again_is_empty(
    broker: BrokerWithWorkers, admin: AdminClient, topic: str
) -> None:
    for _ in range(2):
        produce(broker.bootstrap, topic, [str(number) for number in range(PARTITIONS)])
        asked = {TopicPartition(topic, index): OffsetSpec.latest() for index in range(PARTITIONS)}
        found = [each.result(30).offset for each in admin.list_offsets(asked).values()]
        assert found == [1] * PARTITIONS
        admin.delete_topics([topic])[topic].result(30)
        new_topic(admin, topic)


def test_added_partitions_are_served(
    broker: BrokerWithWorkers, admin: AdminClient, topic: str
) -> None:
    admin.create_partitions([NewPartitions(topic, 2 * PARTITIONS)])[topic].result(30)
    leaders = {
        each.leader
        for each in admin.list_topics(topic, timeout=30).topics[topic].partitions.values()
    }
    assert leaders == {1, 2}
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    errors: list[KafkaError | None] = []
    for index in range(2 * PARTITIONS):
        producer.produce(topic, "x", partition=index, on_delivery=lambda e, _: errors.append(e))
    assert producer.flush(30) == 0
    assert errors == [None] * 2 * PARTITIONS


def test_a_changed_topic_configuration_reaches_the_worker(
    broker: BrokerWithWorkers, admin: AdminClient, topic: str
) -> None:
    change = ConfigEntry("max.message.bytes", "100", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
    admin.incremental_alter_configs([resource])[resource].result(30)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    errors: list[KafkaError | None] = []
    producer.produce(topic, b"x" * 200, partition=0, on_delivery=lambda e, _: errors.append(e))
    producer.flush(30)
    assert [each and each.code() for each in errors] == [KafkaError.MSG_SIZE_TOO_LARGE]


def test_each_worker_describes_its_own_configuration(
    broker: BrokerWithWorkers, admin: AdminClient
) -> None:
    for node in ("0", "1"):
        resource = ConfigResource(ResourceType.BROKER, node)
        described = admin.describe_configs([resource])[resource].result(30)
        assert described["odradek.workers"].value == "2"


def test_only_its_worker_writes_to_a_partition(
    broker: BrokerWithWorkers, admin: AdminClient, topic: str
) -> None:
    leader = admin.list_topics(topic, timeout=30).topics[topic].partitions[0].leader
    batch = build_batch([Record(None, b"one", 1)])
    data = [ProducePartitionData(index=0, records=batch)]
    request = ProduceRequest(
        acks=1, timeout_ms=1000, topic_data=[ProduceTopicData(name=topic, partition_data=data)]
    )
    for node in range(3):
        with WireClient(broker.port_of(node)) as client:
            response = client.ask(request, ProduceResponse, 10)
        [answer] = response.responses[0].partition_responses
        if node == leader:
            assert answer.error_code == ErrorCode.NONE
            assert response.node_endpoints == []
        else:
            assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert answer.current_leader.leader_id == leader
            assert answer.current_leader.leader_epoch == 0
            assert addresses(response.node_endpoints) == {leader: broker.bootstrap_of(leader)}


def test_a_fetch_from_another_node_is_told_the_leader(
    broker: BrokerWithWorkers, admin: AdminClient, topic: str
) -> None:
    described = admin.describe_topics(TopicCollection([topic]))[topic].result(30)
    topic_id = b64decode(f"{described.topic_id}==", altchars=b"-_")
    leaders = [each.leader.id for each in described.partitions]
    partitions = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1)
        for index in range(PARTITIONS)
    ]
    request = FetchRequest(
        max_wait_ms=10_000,
        min_bytes=1,
        topics=[FetchTopic(topic_id=topic_id, partitions=partitions)],
        forgotten_topics_data=[],
    )
    with WireClient(broker.port_of(1)) as client:
        response = client.ask(request, FetchResponse, 16)
    answers = response.responses[0].partitions
    assert [each.current_leader.leader_id for each in answers] == [
        leader if leader == 2 else -1 for leader in leaders
    ]
    assert addresses(response.node_endpoints) == {2: broker.bootstrap_of(2)}


def addresses(endpoints: list[NodeEndpoint]) -> dict[int, str]:
    return {each.node_id: f"{each.host}:{each.port}" for each in endpoints}
