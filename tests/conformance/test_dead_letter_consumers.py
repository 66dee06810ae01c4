"""A Java share consumer gives records up: its dead-letter queue is that of Apache Kafka.

KIP-1191. The order in the queue is compared with nothing: records that are rejected one by one are
written by threads of Kafka.
"""

import subprocess
from pathlib import Path

import pytest

from odradek.protocol.record import read_records
from tests.conformance.conversation import patiently
from tests.conformance.share_reader import fill_queue
from tests.conformance.transcript import each_batch
from tests.support.broker_process import BrokerProcess, running_broker
from tests.support.java_tools import java_tools_of, why_no_java
from tests.support.kafka_answers import as_kept, kafka_answers, kafka_when_asked
from tests.support.kafka_jars import BROKER_VERSION
from tests.support.stored_batches import fetch
from tests.support.topics import create_topic
from tests.support.wire import WireClient

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.recorded]

PROGRAM = Path(__file__).parent.parent / "support" / "ShareRejects.java"
TOPIC, GROUP, QUEUE = "orders", "cooks", "dlq.orders"
RECORDS = 60
GIVEN_UP = RECORDS // 2 + RECORDS // 10
LIMIT_SECONDS = 120.0
SETTINGS = {
    "errors.deadletterqueue.topic.name": QUEUE,
    "errors.deadletterqueue.copy.record.enable": "true",
    "share.delivery.count.limit": "3",
}
# A record of the queue: key, value, headers.
Queued = tuple[bytes | None, bytes | None, list[list[object]]]


def given_up(broker: BrokerProcess) -> list[Queued]:
    """Have a Java consumer read a topic. Returns its queue, in the order of the topic."""
    create_topic(broker.bootstrap, QUEUE, 1, {"errors.deadletterqueue.group.enable": "true"})
    fill_queue(broker, TOPIC, GROUP, partitions=1, records=RECORDS, **SETTINGS)
    command = [
        *java_tools_of(BROKER_VERSION).java(),
        str(PROGRAM),
        broker.bootstrap,
        TOPIC,
        GROUP,
        str(RECORDS),
    ]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=LIMIT_SECONDS
    )
    assert done.stdout == "done\n", done.stderr

    def queued() -> list[Queued] | None:
        with WireClient(broker.port) as client:
            data = fetch(client, QUEUE, 0, 0)
        records = [record for batch in each_batch(data) for record in read_records(batch)]
        if len(records) < GIVEN_UP:
            return None
        plain = [(one.key, one.value, [list(each) for each in one.headers]) for one in records]
        return sorted(plain, key=lambda one: int(one[1] or b""))

    found: list[Queued] = patiently(queued)
    return found


def test_what_a_consumer_gives_up_is_in_the_queue_as_in_kafka(tmp_path: Path) -> None:
    reason = why_no_java()
    if reason:
        pytest.skip(reason)
    with kafka_when_asked(tmp_path / "kafka") as kafka:
        expected = kafka_answers("dead_letters_of_a_java_consumer", lambda: given_up(kafka()))
    assert len(expected) == GIVEN_UP
    with running_broker(tmp_path / "odradek") as broker:
        assert as_kept(given_up(broker)) == expected
