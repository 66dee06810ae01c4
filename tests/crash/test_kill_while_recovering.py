"""A broker is killed, and killed again while it recovers a large log; nothing is lost."""

import os
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from odradek.protocol.messages.produce import ProduceResponse
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.support.broker_process import BrokerProcess, against_apache_kafka, running_broker
from tests.support.bystander import PRODUCE_VERSION, produce_request
from tests.support.process_tree import children_of
from tests.support.stored_batches import stored_batches
from tests.support.topics import create_topic
from tests.support.wire import WireClient

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(against_apache_kafka(), reason="Kafka recovers before it serves"),
]

TOPIC = "large"
BATCHES = 120
RECORDS = 1000
LIMIT_SECONDS = 60.0


def fill(broker: BrokerProcess) -> None:
    """More than is recovered at once."""
    with WireClient(broker.port) as client:
        for n in range(BATCHES):
            records = [Record(key=None, value=bytes(1000), timestamp_ms=0)] * RECORDS
            batch = bytes(
                build_batch(records, producer_id=4, producer_epoch=0, base_sequence=n * RECORDS)
            )
            answer = client.ask(produce_request(TOPIC, batch), ProduceResponse, PRODUCE_VERSION)
            assert answer.responses[0].partition_responses[0].error_code == 0


def leader_of(broker: BrokerProcess) -> tuple[int, int]:
    """The error and the leader that Metadata tells."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    with WireClient(broker.port) as client:
        found = client.ask(request, MetadataResponse, 9).topics[0].partitions[0]
    return found.error_code, found.leader_id


def wait_for(condition: object) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    assert callable(condition)
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_large_log_survives_kills_while_it_is_recovered(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        create_topic(broker.bootstrap, TOPIC)
        fill(broker)
        broker.kill()
        for _ in range(2):
            broker.start()
            wait_for(lambda: children_of(broker.pid))
            children = children_of(broker.pid)
            broker.kill()
            # They end by themselves when the broker is gone.
            wait_for(lambda pids=children: not any(Path(f"/proc/{pid}").exists() for pid in pids))
        broker.start()
        assert leader_of(broker)[0] in (0, 5), "served already, or LEADER_NOT_AVAILABLE"
        delivered: list[int] = []
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        producer.produce(
            TOPIC, b"next", on_delivery=lambda _, sent: delivered.append(sent.offset())
        )
        assert producer.flush(LIMIT_SECONDS) == 0
        assert delivered == [BATCHES * RECORDS]
        assert sum(each.record_count for each in stored_batches(broker.port, TOPIC)) == (
            BATCHES * RECORDS + 1
        )
        assert "is recovered and served" in broker.log_text()
        assert broker.crashes_in_log() == []


def test_a_stop_while_a_log_is_recovered_is_quick_and_no_clean_one(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        create_topic(broker.bootstrap, TOPIC)
        fill(broker)
        broker.kill()
        broker.start()
        wait_for(lambda: children_of(broker.pid))
        [child] = children_of(broker.pid)
        is_served = leader_of(broker)[0] == 0
        assert broker.terminate() == 0
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)
        assert is_served or not (broker.data / ".kafka_cleanshutdown").exists()
        broker.start()
        wait_for(lambda: leader_of(broker) == (0, leader_of(broker)[1]))
        assert sum(each.record_count for each in stored_batches(broker.port, TOPIC)) == (
            BATCHES * RECORDS
        )
