"""A broker at work: what it does to its disk, what it tells its clients, and what it may delete.

Requests are sent one after the other. The broker syncs before it
answers (`log.flush.interval.messages=1`), but for the topic "loose".
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from odradek.broker.broker import Broker
from odradek.broker.lifecycle.running import start_broker
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.metadata.topic_deletion import TopicRef
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicData,
)
from odradek.storage.deletions import remove_paths
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.retention import delete_old_segments
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from tests.support.broker_in_loop import BrokerInLoop, until
from tests.support.broker_process import free_ports
from tests.support.dirty_logs import clean
from tests.support.log_box import NOW_MS, batch_of

from .journal import JournalledFiles

FIRST, SECOND = "first", "second"  # the data directories
PRODUCE_VERSION = 12  # the broker adds partitions to a transaction
GROUP = "readers"
PARTITIONS = 2
SMALL = {
    "internal.segment.bytes": "1000",
    "segment.index.bytes": "240",
    "index.interval.bytes": "0",
}
SMALL_LOGS = {
    "log.segment.bytes": "1048576",
    "log.index.size.max.bytes": "240",
    "log.index.interval.bytes": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "metadata.log.max.record.bytes.between.snapshots": "3000",
}
TOPICS: dict[str, dict[str, str]] = {
    "kept": {},
    "loose": {"flush.messages": "1000000"},
    "short": {"retention.bytes": "1500", "file.delete.delay.ms": "0"},
    "cleaned": {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0",
        "file.delete.delay.ms": "0",
        "delete.retention.ms": "0",
    },
    "gone": {"file.delete.delay.ms": "0"},
}


class Place(NamedTuple):
    """A partition of one topic of that name."""

    topic: str
    topic_id: bytes
    partition: int


class Stored(NamedTuple):
    """A record that the broker has acknowledged."""

    place: Place
    offset: int


class Made(NamedTuple):
    """A topic that the broker has said to have created, or deleted."""

    topic: str
    topic_id: bytes | None


class MayLack(NamedTuple):
    """From now on, records before an offset may be missing, or those with a newer one of a key."""

    place: Place
    before: int
    newer_keys_only: bool = False


class MayGo(NamedTuple):
    """From now on, a partition may be missing: its topic is deleted."""

    place: Place


class Ended(NamedTuple):
    """A transaction that the broker has said to have ended."""

    number: int
    is_committed: bool


class Committed(NamedTuple):
    """An offset that the broker has said to have stored."""

    place: Place
    offset: int


class Sent(NamedTuple):
    """A record. `transaction`: its number, or None."""

    key: bytes
    value: bytes
    transaction: int | None


class Transaction(NamedTuple):
    """All of its records are read, or none. `decided`: how it was to end; None: it was not."""

    producer: tuple[int, int]
    decided: bool | None


class Ledger:
    """What clients of a life know when it is over."""

    def __init__(self) -> None:
        self.sent: defaultdict[Place, dict[int, Sent]] = defaultdict(dict)
        self.transactions: dict[int, Transaction] = {}


def config_of(root: Path, port: int = 9092) -> BrokerConfig:
    return BrokerConfig.from_texts(
        {
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": f"{root / FIRST},{root / SECOND}",
            "log.flush.interval.messages": "1",
            "log.retention.ms": "-1",
            "node.id": "1",
            **SMALL_LOGS,
        }
    )


def open_broker(root: Path, files: Files) -> Broker:
    """Start a broker without a server."""
    loop = asyncio.get_running_loop()
    return Broker(config_of(root), loop, {"PLAINTEXT": 9092}, now_ms=lambda: NOW_MS, files=files)


async def stop(broker: Broker) -> None:
    """A clean stop."""
    broker.answer_parked_requests()
    await broker.close()


class Life:
    """One life of a broker, from its first start on an empty directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = JournalledFiles(root)
        self.ledger = Ledger()
        self._numbers = count()
        (self._port,) = free_ports(1)
        self._served: BrokerInLoop | None = None

    @property
    def broker(self) -> Broker:
        return self._running.broker

    @property
    def _running(self) -> BrokerInLoop:
        assert self._served is not None
        return self._served

    async def run(self) -> None:
        """Everything once, some of it twice, with two clean stops."""
        await self.start()
        for topic in (CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC):
            await self.broker.admin.topics.ensure_internal_topic(topic)
        for topic in TOPICS:
            await self.create(topic)
        for _ in range(4):
            await self.produce("kept", 0, 1)
            await self.produce("loose", 0)
            await self.produce("short", 0, times=5)
            await self.produce("cleaned", 0, keys=(b"a", b"b", b"c"))
            await self.produce("gone", 0)
        await self.commit_offset("kept", 3)
        await self.transaction(commits=True)
        await self.transaction(commits=False)
        await self.apply_retention("short")
        await self.clean("cleaned")
        await self.restart()
        await self.transaction(commits=True)
        await self.commit_offset("kept", 5)
        await self.delete("gone")
        await self.create("gone")
        await self.produce("gone", 0)
        await self.move("kept", 0)
        for _ in range(6):
            await self.produce("kept", 0, 1, times=3)
            await self.produce("short", 0, times=5)
            await self.produce("cleaned", 0, keys=(b"a", b"b", b"d"))
        await self.apply_retention("short")
        await self.clean("cleaned")
        await self.transaction(commits=None)
        await self.commit_offset("kept", 8)
        await self.restart()
        await self.produce("kept", 0)
        await self.transaction(commits=False)
        await self._running.stop()

    # -- what clients do ---------------------------------------------------------------------------

    async def create(self, topic: str) -> None:
        new = NewTopic(name=topic, partition_count=PARTITIONS, configs=SMALL | TOPICS[topic])
        made = await self.broker.admin.topics.create([new])
        assert not isinstance(made[topic], ApiError), made
        self.files.mark(Made(topic, self._id(topic)))

    async def delete(self, topic: str) -> None:
        for partition in range(PARTITIONS):
            self.files.mark(MayGo(self._place(topic, partition)))
        await self.broker.admin.topics.delete([TopicRef(topic)])
        self.files.mark(Made(topic, None))
        remove_paths(self.files, self.broker.log_manager.deletions.take_due())

    async def produce(
        self,
        topic: str,
        *partitions: int,
        times: int = 1,
        keys: Sequence[bytes] = (b"k",),
        transaction: int | None = None,
    ) -> None:
        for key in keys:
            for _ in range(times):
                await self._produce(topic, partitions, key, transaction)

    async def _produce(
        self, topic: str, partitions: Sequence[int], key: bytes, transaction: int | None
    ) -> None:
        value = b"%s %06d" % (topic.encode(), next(self._numbers))
        fields: dict[str, Any] = {}
        if transaction is not None:
            fields["producer"] = (*self.ledger.transactions[transaction].producer, 0)
            fields["is_transactional"] = True
        batch = batch_of(value, key=key, **fields)
        data = [ProducePartitionData(index=index, records=batch) for index in partitions]
        request = ProduceRequest(
            transactional_id=None if transaction is None else "shop",
            acks=-1,
            timeout_ms=10_000,
            topic_data=[ProduceTopicData(name=topic, partition_data=data)],
        )
        answer = await self._running.ask(request, ProduceResponse, PRODUCE_VERSION)
        for each in answer.responses[0].partition_responses:
            assert each.error_code == ErrorCode.NONE, (topic, each)
            place = self._place(topic, each.index)
            self.ledger.sent[place][each.base_offset] = Sent(key, value, transaction)
            if topic != "loose":
                self.files.mark(Stored(place, each.base_offset))

    async def transaction(self, *, commits: bool | None) -> None:
        """Write to two partitions and an end: a commit, an abort, or none."""
        request = InitProducerIdRequest(transactional_id="shop", transaction_timeout_ms=60_000)
        answer = await self._running.ask(request, InitProducerIdResponse, 4)
        while answer.error_code == ErrorCode.CONCURRENT_TRANSACTIONS:
            await asyncio.sleep(0.001)
            answer = await self._running.ask(request, InitProducerIdResponse, 4)
        assert answer.error_code == ErrorCode.NONE
        number = len(self.ledger.transactions)
        producer = (answer.producer_id, answer.producer_epoch)
        self.ledger.transactions[number] = Transaction(producer, commits)
        await self.produce("kept", 0, 1, transaction=number)
        if commits is None:
            return
        end = EndTxnRequest(
            transactional_id="shop",
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=commits,
        )
        ended = await self._running.ask(end, EndTxnResponse, 5)
        assert ended.error_code == ErrorCode.NONE
        self.files.mark(Ended(number, commits))

    async def commit_offset(self, topic: str, offset: int) -> None:
        place = self._place(topic, 0)
        partition = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        request = OffsetCommitRequest(
            group_id=GROUP,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
        )
        answer = await self._running.ask(request, OffsetCommitResponse, 9)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
        self.files.mark(Committed(place, offset))

    # -- what the broker does by itself ------------------------------------------------------------

    async def apply_retention(self, topic: str) -> None:
        log = self._log(topic, 0)
        self.files.mark(MayLack(self._place(topic, 0), log.log_end_offset))
        delete_old_segments(log, NOW_MS)
        remove_paths(self.files, self.broker.log_manager.deletions.take_due())
        self.broker.log_manager.write_log_starts()

    async def clean(self, topic: str) -> None:
        log = self._log(topic, 0)
        place = self._place(topic, 0)
        self.files.mark(MayLack(place, log.log_end_offset, newer_keys_only=True))
        clean(log, NOW_MS, checkpoint=0, files=self.files)
        remove_paths(self.files, self.broker.log_manager.deletions.take_due())

    async def move(self, topic: str, partition: int) -> None:
        """Move a partition to the other directory, and wait until it is there."""
        before = self._log(topic, partition).directory.parent
        other = self.root / (SECOND if before.name == FIRST else FIRST)
        topics = [AlterReplicaLogDirTopic(name=topic, partitions=[partition])]
        request = AlterReplicaLogDirsRequest(
            dirs=[AlterReplicaLogDir(path=str(other), topics=topics)]
        )
        answer = await self._running.ask(request, AlterReplicaLogDirsResponse, 2)
        assert answer.results[0].partitions[0].error_code == ErrorCode.NONE
        await until(lambda: self._log(topic, partition).directory.parent == other)

    async def restart(self) -> None:
        """A clean stop, and a start."""
        await self._running.stop()
        await self.start()

    async def start(self) -> None:
        running = await start_broker(config_of(self.root, self._port), files=self.files)
        self._served = BrokerInLoop(running, self._port)

    # -- names -------------------------------------------------------------------------------------

    def _id(self, topic: str) -> bytes:
        return self.broker.metadata.topics[topic].id

    def _place(self, topic: str, partition: int) -> Place:
        return Place(topic, self._id(topic), partition)

    def _log(self, topic: str, partition: int) -> PartitionLog:
        return self.broker.log_manager.get(topic, partition)
