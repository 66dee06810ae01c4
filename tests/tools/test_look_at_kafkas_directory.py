"""A directory that Apache Kafka wrote, with everything in it: dumped as Kafka does, and sound.

Segments of every codec, deleted ones, compacted ones, transactions committed and aborted, groups of
both protocols; as it is while the broker runs (and after a kill), and once it was stopped.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from odradek.pipeline.jobs.stats.job import StatsSettings, run_stats
from tests.support.archives import InThisProcess
from tests.support.broker_process import ApacheKafkaProcess
from tests.support.dumps import KafkasDumps
from tests.support.lengths import only_long
from tests.support.log_files import DECODERS
from tests.support.topics import create_topic
from tests.tools.test_dump_like_kafka import compare
from tests.tools.test_verify import verdict

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    only_long("directories of Kafka are dumped in test_dump_like_kafka.py"),
]

SETTINGS = {
    "log.index.interval.bytes": "200",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "offsets.topic.replication.factor": "1",
}
TOPICS = {
    "plain": {"segment.bytes": "1048576"},
    "txn": {},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "compacted": {"cleanup.policy": "compact", "segment.ms": "100"},
}
START_MS = 1_795_000_000_000


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """The directory as it was at two times."""
    root = tmp_path_factory.mktemp("kafka")
    broker = ApacheKafkaProcess(root, SETTINGS)
    copies = {name: root / name for name in ("running", "stopped")}
    try:
        broker.start()
        use(broker.bootstrap)
        kept = stays_open(broker.bootstrap)
        shutil.copytree(broker.data, copies["running"])
        # What an index names is in its log, if the log is copied behind it.
        for path in broker.data.rglob("*.log"):
            shutil.copy(path, copies["running"] / path.relative_to(broker.data))
        broker.terminate()
        shutil.copytree(broker.data, copies["stopped"])
        del kept
        yield copies
    finally:
        broker.stop()


def use(bootstrap: str) -> None:
    for name, config in TOPICS.items():
        create_topic(bootstrap, name, 1, config)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer(
            {"bootstrap.servers": bootstrap, "compression.type": codec, "batch.num.messages": 40}
        )
        for n in range(120):
            value = None if n % 7 == 6 else f"{n} größe ".encode() * (n % 20)
            headers = [("größe", b"x"), ("null", None)] if n % 3 == 0 else []
            stamp = START_MS + n * 7 - n % 4 * 1000
            producer.produce("plain", value, b"k%d" % n, timestamp=stamp, headers=headers)
            producer.produce("stamped", b"v")
            producer.produce("compacted", value, b"c%d" % (n % 9))
        producer.flush()
    commit_and_abort(bootstrap)
    for protocol in ("classic", "consumer"):
        read(bootstrap, protocol)


def commit_and_abort(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "tx"})
    producer.init_transactions()
    for n in range(4):
        producer.begin_transaction()
        producer.produce("txn", b"%d" % n)
        producer.flush()
        if n % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()


def stays_open(bootstrap: str) -> Producer:
    """A transaction that has not ended; one that is collected would be aborted."""
    settings = {"bootstrap.servers": bootstrap, "transactional.id": "open", "log_level": 0}
    producer = Producer(settings)
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("txn", b"open")
    producer.flush()
    return producer


def read(bootstrap: str, protocol: str) -> None:
    settings = {"group.id": protocol, "group.protocol": protocol, "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    consumer.subscribe(["plain", "txn"])
    for _ in range(40):
        if consumer.consume(20, timeout=1.0):
            break
    consumer.commit(asynchronous=False)
    consumer.close()


def test_kafkas_files_are_dumped_as_kafka_does(states: dict[str, Path]) -> None:
    with KafkasDumps() as kafka:
        for path in sorted(states["running"].rglob("*")):
            topic = path.parent.name.rpartition("-")[0]
            decoder = [DECODERS[topic]] if topic in DECODERS else []
            if path.name.endswith("index"):
                compare(kafka, "--files", str(path))
            elif path.suffix in (".log", ".snapshot", ".checkpoint"):
                compare(kafka, "--print-data-log", *decoder, "--files", str(path))


@pytest.mark.parametrize("state", ["running", "stopped"])
def test_kafkas_directory_is_sound(states: dict[str, Path], state: str) -> None:
    found = verdict(states[state], deep=True)
    assert found.code == 0, str(found)
    topics = {each["topic"]: each for each in found.summary["topics"]}
    assert topics["plain"]["records"] == 5 * 120
    assert topics["compacted"]["segments"] > 1
    assert found.notes_that("txn-0", "from offset 8 on", "transactional id open has it, Ongoing")
    is_clean = not any("not stopped cleanly" in str(note["what"]) for note in found.notes)
    assert is_clean == (state == "stopped")


def test_the_pipelines_stats_tell_of_its_topics_and_groups(states: dict[str, Path]) -> None:
    report = run_stats(InThisProcess(), StatsSettings(log_directories=[states["stopped"]]))
    assert report.problems == []
    topics = {each.topic: each.sums for each in report.topics}
    assert topics["plain"].records == 5 * 120
    assert set(topics["plain"].codecs) == {"none", "gzip", "snappy", "lz4", "zstd"}
    assert topics["stamped"].records == 5 * 120
    assert (topics["txn"].transactional_records, topics["txn"].markers) == (5, 4)
    groups = {each.group: each for each in report.groups}
    assert {name: each.kind for name, each in groups.items()} == {
        "classic": "classic",
        "consumer": "consumer",
    }
    for group in groups.values():
        assert group.members == 0
        assert sum(each.commit.offset for each in group.partitions) > 0
        # Both read topics with 600 and 8 offsets.
        assert group.lag == sum(
            (each.bounds.end if each.bounds else 0) - each.commit.offset
            for each in group.partitions
        )
