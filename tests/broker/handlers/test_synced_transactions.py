"""flush.messages: each step of a transaction is on the disk before the next one is written.

Otherwise a power cut could leave the later step and take the earlier one: a marker in one partition
of a transaction that is aborted in the others, or records of a transaction that no coordinator
knows, which nobody ends.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.metadata.topic_deletion import TopicRef
from odradek.coordinator.transactions.states import TransactionState
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicData,
)
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from odradek.storage.log import PartitionLog
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from tests.support.broker_in_loop import BrokerInLoop, broker_in_loop, until
from tests.support.faulty_files import below
from tests.support.gated_files import GatedFiles
from tests.support.log_box import batch_of

STILL_WAITS_S = 0.1
PRODUCE_VERSION = 12  # the broker adds the partitions to the transaction
ID = "shop"


class Rig:
    """A broker that syncs each record, and a producer of transaction version 2."""

    def __init__(self, served: BrokerInLoop, files: GatedFiles) -> None:
        self.served = served
        self.files = files
        self.producer = (-1, -1)

    def log(self, topic: str, partition: int = 0) -> PartitionLog:
        return self.served.broker.log_manager.get(topic, partition)

    @property
    def coordinator_log(self) -> PartitionLog:
        return self.log(TRANSACTION_STATE_TOPIC)

    @property
    def state(self) -> TransactionState:
        return self.served.broker.coordinators.transactions.describe(ID).state

    async def begin(self) -> None:
        request = InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=60_000)
        answer = await self.served.ask(request, InitProducerIdResponse, 4)
        self.producer = (answer.producer_id, answer.producer_epoch)

    async def produce(self, *partitions: int, acks: int = -1) -> list[int]:
        batch = batch_of(b"v", producer=(*self.producer, 0), is_transactional=True)
        data = [ProducePartitionData(index=index, records=batch) for index in partitions]
        request = ProduceRequest(
            transactional_id=ID,
            acks=acks,
            timeout_ms=10_000,
            topic_data=[ProduceTopicData(name="t", partition_data=data)],
        )
        answer = await self.served.ask(request, ProduceResponse, PRODUCE_VERSION)
        return [one.error_code for one in answer.responses[0].partition_responses]

    async def commit_offset(self) -> int:
        place = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=5, committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            transactional_id=ID,
            group_id="g",
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[place])],
        )
        answer = await self.served.ask(request, TxnOffsetCommitResponse, 5)
        code: int = answer.topics[0].partitions[0].error_code
        return code

    async def commit(self) -> int:
        request = EndTxnRequest(
            transactional_id=ID,
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            committed=True,
        )
        code: int = (await self.served.ask(request, EndTxnResponse, 5)).error_code
        return code


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    files = GatedFiles()
    settings = {
        "log_flush_interval_messages": "1",
        "offsets_topic_num_partitions": "1",
        "transaction_state_log_num_partitions": "1",
    }
    directories = [tmp_path / "a", tmp_path / "b"]
    async with broker_in_loop(directories, files, **settings) as served:
        admin = served.broker.admin.topics
        await admin.ensure_internal_topic(CONSUMER_OFFSETS_TOPIC)
        await admin.ensure_internal_topic(TRANSACTION_STATE_TOPIC)
        await admin.create([NewTopic(name="t", partition_count=2)])
        rig = Rig(served, files)
        await rig.begin()
        yield rig
        files.heal()
        files.gate.set()


async def is_waiting(work: "asyncio.Task[Any]") -> bool:
    done, _ = await asyncio.wait([work], timeout=STILL_WAITS_S)
    return not done


async def test_no_marker_is_written_before_the_decision_is_synced(rig: Rig) -> None:
    assert await rig.produce(0, 1) == [0, 0]
    rig.files.close_gate(rig.coordinator_log)
    ending = asyncio.create_task(rig.commit())
    assert await is_waiting(ending)
    logs = [rig.log("t", partition) for partition in (0, 1)]
    assert [log.log_end_offset for log in logs] == [1, 1]
    assert rig.state is TransactionState.PREPARE_COMMIT
    rig.files.gate.set()
    assert await ending == ErrorCode.NONE
    await until(lambda: rig.state is TransactionState.COMPLETE_COMMIT)
    assert [log.last_stable_offset for log in logs] == [2, 2]


async def test_a_transaction_is_completed_whose_topic_is_deleted_before_the_marker_is_synced(
    rig: Rig,
) -> None:
    assert await rig.produce(0) == [0]
    log = rig.log("t")
    rig.files.close_gate(log)
    ending = asyncio.create_task(rig.commit())
    await until(lambda: log.log_end_offset == 2)
    deleting = asyncio.create_task(rig.served.broker.admin.topics.delete([TopicRef(name="t")]))
    await until(lambda: not log.is_online)
    await until(lambda: rig.state is TransactionState.COMPLETE_COMMIT)
    rig.files.gate.set()
    await deleting
    await ending


@pytest.mark.parametrize("acks", [-1, 0])
async def test_no_record_is_written_before_the_beginning_of_its_transaction_is_synced(
    rig: Rig, acks: int
) -> None:
    rig.files.close_gate(rig.coordinator_log)
    logs = [rig.log("t", partition) for partition in (0, 1)]
    producing = asyncio.create_task(rig.produce(0, 1, acks=acks))
    assert await is_waiting(producing)
    assert [log.log_end_offset for log in logs] == [0, 0]
    assert rig.state is TransactionState.ONGOING
    rig.files.gate.set()
    await until(lambda: [log.recovery_point for log in logs] == [1, 1])
    if acks == 0:
        producing.cancel()
    else:
        assert await producing == [0, 0]


async def test_no_offset_is_written_before_the_beginning_of_its_transaction_is_synced(
    rig: Rig,
) -> None:
    rig.files.close_gate(rig.coordinator_log)
    committing = asyncio.create_task(rig.commit_offset())
    assert await is_waiting(committing)
    log = rig.log(CONSUMER_OFFSETS_TOPIC)
    assert log.log_end_offset == 0
    rig.files.gate.set()
    assert await committing == ErrorCode.NONE
    assert log.recovery_point == 1


async def test_nothing_is_written_if_the_sync_of_the_beginning_fails(rig: Rig) -> None:
    home = rig.served.broker.config.metadata_directory
    away = next(each for each in rig.served.broker.config.data_directories if each != home)
    if not rig.coordinator_log.directory.is_relative_to(away):
        rig.served.broker.maintenance.mover.alter(TRANSACTION_STATE_TOPIC, 0, str(away))
    await until(lambda: rig.coordinator_log.directory.is_relative_to(away))
    logs = [rig.log("t", partition) for partition in (0, 1)]
    logs = [log for log in logs if log.directory.is_relative_to(home)]
    rig.files.fail(below(rig.coordinator_log.directory, "fsync"))
    partitions = [log.partition for log in logs]
    assert await rig.produce(*partitions) == [ErrorCode.NOT_ENOUGH_REPLICAS] * len(partitions)
    assert [log.log_end_offset for log in logs] == [0] * len(partitions)
    assert await rig.commit_offset() == ErrorCode.NOT_COORDINATOR
