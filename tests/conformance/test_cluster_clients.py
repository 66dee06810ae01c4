"""What producers, consumers and transactions of three libraries live through when a node dies.

Nodes of odradek and, in `make long`, of Apache Kafka.
"""

import gc
import time
from collections.abc import Collection, Iterator
from contextlib import closing

import pytest

from tests.conformance.cluster.asked_coordinators import committed
from tests.conformance.cluster.clients import LIBRARIES, Consumer, Library, Producer
from tests.conformance.cluster.talk import TRANSACTION, ClusterTalk
from tests.support.clusters import Cluster
from tests.support.committed import committed_by_partition, committed_values, wait_until_decided
from tests.support.kafka_answers import BROKERS
from tests.support.kafka_cluster import ApacheKafkaCluster, running_cluster
from tests.support.odradek_cluster import running_odradek_cluster

pytestmark = [
    pytest.mark.slow,
    # kafka-python leaves sockets to the collector where a node was killed; `talk` runs it.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

READ_SECONDS = 90.0
JAVA = pytest.param("java", marks=pytest.mark.java)
# kafka-python 3.0.12 waits forever in `commit_transaction` after the coordinator of three nodes of
# Apache Kafka was killed, too; the coordinator aborts the transaction when its time is over.
LIBRARIES_WITH_TRANSACTIONS = [name for name in LIBRARIES if name != "kafka-python"]


@pytest.fixture(scope="module", params=BROKERS)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Three nodes."""
    if request.param == "kafka":
        with running_cluster(ApacheKafkaCluster(tmp_path_factory.mktemp("kafka"))) as kafka:
            yield kafka
        return
    with running_odradek_cluster() as odradek:
        yield odradek


@pytest.fixture
def talk(cluster: Cluster) -> Iterator[ClusterTalk]:
    """Raw requests to them; in the end all run again."""
    talk = ClusterTalk(cluster)
    yield talk
    talk.start_all()
    talk.close()
    gc.collect()


@pytest.fixture(params=[JAVA if name == "java" else name for name in LIBRARIES])
def library(request: pytest.FixtureRequest) -> Library:
    """Each of them."""
    return LIBRARIES[request.param]


@pytest.fixture(params=[JAVA if name == "java" else name for name in LIBRARIES_WITH_TRANSACTIONS])
def transactional(request: pytest.FixtureRequest) -> Library:
    """Those whose transactions survive the coordinator."""
    return LIBRARIES[request.param]


def test_each_record_is_there_once_after_its_leader_was_killed(
    talk: ClusterTalk, library: Library, topic: str
) -> None:
    talk.create_topic(topic, [1, 2, 3], [2, 3, 1])
    bootstrap = talk.cluster.bootstrap_servers
    values = [f"value-{number}" for number in range(400)]
    with closing(library.producer(bootstrap)) as producer:
        for number, value in enumerate(values):
            if number == 100:
                producer.flush()
            if number == 200:  # the hundred before have had no answer, or are not sent
                talk.cluster.node(1).kill()
                talk.lost(1)
            producer.send(topic, number % 2, value)
        producer.flush()
    talk.wait_for_state(topic, 0, leader=2, isr=[2, 3])
    talk.wait_for_state(topic, 1, leader=2, isr=[2, 3])
    found = committed_by_partition(talk.address_of_running(), [(topic, 0), (topic, 1)])
    for partition in (0, 1):
        assert [one.decode() for one in found[topic, partition]] == values[partition::2]


def test_a_consumer_goes_on_after_its_coordinator_was_killed(
    talk: ClusterTalk, library: Library, topic: str, group: str
) -> None:
    talk.create_topic(topic, [1, 3], [3, 1])
    talk.place_coordinator(group, [2, 3, 1])
    bootstrap = talk.cluster.bootstrap_servers
    values = [f"value-{number}" for number in range(300)]
    with (
        closing(library.producer(bootstrap)) as producer,
        closing(library.consumer(bootstrap, group, topic)) as consumer,
    ):
        _send(producer, topic, values[:200])
        found = _read(consumer, 50)
        consumer.commit()
        talk.kill(2)
        _send(producer, topic, values[200:])
        found |= _read(consumer, 300 - len(found), found)
        assert found == {*values}
        consumer.commit()
        talk.wait_for_coordinator(group, 3)
        answer = talk.silently(3, committed(group, topic, partitions=(0, 1)))
        (one,) = answer.groups[0].topics
        offsets = [partition.committed_offset for partition in one.partitions]
        assert offsets == [150, 150]


def test_a_transaction_ends_after_its_coordinator_was_killed(
    talk: ClusterTalk, transactional: Library, topic: str
) -> None:
    talk.create_topic(topic, [1, 3], [3, 1])
    name = f"of-{topic}"
    talk.place_coordinator(name, [2, 3, 1], TRANSACTION)
    values = [f"value-{number}" for number in range(20)]
    bootstrap = talk.cluster.bootstrap_servers
    with closing(transactional.producer(bootstrap, name)) as producer:
        producer.begin()
        _send(producer, topic, values[:10])
        talk.kill(2)
        _send(producer, topic, values[10:])
        producer.commit()
        producer.begin()  # and the next
        _send(producer, topic, ["after"])
        producer.commit()
    wait_until_decided(talk.address_of_running(), topic, 2)
    found = [one.decode() for one in committed_values(talk.address_of_running(), topic, 2)]
    assert sorted(found) == sorted([*values, "after"])


def _send(producer: Producer, topic: str, values: list[str]) -> None:
    """To both partitions in turn, and wait."""
    for number, value in enumerate(values):
        producer.send(topic, number % 2, value)
    producer.flush()


def _read(consumer: Consumer, count: int, known: Collection[str] = ()) -> set[str]:
    """At least so many values that are not known: a consumer may read some again."""
    deadline = time.monotonic() + READ_SECONDS
    found: set[str] = set()
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} values"
        found |= {*consumer.poll()} - {*known}
    return found
