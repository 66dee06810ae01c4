"""A broker at work: what it does to its disk, what it tells its clients, and what it may delete.

Requests are sent one after the other. The broker syncs before it
answers (`log.flush.interval.messages=1`), but for the topic "loose".

A life has acts, from a start to a clean stop; an act has steps: what a client wants, or what the
broker does by itself. A step ends with RefusedError if the broker answers with an error.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec

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
from odradek.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.protocol.messages.produce import ProduceResponse
from odradek.protocol.messages.share_acknowledge import ShareAcknowledgeResponse
from odradek.protocol.messages.share_fetch import ShareFetchPartitionData, ShareFetchResponse
from odradek.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatResponse
from odradek.storage.deletions import remove_paths
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.retention import delete_old_segments
from odradek.storage.topic_names import (
    CONSUMER_OFFSETS_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from tests.support.broker_in_loop import BrokerInLoop, produce_to, until
from tests.support.broker_process import free_ports
from tests.support.dirty_logs import clean
from tests.support.log_box import NOW_MS, batch_of
from tests.support.share_requests import (
    ACCEPT,
    RELEASE,
    acknowledge,
    fetch,
    heartbeat,
    leave_session,
    settings_of_group,
)

from .journal import JournalledFiles, Mark

FIRST, SECOND = "first", "second"  # the data directories
PRODUCE_VERSION = 12  # the broker adds partitions to a transaction
GROUP = "readers"
PARTITIONS = 2
ATTEMPTS = 1000  # while the end of the transaction before is written
SHARE_ATTEMPTS = 200  # while the share group and its state are made
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
    "share.coordinator.snapshot.update.records.per.snapshot": "3",
    "metadata.log.max.record.bytes.between.snapshots": "1000",
    "metadata.max.retention.bytes": "3000",
    "internal.metadata.log.segment.bytes": "2000",
    "internal.metadata.delete.delay.millis": "0",
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


class Settled(NamedTuple):
    """A record that a share group has accepted, as the broker has said."""

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
    """What clients of a life know when it is over. `tried`: records without an acknowledgement."""

    def __init__(self) -> None:
        self.sent: defaultdict[Place, dict[int, Sent]] = defaultdict(dict)
        self.tried: defaultdict[Place, set[Sent]] = defaultdict(set)
        self.transactions: dict[int, Transaction] = {}
        self.accepted: defaultdict[Place, set[int]] = defaultdict(set)
        """The offsets that a share group wanted to accept."""
        self.values = 0


class RefusedError(Exception):
    """The broker has answered with an error. `needs`: the partitions that the step needs."""

    def __init__(self, what: str, code: int, needs: Sequence[tuple[str, int]] = ()) -> None:
        super().__init__(f"{what}: {ErrorCode(code).name}")
        self.needs = needs


def accepted(code: int, what: str, needs: Sequence[tuple[str, int]] = ()) -> None:
    """Raise RefusedError if the code is one of an error."""
    if code != ErrorCode.NONE:
        raise RefusedError(what, code, needs)


def config_of(root: Path, port: int = 9092, more: Mapping[str, str] | None = None) -> BrokerConfig:
    return BrokerConfig.from_texts(
        {
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": f"{root / FIRST},{root / SECOND}",
            "log.flush.interval.messages": "1",
            "log.retention.ms": "-1",
            "log.cleaner.enable": "false",  # its process has other files
            "node.id": "1",
            **SMALL_LOGS,
            **(more or {}),
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


P = ParamSpec("P")


def step(
    method: Callable[Concatenate["Life", P], Awaitable[None]],
) -> Callable[Concatenate["Life", P], Coroutine[Any, Any, None]]:
    """A method of a life that is one of its steps."""

    async def taken(life: "Life", /, *args: P.args, **kwargs: P.kwargs) -> None:
        await life.take(partial(method, life, *args, **kwargs))

    return taken


class Life:
    """A life of a broker, from its first start on an empty directory, or one act of it."""

    def __init__(self, root: Path, files: JournalledFiles | None = None) -> None:
        self.root = root
        self.files = files or JournalledFiles(root)
        self.ledger = Ledger()
        (self._port,) = free_ports(1)
        self._served: BrokerInLoop | None = None

    @property
    def broker(self) -> Broker:
        return self._running.broker

    @property
    def _running(self) -> BrokerInLoop:
        assert self._served is not None
        return self._served

    @property
    def told(self) -> list[object]:
        """What the broker has told others."""
        return [each.what for each in self.files.journal if isinstance(each, Mark)]

    async def run(self) -> None:
        """Everything once, some of it twice, with two clean stops between."""
        for act in ACTS:
            await self.play(act)

    async def play(self, act: "Act") -> None:
        """One act: a start, its steps, and a clean stop."""
        await self.start()
        await act(self)
        await self.stop()

    async def start(self) -> None:
        running = await start_broker(config_of(self.root, self._port), files=self.files)
        self._served = BrokerInLoop(running, self._port)

    async def stop(self) -> None:
        await self._running.stop()

    async def take(self, step: Callable[[], Awaitable[None]]) -> None:
        """Take one step."""
        await step()

    async def first_act(self) -> None:
        for topic in (CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC):
            await self.make_internal(topic)
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
        await self.share("kept", 0, "one")
        await self.apply_retention("short")
        await self.clean("cleaned")
        await self.snapshot()

    async def second_act(self) -> None:
        await self.transaction(commits=True)
        await self.commit_offset("kept", 5)
        await self.delete("gone")
        await self.create("gone")
        await self.produce("gone", 0)
        await self.share("kept", 1, "two")
        await self.move("kept", 0)
        for _ in range(6):
            await self.produce("kept", 0, 1, times=3)
            await self.produce("short", 0, times=5)
            await self.produce("cleaned", 0, keys=(b"a", b"b", b"d"))
        await self.apply_retention("short")
        await self.clean("cleaned")
        await self.transaction(commits=None)
        await self.share("kept", 0, "three")
        await self.commit_offset("kept", 8)
        await self.snapshot()

    async def third_act(self) -> None:
        await self.produce("kept", 0)
        await self.transaction(commits=False)
        await self.share("kept", 0, "four")

    # -- what clients do ---------------------------------------------------------------------------

    @step
    async def make_internal(self, topic: str) -> None:
        await self.broker.admin.topics.ensure_internal_topic(topic)

    @step
    async def create(self, topic: str) -> None:
        new = NewTopic(name=topic, partition_count=PARTITIONS, configs=SMALL | TOPICS[topic])
        made = (await self.broker.admin.topics.create([new]))[topic]
        if isinstance(made, ApiError):
            raise made
        self.files.mark(Made(topic, self._id(topic)))

    @step
    async def delete(self, topic: str) -> None:
        for partition in range(PARTITIONS):
            self.files.mark(MayGo(self._place(topic, partition)))
        (deleted,) = await self.broker.admin.topics.delete([TopicRef(topic)])
        if deleted.error is not None:
            raise deleted.error
        self.files.mark(Made(topic, None))
        remove_paths(self.files, self.broker.log_manager.deletions.take_due())

    @step
    async def produce(
        self, topic: str, *partitions: int, times: int = 1, keys: Sequence[bytes] = (b"k",)
    ) -> None:
        for key in keys:
            for _ in range(times):
                await self._produce(topic, partitions, key)

    async def _produce(
        self,
        topic: str,
        partitions: Sequence[int],
        key: bytes = b"k",
        transaction: int | None = None,
    ) -> None:
        self.ledger.values += 1
        value = b"%s %06d" % (topic.encode(), self.ledger.values)
        fields: dict[str, Any] = {}
        if transaction is not None:
            fields["producer"] = (*self.ledger.transactions[transaction].producer, 0)
            fields["is_transactional"] = True
        batch = batch_of(value, key=key, **fields)
        sent = Sent(key, value, transaction)
        for index in partitions:
            self.ledger.tried[self._place(topic, index)].add(sent)
        transactional_id = None if transaction is None else "shop"
        request = produce_to(topic, batch, partitions, transactional_id=transactional_id)
        answer = await self._running.ask(request, ProduceResponse, PRODUCE_VERSION)
        answers = answer.responses[0].partition_responses
        for each in answers:
            if each.error_code == ErrorCode.NONE:
                place = self._place(topic, each.index)
                self.ledger.tried[place].remove(sent)
                self.ledger.sent[place][each.base_offset] = sent
                if topic != "loose":
                    self.files.mark(Stored(place, each.base_offset))
        for each in answers:
            needs = [(topic, each.index)]
            if transaction is not None:
                needs.append((TRANSACTION_STATE_TOPIC, 0))
            accepted(each.error_code, f"produce to {topic}-{each.index}", needs)

    @step
    async def transaction(self, *, commits: bool | None) -> None:
        """Write to two partitions and an end: a commit, an abort, or none."""
        needs = [("kept", 0), ("kept", 1), (TRANSACTION_STATE_TOPIC, 0)]
        request = InitProducerIdRequest(transactional_id="shop", transaction_timeout_ms=60_000)
        answer = await self._running.ask(request, InitProducerIdResponse, 4)
        for _ in range(ATTEMPTS):
            if answer.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
                break
            await asyncio.sleep(0.001)
            answer = await self._running.ask(request, InitProducerIdResponse, 4)
        accepted(answer.error_code, "InitProducerId", needs)
        number = len(self.ledger.transactions)
        producer = (answer.producer_id, answer.producer_epoch)
        self.ledger.transactions[number] = Transaction(producer, None)
        await self._produce("kept", (0, 1), transaction=number)
        if commits is None:
            return
        self.ledger.transactions[number] = Transaction(producer, commits)
        end = EndTxnRequest(
            transactional_id="shop",
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=commits,
        )
        ended = await self._running.ask(end, EndTxnResponse, 5)
        accepted(ended.error_code, "EndTxn", needs)
        self.files.mark(Ended(number, commits))

    @step
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
        code = answer.topics[0].partitions[0].error_code
        accepted(code, "OffsetCommit", [(CONSUMER_OFFSETS_TOPIC, 0)])
        self.files.mark(Committed(place, offset))

    @step
    async def share(self, topic: str, partition: int, member: str) -> None:
        """A new member of the share group gets records, releases the second and accepts others."""
        needs = [(topic, partition), (CONSUMER_OFFSETS_TOPIC, 0), (SHARE_GROUP_STATE_TOPIC, 0)]
        place = self._place(topic, partition)
        settings = await self._running.ask(settings_of_group(), IncrementalAlterConfigsResponse, 1)
        accepted(settings.responses[0].error_code, "IncrementalAlterConfigs")
        await self._joined(member, place, needs)
        acquired = await self._acquired(member, place, needs)
        offsets = [
            offset
            for each in acquired.acquired_records
            for offset in range(each.first_offset, each.last_offset + 1)
        ]
        types = {offset: RELEASE if offset in offsets[1:2] else ACCEPT for offset in offsets}
        settled = [offset for offset, kind in types.items() if kind == ACCEPT]
        self.ledger.accepted[place].update(settled)
        told = await self._running.ask(
            acknowledge(member, 1, place.topic_id, partition, types), ShareAcknowledgeResponse, 2
        )
        code = told.error_code or told.responses[0].partitions[0].error_code
        accepted(code, "ShareAcknowledge", needs)
        for offset in settled:
            self.files.mark(Settled(place, offset))
        left = await self._running.ask(leave_session(member), ShareAcknowledgeResponse, 2)
        accepted(left.error_code, "the end of the session", needs)
        await self._beat(member, -1, topic, needs)

    async def _joined(self, member: str, place: Place, needs: Sequence[tuple[str, int]]) -> None:
        """Send heartbeats until the topic is assigned: its state is there from then on.

        The partition may be that of a member that was there before, and that could not leave.
        """
        epoch = 0
        for _ in range(SHARE_ATTEMPTS):
            answer = await self._beat(member, epoch, place.topic, needs)
            epoch = answer.member_epoch
            for topic in answer.assignment.topic_partitions if answer.assignment else ():
                if topic.topic_id == place.topic_id:
                    return
            await asyncio.sleep(0.005)
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        raise RefusedError("ShareGroupHeartbeat: nothing is assigned", code, needs)

    async def _beat(
        self, member: str, epoch: int, topic: str, needs: Sequence[tuple[str, int]]
    ) -> ShareGroupHeartbeatResponse:
        request = heartbeat(member, epoch, topic)
        answer = await self._running.ask(request, ShareGroupHeartbeatResponse, 1)
        accepted(answer.error_code, "ShareGroupHeartbeat", needs)
        return answer

    async def _acquired(
        self, member: str, place: Place, needs: Sequence[tuple[str, int]]
    ) -> ShareFetchPartitionData:
        """What a new session is given first; it is opened until there is something."""
        request = fetch(member, 0, place.topic_id, place.partition, 4)
        for _ in range(SHARE_ATTEMPTS):
            answer = await self._running.ask(request, ShareFetchResponse, 2)
            accepted(answer.error_code, "ShareFetch", needs)
            for topic in answer.responses:
                [found] = topic.partitions
                accepted(found.error_code, "ShareFetch", needs)
                if found.acquired_records:
                    return found
            await asyncio.sleep(0.005)
        raise RefusedError("ShareFetch: nothing", ErrorCode.UNKNOWN_SERVER_ERROR, needs)

    # -- what the broker does by itself ------------------------------------------------------------

    @step
    async def apply_retention(self, topic: str) -> None:
        log = self._log(topic, 0)
        self.files.mark(MayLack(self._place(topic, 0), log.log_end_offset))
        delete_old_segments(log, NOW_MS)
        remove_paths(self.files, self.broker.log_manager.deletions.take_due())
        self.broker.log_manager.write_log_starts()

    @step
    async def clean(self, topic: str) -> None:
        log = self._log(topic, 0)
        place = self._place(topic, 0)
        self.files.mark(MayLack(place, log.log_end_offset, newer_keys_only=True))
        clean(log, NOW_MS, checkpoint=0, files=self.files)
        remove_paths(self.files, self.broker.log_manager.deletions.take_due())

    @step
    async def snapshot(self) -> None:
        """Write a snapshot of the metadata, and delete what is not needed any more."""
        snapshots = self.broker.metadata_log.snapshots
        await snapshots.write_if_due()
        await snapshots.clean()
        remove_paths(self.files, self.broker.log_manager.deletions.take_due())

    @step
    async def move(self, topic: str, partition: int) -> None:
        """Move a partition to the other directory, and wait until it is there."""
        before = self._log(topic, partition).directory.parent
        other = self.root / (SECOND if before.name == FIRST else FIRST)
        topics = [AlterReplicaLogDirTopic(name=topic, partitions=[partition])]
        request = AlterReplicaLogDirsRequest(
            dirs=[AlterReplicaLogDir(path=str(other), topics=topics)]
        )
        answer = await self._running.ask(request, AlterReplicaLogDirsResponse, 2)
        code = answer.results[0].partitions[0].error_code
        accepted(code, "AlterReplicaLogDirs")
        moves = self.broker.log_manager.futures
        await until(lambda: (topic, partition) not in moves)
        if self._log(topic, partition).directory.parent != other:
            raise RefusedError("the move is given up", ErrorCode.KAFKA_STORAGE_ERROR, [])

    # -- names -------------------------------------------------------------------------------------

    def _id(self, topic: str) -> bytes:
        known = self.broker.metadata.topics.get(topic)
        if known is None:
            raise RefusedError(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [(topic, 0)])
        return known.id

    def _place(self, topic: str, partition: int) -> Place:
        return Place(topic, self._id(topic), partition)

    def _log(self, topic: str, partition: int) -> PartitionLog:
        self._id(topic)
        return self.broker.log_manager.get(topic, partition)


Act = Callable[[Life], Awaitable[None]]
ACTS: tuple[Act, ...] = (Life.first_act, Life.second_act, Life.third_act)
