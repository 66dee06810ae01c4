"""Fixtures of the conformance tests."""

from collections.abc import Callable, Iterator

import pytest

from tests.conformance.clients import CLIENTS
from tests.conformance.clients.client import Client
from tests.support.broker_process import (
    ApacheKafkaProcess,
    BrokerProcess,
    running_broker,
    why_no_broker,
)
from tests.support.java_tools import why_no_java
from tests.support.topics import create_topic


@pytest.fixture(params=CLIENTS.values(), ids=list(CLIENTS))
def client(request: pytest.FixtureRequest) -> Client:
    """Each of the Python clients in turn."""
    return request.param


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafkaProcess]:
    """Apache Kafka, whatever broker is tested: for what odradek's clients need of a broker."""
    reason = why_no_java()
    if reason:
        pytest.skip(reason)
    process = ApacheKafkaProcess(tmp_path_factory.mktemp("kafka"))
    process.start()
    yield process
    process.stop()


@pytest.fixture(scope="session")
def kafka_if_asked(request: pytest.FixtureRequest) -> Callable[[], ApacheKafkaProcess]:
    """Gives the same, and starts it if nobody has yet."""
    return lambda: request.getfixturevalue("kafka")


@pytest.fixture
def three_partitions(broker: BrokerProcess, topic: str) -> str:
    """A new topic of three partitions."""
    create_topic(broker.bootstrap, topic, 3)
    return topic


# Members of consumer groups speak five times a second, and are out after three seconds. Members of
# share groups speak as often.
QUICK_GROUPS = {
    "group.consumer.min.session.timeout.ms": "3000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.assignment.interval.ms": "0",
    "group.consumer.assignment.interval.ms": "100",
    "group.share.min.heartbeat.interval.ms": "200",
    "group.share.heartbeat.interval.ms": "200",
    "group.share.min.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
}


@pytest.fixture(scope="session")
def quick_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker whose consumer groups and share groups notice soon what happens to them."""
    reason = why_no_broker()
    if reason:
        pytest.skip(reason)
    with running_broker(tmp_path_factory.mktemp("quick"), QUICK_GROUPS) as process:
        yield process
        assert process.crashes_in_log() == [], process.log_text()
