"""The Java clients of Kafka 0.9 and 0.10 write, read and commit, beside clients of today.

What each of their lines means is in OldClient.java: record n has the key `key-n` (every
third none) and the value `value-n-xxx…` (every fifth none); with 0.10 also a time.
"""

import queue
import subprocess
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from kafka import KafkaConsumer

from tests.conformance.clients import CLIENTS
from tests.conformance.clients.client import READ_SECONDS, Got, Sent
from tests.support.broker_process import BrokerProcess
from tests.support.java_tools import JavaTools
from tests.support.kafka_jars import OLD_CLIENTS
from tests.support.lengths import only_long
from tests.support.old_client import OldClient
from tests.support.stored_batches import stored_batches
from tests.support.topics import create_topic

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    only_long("the same versions are spoken in test_kafka_python_versions.py"),
]

START_MS = 1_700_000_000_000
OLD_CODECS = ("none", "gzip", "snappy", "lz4")
COUNT = 12
LONG_MS = 20_000
POLL_MS = 3000  # kafka-python may forget a rebalance that ends behind the end of a poll
TODAY = [CLIENTS["kafka-python"], CLIENTS["confluent-kafka"]]


@pytest.fixture(params=OLD_CLIENTS)
def old(request: pytest.FixtureRequest) -> OldClient:
    """Each of the old clients in turn."""
    client = OldClient(request.param)
    reason = client.why_not()
    if reason:
        pytest.skip(reason)
    return client


@pytest.fixture
def one_partition(broker: BrokerProcess, topic: str) -> str:
    """A new topic."""
    create_topic(broker.bootstrap, topic)
    return topic


def has_times(old: OldClient) -> bool:
    """Whether its records have timestamps: it writes and reads magic 1."""
    return old.version != "0.9.0.1"


def written_by(old: OldClient) -> list[Sent]:
    """What `produce` writes, as a client of today sees it."""
    return [
        Sent(
            None if n % 5 == 4 else f"value-{n}-{'x' * n}".encode(),
            None if n % 3 == 2 else f"key-{n}".encode(),
            0,
            START_MS + n * 1000 if has_times(old) else -1,
        )
        for n in range(COUNT)
    ]


def shown_by(old: OldClient, records: list[Sent], first: int = 0) -> list[str]:
    """The lines in which `read` shows records."""
    return [
        f"record {first + n} {text(one.key)} {text(one.value)} "
        f"{one.timestamp_ms if has_times(old) else '-'}"
        for n, one in enumerate(records)
    ]


def text(data: bytes | None) -> str:
    return "null" if data is None else data.decode()


def starting_with(lines: list[str], word: str) -> list[str]:
    return [line for line in lines if line.startswith(word)]


def test_what_it_writes_it_reads_and_so_do_clients_of_today(
    old: OldClient, broker: BrokerProcess, one_partition: str
) -> None:
    ways = [(codec, acks) for codec in OLD_CODECS for acks in ("all", "1", "0")]
    total = COUNT * len(ways)
    lines = old.run(
        broker.bootstrap,
        *(f"produce {one_partition} {codec} {acks} {COUNT}" for codec, acks in ways),
        f"read {one_partition} 0 {total} {LONG_MS}",
    )
    offsets = [
        n if acks != "0" else -1
        for start, (_, acks) in zip(range(0, total, COUNT), ways, strict=True)
        for n in range(start, start + COUNT)
    ]
    assert starting_with(lines, "offset") == [f"offset {n}" for n in offsets]
    written = written_by(old) * len(ways)
    assert starting_with(lines, "record") == shown_by(old, written)
    assert {batch.codec for batch in stored_batches(broker.port, one_partition)} == set(OLD_CODECS)
    for client in TODAY:
        assert [one.as_sent() for one in read(client.name, broker, one_partition, total)] == written


def read(name: str, broker: BrokerProcess, topic: str, count: int) -> list[Got]:
    """The records of a topic, by a client of today."""
    reader = CLIENTS[name].reader(broker.bootstrap, topic, [0])
    try:
        got = reader.read(count)
    finally:
        reader.close()
    assert [one.offset for one in got] == list(range(count))
    return got


def test_it_reads_what_clients_of_today_write(
    old: OldClient, broker: BrokerProcess, one_partition: str
) -> None:
    """In every codec that it knows; headers are left out."""
    headers = (("header", b"x"), ("header", b""))
    written = []
    for client in TODAY:
        for codec in OLD_CODECS:
            records = [
                Sent(f"{codec}-{n}-{'y' * n}".encode(), b"k", 0, START_MS + n, headers)
                for n in range(COUNT)
            ]
            client.produce(broker.bootstrap, one_partition, records, codec=codec)
            written += records
    lines = old.run(
        broker.bootstrap,
        f"read {one_partition} beginning {len(written)} {LONG_MS}",
        f"read {one_partition} 17 {len(written) - 17} {LONG_MS}",  # inside a compressed batch
    )
    shown = shown_by(old, written)
    assert starting_with(lines, "record") == [*shown, *shown[17:]]


def test_its_commits_and_those_of_today_are_the_same(
    old: OldClient, broker: BrokerProcess, java: JavaTools, one_partition: str, group: str
) -> None:
    produce = f"produce {one_partition} none all {COUNT}"
    committed, consume = (f"{verb} {one_partition} {group}" for verb in ("committed", "consume"))
    lines = old.run(broker.bootstrap, committed, produce, f"{consume} {COUNT}")
    assert lines[0] == "committed nothing"
    assert lines[-1] == f"committed {COUNT} "
    today = TODAY[0].reader(broker.bootstrap, one_partition, [0], group)
    assert today.committed(0) == (COUNT, "")
    today.commit(0, COUNT + 3, "by today")
    today.close()
    shown = java.run(
        "consumer.group.ConsumerGroupCommand",
        *("--bootstrap-server", broker.bootstrap, "--describe", "--group", group),
    )
    assert f"{one_partition} 0 {COUNT + 3} {COUNT} -3" in " ".join(shown.split())
    lines = old.run(broker.bootstrap, committed, produce, f"{consume} {COUNT - 3}")
    assert lines[0] == f"committed {COUNT + 3} by today"
    assert starting_with(lines, "record")[0].startswith(f"record {COUNT + 3} ")
    assert lines[-1] == f"committed {2 * COUNT} "


class Joined:
    """An old client that stays in a group; its lines are read as they come."""

    def __init__(self, process: "subprocess.Popen[str]", topic: str, group: str) -> None:
        self.process = process
        self.assigned: list[int] | None = None
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self.say(f"join {topic} {group}")

    def say(self, line: str) -> None:
        """Give it a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def look(self) -> list[int] | None:
        """Its partitions after the last rebalance that it told of."""
        while not self._lines.empty():
            words = self._lines.get().split()
            assert words[0] in {"assigned", "left"}, words
            self.assigned = [int(word) for word in words[1:]] if words[0] == "assigned" else None
        return self.assigned

    def leave(self) -> None:
        """Have it leave the group, and end it."""
        self.say("stop")
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(READ_SECONDS)
        self._reader.join()
        assert self.look() is None

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout:
            for line in self.process.stdout:
                self._lines.put(line)


@pytest.fixture
def joined(old: OldClient, broker: BrokerProcess, topic: str, group: str) -> Iterator[Joined]:
    """An old client in a group on a topic of four partitions."""
    create_topic(broker.bootstrap, topic, 4)
    process = old.popen(broker.bootstrap)
    member = Joined(process, topic, group)
    try:
        yield member
    finally:
        process.kill()
        process.wait()
        member._reader.join()


def test_it_shares_a_group_with_a_member_of_today(
    joined: Joined, broker: BrokerProcess, topic: str, group: str
) -> None:
    today = KafkaConsumer(
        topic,
        bootstrap_servers=broker.bootstrap,
        group_id=group,
        session_timeout_ms=6000,
        heartbeat_interval_ms=500,
    )

    def shared() -> bool:
        today.poll(timeout_ms=POLL_MS)
        theirs, ours = joined.look(), {at.partition for at in today.assignment()}
        return theirs is not None and len(theirs) == 2 and ours == set(range(4)) - set(theirs)

    def alone() -> bool:
        today.poll(timeout_ms=POLL_MS)
        return {at.partition for at in today.assignment()} == set(range(4))

    try:
        wait_for(shared)
        joined.leave()
        wait_for(alone)
    finally:
        today.close()


def wait_for(condition: Callable[[], bool]) -> None:
    """Poll until it holds."""
    deadline = time.monotonic() + READ_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
