"""Sequences of librdkafka's own tests of share consumers: as many records come as from Kafka."""

from collections.abc import Sequence

import pytest
from confluent_kafka import Message, Producer, ShareConsumer
from confluent_kafka.admin import AdminClient, NewPartitions

from tests.conformance.share_reader import prepare_group
from tests.support.broker_process import BrokerProcess
from tests.support.topics import create_topic
from tests.support.wire import WireClient

pytestmark = pytest.mark.slow

LIMIT_SECONDS = 60.0
POLLS = 60


class Queue:
    """Topics that a group of its own reads from the first record on."""

    def __init__(self, broker: BrokerProcess, group: str, *, partitions: int) -> None:
        self.broker = broker
        self.group = group
        self.topics: list[str] = []
        self.add_topic(partitions)
        with WireClient(broker.port) as client:
            prepare_group(client, group, self.topics[0])

    def add_topic(self, partitions: int = 1) -> None:
        self.topics.append(f"{self.group}-{len(self.topics)}")
        create_topic(self.broker.bootstrap, self.topics[-1], partitions)

    def produce(self, count: int, *partitions: int) -> None:
        """Write this many records to each of some partitions of each topic."""
        settings = {"bootstrap.servers": self.broker.bootstrap}
        for topic in self.topics:
            producer = Producer(settings)
            for partition in partitions:
                for number in range(count):
                    producer.produce(topic, b"%d" % number, partition=partition)
            assert producer.flush(LIMIT_SECONDS) == 0

    def member(self, *, mode: str = "implicit") -> ShareConsumer:
        settings = {
            "bootstrap.servers": self.broker.bootstrap,
            "group.id": self.group,
            "share.acknowledgement.mode": mode,
            "topic.metadata.refresh.interval.ms": 500,
        }
        consumer = ShareConsumer(settings)
        consumer.subscribe(self.topics)
        return consumer


def batches(consumer: ShareConsumer, count: int, *, seconds: float = 1.0) -> list[list[Message]]:
    """What polls bring that bring something, until there are this many records."""
    found: list[list[Message]] = []
    for _ in range(POLLS):
        if sum(map(len, found)) >= count:
            break
        found += [batch] if (batch := consumer.poll(seconds)) else []
    return found


def sizes(found: Sequence[Sequence[Message]]) -> list[int]:
    return [len(batch) for batch in found]


def test_the_first_answers_have_one_new_partition_each(quick_broker: BrokerProcess) -> None:
    queue = Queue(quick_broker, "one-each", partitions=2)
    queue.produce(50, 0, 1)
    with queue.member(mode="explicit") as consumer:
        found = batches(consumer, 50)
        for message in found[0]:
            consumer.acknowledge(message)
        found += batches(consumer, 50)
        assert sizes(found) == [50, 50]


def test_records_of_a_member_that_closes_go_to_the_others(quick_broker: BrokerProcess) -> None:
    queue = Queue(quick_broker, "closes", partitions=1)
    queue.produce(200, 0)
    members = [queue.member() for _ in range(4)]
    assert sizes(batches(members[0], 1)) == [200]
    members[0].close()
    counts = [0] * 3
    for _ in range(POLLS):
        for index, member in enumerate(members[1:]):
            counts[index] += len(member.poll(0.2))
        if sum(counts) >= 200:
            break
    for member in members[1:]:
        member.close()
    assert sum(counts) == 200


def test_records_of_partitions_that_are_added_come_once(quick_broker: BrokerProcess) -> None:
    queue = Queue(quick_broker, "grows", partitions=2)
    queue.produce(200, 0, 1)
    with queue.member() as consumer:
        assert sizes(batches(consumer, 400)) == [200, 200]
        admin = AdminClient({"bootstrap.servers": quick_broker.bootstrap})
        [grown] = admin.create_partitions([NewPartitions(queue.topics[0], 5)]).values()
        grown.result()
        queue.produce(200, 2, 3, 4)
        assert sum(sizes(batches(consumer, 600))) == 600


def test_a_subscription_that_grows_brings_each_record_once(quick_broker: BrokerProcess) -> None:
    queue = Queue(quick_broker, "subscribes", partitions=1)
    with queue.member() as consumer:
        for count in (1, 2, 3):
            queue.produce(10, 0)
            assert sum(sizes(batches(consumer, 10 * count))) == 10 * count
            queue.add_topic()
            consumer.subscribe(queue.topics)
