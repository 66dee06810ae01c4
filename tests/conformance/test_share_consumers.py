"""Java's share consumers: every record is settled, and none comes again after that.

The broker is killed meanwhile. A record whose acknowledgement the broker has confirmed is done; a
member may get any other one again. Each rejected record is in the dead-letter queue.
"""

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.protocol.batch_header import read_header
from odradek.protocol.record import Record, read_records
from tests.conformance.share_reader import MAX_IN_BATCH, fill_queue
from tests.conformance.transcript import each_batch
from tests.support.broker_process import BrokerProcess
from tests.support.java_tools import JAVA_TOOLS, why_no_java
from tests.support.lengths import SEED, by_length
from tests.support.stored_batches import fetch
from tests.support.topics import create_topic
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

pytestmark = [pytest.mark.java, pytest.mark.slow]

PROGRAM = Path(__file__).parent.parent / "support" / "ShareWorkers.java"
PARTITIONS, MEMBERS = 3, 3
RECORDS = by_length(3_000, 100_000)
KILLS = by_length(2, 20)
# Records that a member acknowledges at once: its max.poll.records, and the rest of a batch.
MAX_AT_ONCE = 50 + MAX_IN_BATCH
LIMIT_SECONDS = by_length(120.0, 1_800.0)
QUEUE = "dlq.orders"
# A busy machine is no reason to give a record up.
SETTINGS = {"share.delivery.count.limit": "10", "errors.deadletterqueue.topic.name": QUEUE}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    reason = why_no_java()
    if reason:
        pytest.skip(reason)
    process = BrokerProcess(tmp_path / "broker")
    process.start()
    yield process
    process.stop()


def test_every_record_is_settled_once_while_the_broker_is_killed(broker: BrokerProcess) -> None:
    allows = {"errors.deadletterqueue.group.enable": "true"}
    create_topic(broker.bootstrap, QUEUE, PARTITIONS, allows)
    fill_queue(broker, "orders", "cooks", partitions=PARTITIONS, records=RECORDS, **SETTINGS)
    arguments = [broker.bootstrap, "orders", "cooks", str(MEMBERS), str(RECORDS), str(SEED)]
    with subprocess.Popen(
        [*JAVA_TOOLS.java(), str(PROGRAM), *arguments], stdout=subprocess.PIPE, text=True
    ) as workers:
        too_late = threading.Timer(LIMIT_SECONDS, workers.kill)
        too_late.start()
        try:
            said = follow(workers, broker)
        finally:
            too_late.cancel()
            workers.kill()
    told: dict[str, list[str]] = {"settled": [], "rejected": [], "unknown": [], "again": []}
    for line in said:
        what, _, record = line.partition(" ")
        told.setdefault(what, []).append(record)
    settled, unknown = told["settled"], told["unknown"]
    counts = {what: len(records) for what, records in told.items()}
    assert (counts["again"], len({*settled, *unknown})) == (0, RECORDS), counts
    assert len(settled) + len(unknown) == RECORDS, counts
    assert len(unknown) <= KILLS * MEMBERS * MAX_AT_ONCE, counts
    rejected = set(told["rejected"])
    wait_until(lambda: rejected <= queued(broker))
    assert rejected, counts
    assert not queued(broker) & (set(settled) - rejected), "an accepted record is in the queue"


def queued(broker: BrokerProcess) -> set[str]:
    """Partition and offset of the records that are in the dead-letter queue."""
    found = set()
    for partition in range(PARTITIONS):
        offset = 0
        with WireClient(broker.port) as client:
            while data := fetch(client, QUEUE, partition, offset):
                for batch in each_batch(data):
                    offset = read_header(batch).next_offset
                    found |= {place_of(record) for record in read_records(batch)}
    return found


def place_of(record: Record) -> str:
    headers = {name: (value or b"").decode() for name, value in record.headers}
    return f"{headers['__dlq.errors.partition']} {headers['__dlq.errors.offset']}"


def follow(workers: "subprocess.Popen[str]", broker: BrokerProcess) -> list[str]:
    """Read what the workers say, to the end, and kill the broker at even distances."""
    said: list[str] = []
    settled = 0
    kills_at = [RECORDS * (each + 1) // (KILLS + 1) for each in range(KILLS)]
    assert workers.stdout is not None
    for line in workers.stdout:
        said.append(line.rstrip())
        settled += line.startswith("settled ")
        if kills_at and settled >= kills_at[0]:
            kills_at.pop(0)
            broker.kill()
            broker.start()
    assert not kills_at
    return said
