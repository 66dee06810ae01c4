"""Offsets from a broker that fails for a while."""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

from odradek.broker.testing import Broker, Fault
from odradek.pipeline.source.broker_origin import BrokerError, BrokerOrigin
from odradek.storage.topic_partition import TopicPartition
from tests.pipeline.source.origins import tp

pytestmark = pytest.mark.slow

LIMIT_SECONDS = 100.0
PARTITIONS = [tp("a-0"), tp("a-1")]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("broker")) as broker:
        broker.create_topic("a", partitions=2)
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        for partition in (0, 1, 1):
            producer.produce("a", b"x", partition=partition, timestamp=1000)
        assert producer.flush(LIMIT_SECONDS) == 0
        yield broker


@pytest.fixture
def origin(broker: Broker) -> Iterator[BrokerOrigin]:
    client = {"bootstrap.servers": broker.bootstrap_servers, "log_level": "0"}
    yield BrokerOrigin(client, committed_only=False, timeout_s=LIMIT_SECONDS)
    broker.clear_faults()


def ends(origin: BrokerOrigin) -> dict[TopicPartition, int]:
    return {each: bounds.end for each, bounds in origin.bounds(PARTITIONS).items()}


@pytest.mark.parametrize("after", [0, 1], ids=["earliest", "latest"])
def test_a_leader_that_does_not_answer_is_asked_again(
    broker: Broker, origin: BrokerOrigin, after: int
) -> None:
    """librdkafka returns no error, but an offset that is none."""
    fault = broker.inject(Fault(api="LIST_OFFSETS", after=after, cut="before_answer"))
    assert ends(origin) == {tp("a-0"): 1, tp("a-1"): 2}
    assert fault.fired() == 1


def test_no_answer_is_not_taken_for_records_that_are_all_older(
    broker: Broker, origin: BrokerOrigin
) -> None:
    bounds = origin.bounds(PARTITIONS)
    fault = broker.inject(Fault(api="LIST_OFFSETS", cut="before_answer"))
    times = dict.fromkeys(PARTITIONS, 1000)
    assert origin.offsets_at(times, bounds) == {tp("a-0"): 0, tp("a-1"): 0}
    assert fault.fired() == 1


@pytest.mark.parametrize(
    "error",
    ["NOT_LEADER_OR_FOLLOWER", "OFFSET_NOT_AVAILABLE", "KAFKA_STORAGE_ERROR"],
)
def test_a_change_of_leader_is_waited_for(broker: Broker, origin: BrokerOrigin, error: str) -> None:
    fault = broker.inject(Fault(api="LIST_OFFSETS", topic="a", partition=1, error=error, times=2))
    assert ends(origin) == {tp("a-0"): 1, tp("a-1"): 2}
    assert fault.fired() == 2


@pytest.mark.parametrize(
    "ask", [BrokerOrigin.partitions, lambda origin: origin.topic_ids(PARTITIONS)]
)
def test_a_topic_whose_leaders_are_being_elected_is_waited_for(
    broker: Broker, origin: BrokerOrigin, ask: Callable[[BrokerOrigin], object]
) -> None:
    before = ask(origin)
    fault = broker.inject(Fault(api="METADATA", topic="a", error="LEADER_NOT_AVAILABLE", times=2))
    assert ask(origin) == before
    assert fault.fired() == 2


def test_an_error_that_stays_is_an_error_at_once_or_after_the_timeout(broker: Broker) -> None:
    client = {"bootstrap.servers": broker.bootstrap_servers, "log_level": "0"}
    broker.inject(Fault(api="LIST_OFFSETS", topic="a", error="TOPIC_AUTHORIZATION_FAILED"))
    with pytest.raises(BrokerError, match="authorization"):
        BrokerOrigin(client, committed_only=False).bounds(PARTITIONS)
    broker.inject(Fault(api="LIST_OFFSETS", topic="a", error="OFFSET_NOT_AVAILABLE", times=None))
    with pytest.raises(BrokerError, match="high watermark"):
        BrokerOrigin(client, committed_only=False, timeout_s=2).bounds(PARTITIONS)
    broker.clear_faults()
