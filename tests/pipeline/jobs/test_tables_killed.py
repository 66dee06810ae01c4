"""`odradek pipeline tables` beside a broker, killed and started again: no record is there twice."""

import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable

from tests.support.broker_process import SERVE, BrokerProcess
from tests.support.lengths import SEED, by_length
from tests.support.topics import create_topic

TOPIC, PARTITIONS = "orders", 3
KILLS = by_length(3, 50)
LIMIT_SECONDS = 60.0
pytestmark = pytest.mark.slow


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path / "broker").start()
    yield process
    process.stop()


class Writing(threading.Thread):
    """Writes numbered records until it is told to end; of some transactions, which it aborts too.

    `committed` are the values of records that consumers see.
    """

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self._plain = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
        self._transactional = Producer({"bootstrap.servers": bootstrap, "transactional.id": "t"})
        self.committed: list[bytes] = []
        self.ended = threading.Event()

    def run(self) -> None:
        chance = random.Random(SEED)
        self._transactional.init_transactions()
        number = 0
        while not self.ended.is_set():
            values = [b"%d" % each for each in range(number, number + chance.randint(1, 30))]
            number += len(values)
            if chance.random() < 0.5:
                self._send(self._plain, values)
                self._plain.flush()
                self.committed += values
                continue
            self._transactional.begin_transaction()
            self._send(self._transactional, values)
            if chance.random() < 0.3:
                self._transactional.flush()  # the records are in the log, and do not count
                self._transactional.abort_transaction()
            else:
                self._transactional.commit_transaction()
                self.committed += values
            time.sleep(chance.random() / 20)

    def _send(self, producer: Producer, values: list[bytes]) -> None:
        for value in values:
            producer.produce(TOPIC, value, partition=int(value) % PARTITIONS)
            producer.poll(0)


def started(broker: BrokerProcess, archive: Path) -> "subprocess.Popen[str]":
    options = ["--path", str(broker.data), "--every", "0.2", "--merge-every", "1"]
    command = [SERVE[0], "pipeline", "tables", str(archive)]
    return subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)


def archived(archive: Path) -> list[bytes]:
    if not DeltaTable.is_deltatable(str(archive)):
        return []
    found: list[bytes] = (
        DeltaTable(str(archive)).to_pyarrow_table(columns=["value"])["value"].to_pylist()
    )
    return found


def test_each_committed_record_is_in_the_table_once(broker: BrokerProcess, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    create_topic(broker.bootstrap, TOPIC, PARTITIONS)
    writing = Writing(broker.bootstrap)
    writing.start()
    chance = random.Random(SEED)
    for _ in range(KILLS):
        tables = started(broker, archive)
        time.sleep(1.5 + 2 * chance.random())  # any moment: nothing waits for this
        tables.kill()
        tables.communicate()
        values = archived(archive)
        assert len(set(values)) == len(values)
    tables = started(broker, archive)
    writing.ended.set()
    writing.join()
    expected = sorted(writing.committed)
    deadline = time.monotonic() + LIMIT_SECONDS
    while (values := sorted(archived(archive))) != expected and time.monotonic() < deadline:
        assert tables.poll() is None
        time.sleep(0.1)
    tables.send_signal(signal.SIGTERM)
    said, _ = tables.communicate()
    assert values == expected
    assert len(values) > 100
    assert (tables.returncode, "problem" in said) == (0, False), said
    assert said.splitlines()[-1].startswith("stopped; ")
