"""A transactional producer of raw requests, which talks in a conversation."""

import time
from typing import NamedTuple

import msgspec

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
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
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.conformance.conversation import Conversation

PATIENCE_S = 20.0
NOT_READY = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
NOW_MS = 1_700_000_000_000


class TransactionalProducer(NamedTuple):
    """A transactional producer, and the version of transactions that it speaks."""

    talk: Conversation
    transactional_id: str
    topic: str
    is_v2: bool

    def start(self, expected: tuple[int, int] = (-1, -1), timeout_ms: int = 60_000) -> tuple:
        """Get an id and epoch; wait until the last transaction is completed."""
        self.settle()
        answer = self.talk.ask(
            InitProducerIdRequest(
                transactional_id=self.transactional_id,
                transaction_timeout_ms=timeout_ms,
                producer_id=expected[0],
                producer_epoch=expected[1],
            ),
            5 if self.is_v2 else 3,
            title=f"{self.transactional_id}: start",
        )
        return answer.producer_id, answer.producer_epoch

    def add(self, producer: tuple, partition: int = 0) -> None:
        self.talk.ask(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=producer[0],
                v3_and_below_producer_epoch=producer[1],
                v3_and_below_topics=[
                    AddPartitionsToTxnTopic(name=self.topic, partitions=[partition])
                ],
            ),
            3,
            title=f"{self.transactional_id}: add {partition} as epoch {producer[1]}",
        )

    def write(self, producer: tuple, sequence: int, partition: int = 0) -> None:
        batch = build_batch(
            [Record(None, b"value", NOW_MS)],
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=sequence,
            is_transactional=True,
        )
        data = ProducePartitionData(index=partition, records=bytes(batch))
        self.talk.ask(
            ProduceRequest(
                transactional_id=self.transactional_id,
                acks=-1,
                timeout_ms=10_000,
                topic_data=[ProduceTopicData(name=self.topic, partition_data=[data])],
            ),
            12 if self.is_v2 else 9,
            title=f"{self.transactional_id}: write {sequence} to {partition}, epoch {producer[1]}",
        )

    def commit_offset(self, producer: tuple, group: str, offset: int, version: int = 3) -> None:
        wanted = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata="m"
        )
        self.talk.ask(
            TxnOffsetCommitRequest(
                transactional_id=self.transactional_id,
                group_id=group,
                producer_id=producer[0],
                producer_epoch=producer[1],
                topics=[TxnOffsetCommitRequestTopic(name=self.topic, partitions=[wanted])],
            ),
            5 if self.is_v2 else version,
            title=f"{self.transactional_id}: commit offset {offset}, epoch {producer[1]}",
        )

    def end(self, producer: tuple, *, commit: bool) -> tuple:
        answer = self.talk.ask(
            EndTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=producer[0],
                producer_epoch=producer[1],
                committed=commit,
            ),
            5 if self.is_v2 else 4,
            title=f"{self.transactional_id}: end, commit {commit}, epoch {producer[1]}",
        )
        self.settle()
        if self.is_v2 and not answer.error_code:
            return answer.producer_id, answer.producer_epoch
        return producer

    def settle(self) -> None:
        """Wait until the markers are written: Kafka writes them after it has answered."""
        deadline = time.monotonic() + PATIENCE_S
        request = DescribeTransactionsRequest(transactional_ids=[self.transactional_id])
        while time.monotonic() < deadline:
            (state,) = self.talk.silently(request, 0).transaction_states
            if not state.transaction_state.startswith("Prepare"):
                return
            time.sleep(0.02)
        raise AssertionError(f"{self.transactional_id} stays {state.transaction_state}")

    def describe(self) -> None:
        def without_times(answer: object) -> object:
            for state in answer.transaction_states:  # type: ignore[attr-defined] # its answer
                started = state.transaction_start_time_ms
                msgspec.structs.force_setattr(state, "transaction_start_time_ms", min(started, 1))
            return answer

        self.settle()
        request = DescribeTransactionsRequest(transactional_ids=[self.transactional_id])
        self.talk.ask(request, 0, without_times)

    def read(self, isolation: int) -> None:
        """What a reader of the isolation level gets of the first two partitions."""
        partitions = [
            FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
            for index in (0, 1)
        ]

        def without_records(answer: object) -> object:
            for topic in answer.responses:  # type: ignore[attr-defined] # its answer
                for partition in topic.partitions:
                    msgspec.structs.force_setattr(
                        partition, "records", len(bytes(partition.records or b""))
                    )
            return answer

        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            isolation_level=isolation,
            session_epoch=-1,
            topics=[FetchTopic(topic=self.topic, partitions=partitions)],
        )
        self.talk.ask(request, 11, without_records, title=f"{self.topic}: read {isolation}")


def new_producer(talk: Conversation, name: str, *, is_v2: bool) -> TransactionalProducer:
    version = "v2" if is_v2 else "v1"
    topic, transactional_id = f"txn-{name}-{version}", f"{name}-{version}"
    talk.create_topic(topic, 3)
    _find(talk, transactional_id, 1)
    _find(talk, f"group-{transactional_id}", 0)
    return TransactionalProducer(talk, transactional_id, topic, is_v2)


def _find(talk: Conversation, key: str, key_type: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    while talk.silently(request, 4).coordinators[0].error_code:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    if key_type == 1:
        describe = DescribeTransactionsRequest(transactional_ids=[key])
        while talk.silently(describe, 0).transaction_states[0].error_code in NOT_READY:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        # Kafka's first producer id comes from its controller.
        new_id = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        while talk.silently(new_id, 4).error_code in NOT_READY:
            assert time.monotonic() < deadline
            time.sleep(0.05)
