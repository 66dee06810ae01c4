"""`odradek verify` on the directories of a live broker: what is open, and what hangs."""

from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import ProduceResponse
from odradek.protocol.messages.write_txn_markers import (
    WriteTxnMarkersMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    WriteTxnMarkersTopic,
)
from tests.conformance.requests import batch_of, request_with
from tests.support.broker_process import BrokerProcess
from tests.support.topics import create_topic
from tests.support.wire import WireClient
from tests.tools.test_verify import Verdict, verdict

pytestmark = pytest.mark.slow

SETTINGS = {
    "transaction.partition.verification.enable": "false",
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.num.partitions": "1",
}


def test_a_transaction_is_open_or_hanging_whatever_the_broker_does(
    start_broker: Callable[..., BrokerProcess],
) -> None:
    broker = start_broker(**SETTINGS)
    create_topic(broker.bootstrap, "orders")
    kept = open_with_offsets(broker)
    with WireClient(broker.port) as client:
        batch = batch_of("x", producer=(7001, 0, 0), transactional=True)
        request = request_with("orders", bytes(batch), transactional_id="lost")
        [topic] = client.ask(request, ProduceResponse, 11).responses
        assert topic.partition_responses[0].error_code == ErrorCode.NONE

    def check() -> None:
        found = verdict(broker.data, deep=True)
        assert [line["path"] for line in found.problems] == [str(broker.data / "orders-0")], found
        assert found.says("orders-0", "producer id 7001", "--start-offset 1")
        assert has_open_transaction(found)

    check()
    broker.kill()
    check()
    broker.start()
    with WireClient(broker.port) as client:
        abort(client, 7001)
    found = verdict(broker.data, deep=True)
    assert (found.code, found.problems) == (0, [])
    assert has_open_transaction(found)
    broker.terminate()
    found = verdict(broker.data, deep=True)
    assert (found.code, found.problems) == (0, [])
    assert has_open_transaction(found)
    del kept


def open_with_offsets(broker: BrokerProcess) -> Producer:
    """A transaction that is open in a topic and in the offsets of a group."""
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": "pay", "log_level": 0}
    )
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("orders", b"value", partition=0)
    assert producer.flush(20) == 0
    group = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "group", "log_level": 0})
    offsets = [TopicPartition("orders", 0, 1)]
    producer.send_offsets_to_transaction(offsets, group.consumer_group_metadata(), 20)
    group.close()
    return producer


def has_open_transaction(found: Verdict) -> bool:
    """Whether it is noted in both partitions, and nowhere else."""
    words = "transactional id pay has it, Ongoing"
    noted = sum(words in str(line["what"]) for line in found.notes)
    places = ("orders-0", "__consumer_offsets-0")
    return noted == len(places) and all(found.notes_that(place, words) for place in places)


def abort(client: WireClient, producer_id: int) -> None:
    """Do what `kafka-transactions.sh abort` does."""
    topic = WriteTxnMarkersTopic(name="orders", partition_indexes=[0])
    marker = WriteTxnMarkersMarker(
        producer_id=producer_id,
        producer_epoch=0,
        transaction_result=False,
        topics=[topic],
        coordinator_epoch=0,
    )
    answer = client.ask(WriteTxnMarkersRequest(markers=[marker]), WriteTxnMarkersResponse, 1)
    assert answer.markers[0].topics[0].partitions[0].error_code == ErrorCode.NONE
