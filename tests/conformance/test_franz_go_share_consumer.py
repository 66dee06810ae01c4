"""franz-go's share consumer: every record is settled, and none comes again after that."""

import subprocess
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.conformance.share_reader import prepare_group
from tests.support.broker_process import BrokerProcess
from tests.support.go_programs import build, why_no_go
from tests.support.topics import create_topic
from tests.support.wire import WireClient

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).parents[1] / "support" / "franz_go_client" / "share"
PARTITIONS, RECORDS = 3, 1_000
LIMIT_SECONDS = 120.0


def test_every_record_is_settled_once(broker: BrokerProcess, tmp_path: Path) -> None:
    reason = why_no_go(SOURCE)
    if reason:
        pytest.skip(reason)
    create_topic(broker.bootstrap, "go-orders", PARTITIONS)
    with WireClient(broker.port) as client:
        prepare_group(client, "franz-go", "go-orders")
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(RECORDS):
        producer.produce("go-orders", b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(LIMIT_SECONDS) == 0
    arguments = [broker.bootstrap, "go-orders", "franz-go", str(RECORDS)]
    done = subprocess.run(
        [build(SOURCE, tmp_path), *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    said = done.stdout.splitlines()
    assert done.returncode == 0, said[-5:]
    assert len(said) == len(set(said)) == RECORDS
    assert all(line.startswith("settled ") for line in said)
