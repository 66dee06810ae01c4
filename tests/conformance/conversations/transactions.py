"""Transactions of both versions: begun, ended, fenced, repeated, and asked for in every state."""

import time
from typing import NamedTuple

import msgspec

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersTopic,
)
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
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
from odradek.protocol.messages.write_txn_markers import (
    WriteTxnMarkersMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersTopic,
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


class _Producer(NamedTuple):
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


def _producer(talk: Conversation, name: str, *, is_v2: bool) -> _Producer:
    version = "v2" if is_v2 else "v1"
    topic, transactional_id = f"txn-{name}-{version}", f"{name}-{version}"
    talk.create_topic(topic, 3)
    _find(talk, transactional_id, 1)
    _find(talk, f"group-{transactional_id}", 0)
    return _Producer(talk, transactional_id, topic, is_v2)


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


def _commit_and_abort(talk: Conversation, *, is_v2: bool) -> None:
    one = _producer(talk, "plain", is_v2=is_v2)
    producer = one.start()
    one.describe()
    for commit in (True, False, True):
        for partition in (0, 1):
            if not is_v2:
                one.add(producer, partition)
            one.write(producer, 0, partition)
        one.describe()
        one.read(0)
        one.read(1)
        producer = one.end(producer, commit=commit)
        one.describe()
        one.read(0)
        one.read(1)
        if not is_v2:
            producer = one.start()


def transactions_of_version_1(talk: Conversation) -> None:
    _commit_and_abort(talk, is_v2=False)


def transactions_of_version_2(talk: Conversation) -> None:
    _commit_and_abort(talk, is_v2=True)


def _every_request(one: _Producer, producer: tuple) -> None:
    """Requests of the wrong producer, of older and newer epochs."""
    producer_id, epoch = producer
    for wrong in ((producer_id + 1000, epoch), (producer_id, epoch + 1), (producer_id, epoch - 1)):
        if wrong[1] < 0:
            continue
        if not one.is_v2:
            one.add(wrong)
        one.write(wrong, 0)
        one.commit_offset(wrong, f"group-{one.transactional_id}", 5)
        one.end(wrong, commit=True)
        one.end(wrong, commit=False)


def _states(talk: Conversation, *, is_v2: bool) -> None:
    one = _producer(talk, "states", is_v2=is_v2)
    one.describe()
    _every_request(one, (4000, 0))
    producer = one.start()
    _every_request(one, producer)
    one.end(producer, commit=True)
    for commit in (True, False):
        producer = one.start()
        if not is_v2:
            one.add(producer)
        one.write(producer, 0)
        _every_request(one, producer)
        after = one.end(producer, commit=commit)
        one.end(producer, commit=commit)  # repeated
        one.end(producer, commit=not commit)
        _every_request(one, after)
        one.end(after, commit=True)
        one.describe()
    one.start()
    one.start(expected=(producer[0], producer[1]))
    current = one.start()
    again = one.start(expected=current)
    one.start(expected=current)  # repeated: the same answer
    one.start(expected=(again[0] + 1000, 0))
    one.start(timeout_ms=0)
    one.start(timeout_ms=900_001)


def states_of_version_1(talk: Conversation) -> None:
    _states(talk, is_v2=False)


def states_of_version_2(talk: Conversation) -> None:
    _states(talk, is_v2=True)


def _fencing(talk: Conversation, *, is_v2: bool) -> None:
    one = _producer(talk, "fencing", is_v2=is_v2)
    old = one.start()
    if not is_v2:
        one.add(old)
    one.write(old, 0)
    one.start()  # aborts the open transaction, and asks the producer to come again
    one.describe()
    new = one.start()
    one.describe()
    if not is_v2:
        one.add(old)
    one.write(old, 1)
    one.end(old, commit=True)
    if not is_v2:
        one.add(new)
    one.write(new, 0)
    one.end(new, commit=True)
    one.read(1)


def fencing_of_version_1(talk: Conversation) -> None:
    _fencing(talk, is_v2=False)


def fencing_of_version_2(talk: Conversation) -> None:
    _fencing(talk, is_v2=True)


def _offsets(talk: Conversation, *, is_v2: bool) -> None:
    one = _producer(talk, "offsets", is_v2=is_v2)
    group = f"group-{one.transactional_id}"
    producer = one.start()
    for commit in (True, False):
        if not is_v2:
            one.commit_offset(producer, group, 3)  # the group is not in the transaction
            add = AddOffsetsToTxnRequest(
                transactional_id=one.transactional_id,
                producer_id=producer[0],
                producer_epoch=producer[1],
                group_id=group,
            )
            talk.ask(add, 3)
        one.commit_offset(producer, group, 7)
        one.describe()
        for stable in (False, True):
            _committed(one, group, stable=stable)
        producer = one.end(producer, commit=commit)
        for stable in (False, True):
            _committed(one, group, stable=stable)
    one.commit_offset(producer, "", 1)


def _committed(one: _Producer, group: str, *, stable: bool) -> None:
    topics = [OffsetFetchRequestTopic(name=one.topic, partition_indexes=[0, 1])]
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)], require_stable=stable
    )
    one.talk.ask(request, 8)


def offsets_of_version_1(talk: Conversation) -> None:
    _offsets(talk, is_v2=False)


def offsets_of_version_2(talk: Conversation) -> None:
    _offsets(talk, is_v2=True)


def partitions_that_cannot_be_added(talk: Conversation) -> None:
    one = _producer(talk, "partitions", is_v2=False)
    producer = one.start()
    topics = [
        AddPartitionsToTxnTopic(name=one.topic, partitions=[0, 9]),
        AddPartitionsToTxnTopic(name="txn-absent", partitions=[0]),
    ]

    def in_order(answer: object) -> object:
        answer.results_by_topic_v3_and_below.sort(key=lambda topic: topic.name)  # type: ignore[attr-defined] # its answer
        for topic in answer.results_by_topic_v3_and_below:  # type: ignore[attr-defined] # its answer
            topic.results_by_partition.sort(key=lambda each: each.partition_index)
        return answer

    for version in (0, 1, 2, 3):
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=one.transactional_id,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=topics,
        )
        talk.ask(request, version, in_order, title=f"cannot be added v{version}")
    for verify_only in (True, False):
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=one.transactional_id,
            producer_id=producer[0],
            producer_epoch=producer[1],
            verify_only=verify_only,
            topics=[AddPartitionsToTxnTopic(name=one.topic, partitions=[0])],
        )
        request = AddPartitionsToTxnRequest(transactions=[transaction])
        talk.ask(request, 4, title=f"verify only {verify_only}")
        talk.ask(request, 5, title=f"verify only {verify_only} again")
    one.end(producer, commit=False)


def markers_of_an_administrator(talk: Conversation) -> None:
    one = _producer(talk, "markers", is_v2=False)
    producer = one.start()
    one.add(producer)
    one.write(producer, 0)

    def describe_producers() -> None:
        def without_times(answer: object) -> object:
            for topic in answer.topics:  # type: ignore[attr-defined] # its answer
                for partition in topic.partitions:
                    for active in partition.active_producers:
                        msgspec.structs.force_setattr(active, "last_timestamp", 0)
            return answer

        topics = [DescribeProducersTopic(name=one.topic, partition_indexes=[0])]
        talk.ask(DescribeProducersRequest(topics=topics), 0, without_times)

    describe_producers()
    for version, epoch, coordinator_epoch, topic, partition in (
        (2, producer[1], 0, "txn-absent", 0),
        (2, producer[1], 0, one.topic, 7),
        (2, producer[1], 0, one.topic, 0),  # version 2 needs a newer epoch
        (1, producer[1], 3, one.topic, 0),
        (1, producer[1], 2, one.topic, 0),  # an older coordinator
        (1, producer[1], 3, one.topic, 0),
    ):
        marker = WriteTxnMarkersMarker(
            producer_id=producer[0],
            producer_epoch=epoch,
            transaction_result=False,
            topics=[WriteTxnMarkersTopic(name=topic, partition_indexes=[partition])],
            coordinator_epoch=coordinator_epoch,
            transaction_version=2 if version > 1 else 0,
        )
        request = WriteTxnMarkersRequest(markers=[marker])
        talk.ask(
            request,
            version,
            title=f"marker v{version} of {coordinator_epoch} to {topic}-{partition}",
        )
    describe_producers()
    one.read(1)


def transactional_ids_are_listed(talk: Conversation) -> None:
    one = _producer(talk, "listed", is_v2=True)
    producer = one.start()
    one.write(producer, 0)

    def only_mine(answer: object) -> object:
        states = answer.transaction_states  # type: ignore[attr-defined] # its answer
        states[:] = [each for each in states if each.transactional_id.startswith("listed-")]
        return answer

    for request in (
        ListTransactionsRequest(state_filters=[], producer_id_filters=[]),
        ListTransactionsRequest(state_filters=["Ongoing"], producer_id_filters=[]),
        ListTransactionsRequest(state_filters=["Empty", "Strange"], producer_id_filters=[]),
        ListTransactionsRequest(state_filters=[], producer_id_filters=[123_456]),
        ListTransactionsRequest(
            state_filters=[], producer_id_filters=[], duration_filter=3_600_000
        ),
        ListTransactionsRequest(
            state_filters=[], producer_id_filters=[], transactional_id_pattern="list.*"
        ),
        ListTransactionsRequest(
            state_filters=[], producer_id_filters=[], transactional_id_pattern="list"
        ),
        ListTransactionsRequest(
            state_filters=[], producer_id_filters=[], transactional_id_pattern="list["
        ),
    ):
        talk.ask(request, 2, only_mine)
    talk.ask(DescribeTransactionsRequest(transactional_ids=["", "absent"]), 0)
    one.end(producer, commit=True)
