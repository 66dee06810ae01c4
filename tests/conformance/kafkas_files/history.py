"""What is written: topics of every kind, with everything that makes a log hard to read.

    plain         all codecs, keys, nulls, headers; the first records of a partition are deleted
    stamped       Kafka puts its own time in
    recoded       Kafka compresses anew what producers send
    transactions  many that lie in each other; on partition 0 one is left open, with more behind it
    compacted     with transactions and tombstones; cleaned twice, and not cleaned at its end

Segments are small, so that each partition has many.
"""

import random
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from odradek.storage.checkpoints import read_offsets
from odradek.storage.files import Files
from odradek.storage.topic_partition import TopicPartition as Partition
from tests.conformance.kafkas_files.writing import LIMIT_SECONDS, Transactions, Writing
from tests.support.broker_process import BrokerProcess
from tests.support.compaction import alter_topic
from tests.support.topics import create_topic
from tests.support.waiting import wait_until

BROKER_SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "log.cleaner.backoff.ms": "100",
    "log.initial.task.delay.ms": "100",
    "log.flush.start.offset.checkpoint.interval.ms": "100",
    "group.coordinator.rebalance.protocols": "classic",
}
KINDS: dict[str, dict[str, str]] = {
    "plain": {},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "recoded": {"compression.type": "zstd"},
    "transactions": {},
    "compacted": {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.001",
        "delete.retention.ms": "1",
    },
}
PARTITIONS = {"plain": 3, "stamped": 1, "recoded": 1, "transactions": 2, "compacted": 2}


@dataclass(slots=True)
class History:
    """Topics `{name}-{kind}` of a broker; `size` is about how many records each has."""

    broker: BrokerProcess
    name: str
    rng: random.Random
    size: int = 800

    def topic(self, kind: str) -> str:
        return f"{self.name}-{kind}"

    def write(self) -> Transactions:
        """All of it. What comes back has to be kept while the open transaction shall be open."""
        bootstrap = self.broker.bootstrap
        segment_bytes = self.rng.choice([8_000, 12_000, 20_000])
        for kind, config in KINDS.items():
            small = {
                "internal.segment.bytes": str(segment_bytes),
                "index.interval.bytes": str(self.rng.choice([1, 500, 4096])),
            }
            create_topic(bootstrap, self.topic(kind), PARTITIONS[kind], {**small, **config})
        writing = Writing(bootstrap, self.rng, self.name)
        for kind in ("plain", "stamped", "recoded"):
            writing.plain(self.topic(kind), PARTITIONS[kind], self.size)
        self._delete_first()
        transactions = writing.transactions(5)
        self._compacted(writing, transactions)
        self._transactions(writing, transactions)
        return transactions

    def _delete_first(self) -> None:
        """Of one partition, up to the middle of some batch; of another, all."""
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        topic, files = self.topic("plain"), Files()
        until = TopicPartition(topic, 0, self.size // 9), TopicPartition(topic, 1, -1)
        deleted = {
            (topic, each.partition): answer.result(LIMIT_SECONDS).low_watermark
            for each, answer in admin.delete_records(list(until)).items()
        }
        noted = self.broker.data / "log-start-offset-checkpoint"
        wait_until(lambda: read_offsets(files, noted).items() >= deleted.items())
        # And something behind it.
        Writing(self.broker.bootstrap, self.rng, "").plain(topic, 2, self.size // 9)

    def _transactions(self, writing: Writing, transactions: Transactions) -> None:
        topic, partitions = self.topic("transactions"), PARTITIONS["transactions"]
        for _ in range(4):
            transactions.play(topic, partitions, self.size // 50)
            writing.plain(topic, partitions, self.size // 20)
        transactions.leave_open(topic, 1)
        transactions.play(topic, partitions, self.size // 50)
        transactions.end()
        writing.plain(topic, partitions, self.size // 20)

    def _compacted(self, writing: Writing, transactions: Transactions) -> None:
        topic, partitions = self.topic("compacted"), PARTITIONS["compacted"]
        for _ in range(2):
            transactions.play(topic, partitions, self.size // 20, keys=90)
            transactions.end()
            writing.plain(topic, partitions, self.size // 2, keys=90)
            wait_until(lambda: all(map(self._is_clean, range(partitions))))
        alter_topic(self.broker.bootstrap, topic, "min.cleanable.dirty.ratio", "1.0")
        transactions.play(topic, partitions, self.size // 20, keys=90)
        transactions.end()
        writing.plain(topic, partitions, self.size // 4, keys=90)

    def _is_clean(self, partition: int) -> bool:
        """Whether all but the segment that is written to has been cleaned."""
        topic = self.topic("compacted")
        cleaned = read_offsets(Files(), self.broker.data / "cleaner-offset-checkpoint")
        return cleaned.get(Partition(topic, partition), 0) == newest_segment(
            self.broker.data / f"{topic}-{partition}"
        )


def newest_segment(directory: Path) -> int:
    """The offset that it begins with."""
    return max(int(path.stem) for path in directory.glob("*.log"))
