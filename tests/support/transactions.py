"""A broker on the test's own loop, whose transactions go by a clock that the test moves.

Requests are given to the handlers, without a connection. Times are those of transactions only: the
rest of the broker goes by the system's clock.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from odradek.broker.broker import Broker
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.feature_updates import UpgradeType
from odradek.coordinator.metadata.features import TRANSACTION_VERSION
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.runtime.producer import ProducerIdAndEpoch
from odradek.coordinator.runtime.timers import Now
from odradek.coordinator.transactions.transaction import Transaction
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceTopicData,
)
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from odradek.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesUpdate
from odradek.protocol.schema import Message
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from tests.support.contexts import handled, request_context
from tests.support.log_box import batch_of

TOPIC = "t"
GROUP = "g"
WALL_MS = 1_700_000_000_000
TIMEOUT_MS = 60_000
MARKERS_RETRIED_MS = 100
INTERNAL_TOPICS = (CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC)


class Transactions:
    """The topic `t` of three partitions; the coordinators' topics have one partition each."""

    def __init__(self, broker: Broker, now: Now) -> None:
        self.broker = broker
        self.now = now
        broker.coordinators.transactions.close()
        broker.coordinators.transactions._clock = broker.coordinators.transactions.alarm._clock = (
            lambda: self.now
        )
        broker.coordinators.logs.load()

    def log(self, partition: int = 0) -> PartitionLog:
        return self.broker.log_manager.get(TOPIC, partition)

    @property
    def state_log(self) -> PartitionLog:
        return self.broker.log_manager.get(TRANSACTION_STATE_TOPIC, 0)

    @property
    def table(self) -> Any:
        return self.broker.coordinators.transactions.shards.at(0).state

    def known(self, transactional_id: str) -> Transaction:
        transaction: Transaction = self.table.find(transactional_id)
        return transaction

    def wait(self, ms: int, *, wall_ms: int | None = None) -> None:
        """Let `ms` pass; the wall clock may jump by another time."""
        jump_ms = ms if wall_ms is None else wall_ms
        self.now = Now(self.now.wall_ms + jump_ms, self.now.timer_ms + ms)
        self.broker.coordinators.transactions.alarm.expire_due()

    async def ask(self, request: Message, version: int) -> Any:
        """Serve a request, like the dispatcher, but do not wait for syncs of coordinators."""
        self.broker.log_syncs.due.clear()
        context = request_context(self.broker, version, self.broker.clock.now_ms())
        assert request.SPEC.key is not None
        answer = handled(context, request)
        return await answer if inspect.isawaitable(answer) else answer

    async def finalize(self, version: int) -> None:
        """Set the feature transaction.version."""
        current = self.broker.metadata.features.level(TRANSACTION_VERSION)
        upgrade = UpgradeType.UPGRADE if version > current else UpgradeType.SAFE_DOWNGRADE
        update = UpdateFeaturesUpdate(
            feature=TRANSACTION_VERSION, max_version_level=version, upgrade_type=upgrade
        )
        answer = await self.ask(UpdateFeaturesRequest(feature_updates=[update]), 1)
        assert answer.error_code == ErrorCode.NONE, answer.error_message

    def producer(self, transactional_id: str = "shop", *, is_v2: bool = True) -> "Producer":
        return Producer(self, transactional_id, is_v2=is_v2)

    async def committed(self, *partitions: int, stable: bool = False) -> list[tuple[int, int]]:
        """Offset and error for each partition, of the group's offsets."""
        topics = [OffsetFetchRequestTopic(name=TOPIC, partition_indexes=list(partitions))]
        groups = [OffsetFetchRequestGroup(group_id=GROUP, topics=topics)]
        answer = await self.ask(OffsetFetchRequest(groups=groups, require_stable=stable), 8)
        found = answer.groups[0].topics[0].partitions
        return [(each.committed_offset, each.error_code) for each in found]

    def hold_markers(self) -> None:
        """Let the topic's logs be recovered, as far as markers are concerned."""

        def find_log(topic: str, partition: int) -> PartitionLog:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{topic}-{partition} is recovered")

        self.broker.coordinators.transactions.markers.find_log = find_log

    def release_markers(self) -> None:
        """Write the markers that were held."""
        self.broker.coordinators.transactions.markers.find_log = self.broker.log_manager.get
        self.wait(MARKERS_RETRIED_MS)

    def exhaust(self, transactional_id: str, epoch: int = 32766) -> ProducerIdAndEpoch:
        """Let the producer id of an idle transactional id come to that epoch."""
        shard = self.broker.coordinators.transactions.shards.at(0)
        known = self.known(transactional_id)
        last = known.become(known.state, producer_epoch=epoch)
        shard.journal.commit(shard.state.write(last, 2, None), self.now.wall_ms)
        return ProducerIdAndEpoch(known.producer_id, epoch)


class Versions(NamedTuple):
    """The versions of the requests of one kind of client."""

    init: int
    end: int
    produce: int
    commit: int
    add: int


V1, V2 = Versions(3, 3, 9, 3, 3), Versions(5, 5, 12, 5, 3)


class Producer:
    """A producer that speaks one version of transactions. Each method returns the error."""

    def __init__(self, rig: Transactions, transactional_id: str, *, is_v2: bool) -> None:
        self.rig = rig
        self.transactional_id = transactional_id
        self.is_v2 = is_v2
        self.versions = V2 if is_v2 else V1
        self.current = ProducerIdAndEpoch(-1, -1)

    async def start(
        self,
        expected: ProducerIdAndEpoch = ProducerIdAndEpoch(-1, -1),  # noqa: B008 # a value
        *,
        version: int | None = None,
        is_two_phase: bool = False,
    ) -> ErrorCode:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=TIMEOUT_MS,
            producer_id=expected.producer_id,
            producer_epoch=expected.epoch,
            enable2_pc=is_two_phase,
        )
        answer = await self.rig.ask(request, self.versions.init if version is None else version)
        if not answer.error_code:
            self.current = ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)
        return ErrorCode(answer.error_code)

    async def add(self, *partitions: int, version: int | None = None) -> ErrorCode:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.current.producer_id,
            v3_and_below_producer_epoch=self.current.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=list(partitions))],
        )
        answer = await self.rig.ask(request, self.versions.add if version is None else version)
        (topic,) = answer.results_by_topic_v3_and_below
        return ErrorCode(topic.results_by_partition[0].partition_error_code)

    def batch(self, sequence: int) -> bytes:
        return batch_of(b"value", producer=(*self.current, sequence), is_transactional=True)

    async def write(
        self, sequence: int = 0, partition: int = 0, *, version: int | None = None
    ) -> ErrorCode:
        return await self.send(memoryview(self.batch(sequence)), partition, version=version)

    async def send(
        self, batch: memoryview, partition: int, *, version: int | None = None
    ) -> ErrorCode:
        data = ProducePartitionData(index=partition, records=batch)
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[ProduceTopicData(name=TOPIC, partition_data=[data])],
        )
        answer = await self.rig.ask(request, self.versions.produce if version is None else version)
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)

    async def begin(self, partition: int = 0) -> None:
        """Write the first batch of a transaction to one partition."""
        if not self.is_v2:
            assert await self.add(partition) is ErrorCode.NONE
        assert await self.write(0, partition) is ErrorCode.NONE

    async def add_offsets(self) -> ErrorCode:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.current.producer_id,
            producer_epoch=self.current.epoch,
            group_id=GROUP,
        )
        return ErrorCode((await self.rig.ask(request, self.versions.add)).error_code)

    async def commit_offset(
        self, offset: int, partition: int = 0, *, version: int | None = None, **member: Any
    ) -> ErrorCode:
        wanted = TxnOffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=GROUP,
            producer_id=self.current.producer_id,
            producer_epoch=self.current.epoch,
            topics=[TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[wanted])],
            **member,
        )
        answer = await self.rig.ask(request, self.versions.commit if version is None else version)
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    async def end(self, *, commit: bool = True, version: int | None = None) -> ErrorCode:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.current.producer_id,
            producer_epoch=self.current.epoch,
            committed=commit,
        )
        answer = await self.rig.ask(request, self.versions.end if version is None else version)
        if not answer.error_code and self.is_v2:
            self.current = ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)
        return ErrorCode(answer.error_code)


@asynccontextmanager
async def transactions_in(
    *directories: Path,
    files: Files | None = None,
    now: Now = Now(WALL_MS, 0),  # noqa: B008 # a value
    **settings: str,
) -> AsyncIterator[Transactions]:
    """A broker with these data directories. Settings: `transactional_id_expiration_ms="1"`.

    `now`: what its clocks say at the start.
    """
    texts = {
        "log.dirs": ",".join(map(str, directories)),
        "listeners": "PLAINTEXT://localhost:9092",
        "transaction.state.log.num.partitions": "1",
        "offsets.topic.num.partitions": "1",
        "log.retention.ms": "-1",
    } | {name.replace("_", "."): value for name, value in settings.items()}
    config = BrokerConfig.from_texts(texts)
    broker = Broker(config, asyncio.get_running_loop(), {"PLAINTEXT": 9092}, files=files)
    for name in INTERNAL_TOPICS:
        await broker.admin.topics.ensure_internal_topic(name)
    if TOPIC not in broker.metadata.topics:
        await broker.admin.topics.create([NewTopic(name=TOPIC, partition_count=3)])
    rig = Transactions(broker, now)
    try:
        yield rig
    finally:
        rig.broker.answer_parked_requests()
        await rig.broker.close()
