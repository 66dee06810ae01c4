"""Transactional producers that send the requests of Java's, at next to no cost.

    version 2    Produce v13 -> TxnOffsetCommit v5 -> EndTxn v5, which returns the next epoch
    version 1    AddPartitionsToTxn v3 -> Produce v11 -> AddOffsetsToTxn v4 -> TxnOffsetCommit v4
                 -> EndTxn v4

The frames are encoded once. For each transaction only producer id, epoch, sequence numbers and CRCs
are written into them. A refusal that Java's producer retries is retried after the same time.
"""

import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import crc32c

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from odradek.protocol.messages.end_txn import EndTxnRequest
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
from odradek.protocol.schema import Message
from tests.bench.swarm import Swarm, now
from tests.support.wire import request_frame

INIT_VERSION = 5
TIMEOUT_MS = 60_000
RETRY_S = 0.1  # retry.backoff.ms
FIRST_ADD_RETRY_S = 0.02  # AddPartitionsToTxn, while the last transaction is being completed
RETRIED = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
}

# In place of the producer id and epoch in frames that are not stamped yet.
PRODUCER = struct.Struct(">qh")
UNSTAMPED = (0x7B5D_1E3A_2C4F_6071, 0x7B5D)
# In a batch, by position: the CRC, the first byte that it covers, the producer.
CRC = struct.Struct(">I")
CRC_POSITION = 17
CHECKED_POSITION = 21
PRODUCER_POSITION = 43
SEQUENCE = struct.Struct(">i")
MAX_SEQUENCE = 0x7FFFFFFF
ERROR = struct.Struct(">h")
# In answers, after the byte of the header's tags.
ERROR_AFTER_THROTTLE = 5
ANSWERED_PARTITION_BYTES = 33  # of a Produce without errors
PRODUCER_AFTER_ERROR = ERROR_AFTER_THROTTLE + ERROR.size  # of InitProducerId and EndTxn v5


@dataclass(frozen=True, kw_only=True)
class Work:
    """What one transaction does: so many records, spread over the partitions of a topic.

    With a `group_id` it also commits the group's offsets in these partitions.
    """

    topic: str
    topic_id: bytes
    partitions: Sequence[int]
    records: int = 100
    value_bytes: int = 100
    group_id: str | None = None
    is_v2: bool = True


class Step:
    """One request of a transaction; `error_positions` in its answer."""

    def __init__(
        self,
        request: Message,
        version: int,
        error_positions: Sequence[int],
        *,
        batch_bytes: int = 0,
        retry_s: float = RETRY_S,
    ) -> None:
        self.frame = bytearray(request_frame(request, version, 1, "bench"))
        self.retry_s = retry_s
        self._batch_bytes = batch_bytes
        self._error_positions = error_positions
        self._positions = []
        position = self.frame.find(PRODUCER.pack(*UNSTAMPED))
        while position >= 0:
            self._positions.append(position)
            position = self.frame.find(PRODUCER.pack(*UNSTAMPED), position + 1)
        assert self._positions, "no producer in the request"

    def stamp(self, producer_id: int, epoch: int, sequence: int) -> None:
        """Write the producer into the frame, and the first sequence number into its batches."""
        frame = self.frame
        for position in self._positions:
            PRODUCER.pack_into(frame, position, producer_id, epoch)
            if self._batch_bytes:
                SEQUENCE.pack_into(frame, position + PRODUCER.size, sequence)
                batch = position - PRODUCER_POSITION
                covered = memoryview(frame)[batch + CHECKED_POSITION : batch + self._batch_bytes]
                CRC.pack_into(frame, batch + CRC_POSITION, crc32c.crc32c(covered))

    def error_of(self, answer: bytes) -> int:
        """The first error in an answer; 0 without any."""
        for position in self._error_positions:
            (error,) = ERROR.unpack_from(answer, position)
            if error:
                return int(error)
        return 0


class Ended(NamedTuple):
    """When a transaction began, when EndTxn was sent, and when it was answered."""

    began_s: float
    ending_s: float
    ended_s: float


class TransactionalProducer:
    """One producer: `ended` has its transactions, `retries` counts refused requests."""

    def __init__(self, swarm: Swarm, port: int, transactional_id: str, work: Work) -> None:
        """`start` it when the swarm has awaited the greetings."""
        self.ended: list[Ended] = []
        self.retries = 0
        self.is_ready = False
        self.aborts_every = 0  # 10: every tenth transaction is aborted; 0: none
        self._swarm = swarm
        self._id = transactional_id
        self._work = work
        self._to_commit = self._steps = steps_of(transactional_id, work)
        self._to_abort = [*self._steps[:-1], end_step(transactional_id, work, commit=False)]
        self._next = 0
        self._goes_on = False
        self._is_open = False
        self._producer = (-1, -1)
        self._sequence = 0
        self._began_s = self._sent_s = 0.0
        self._peer = swarm.connect(port, self._answered)

    @property
    def is_idle(self) -> bool:
        """Whether it has a producer id and no transaction is open."""
        return self.is_ready and not self._is_open

    def initialize(self) -> None:
        """Get a producer id."""
        request = InitProducerIdRequest(
            transactional_id=self._id, transaction_timeout_ms=TIMEOUT_MS
        )
        self._peer.send(request_frame(request, INIT_VERSION, 1, "bench"))

    def start(self) -> None:
        """Begin one transaction after the other, until `stop`."""
        self._goes_on = True
        self._begin()

    def stop(self) -> None:
        """Begin no more transactions after the one that is open."""
        self._goes_on = False

    def _begin(self) -> None:
        self._began_s = now()
        self._is_open = True
        is_abort = self.aborts_every and len(self.ended) % self.aborts_every == 0
        self._steps = self._to_abort if is_abort else self._to_commit
        for step in self._steps:
            step.stamp(*self._producer, self._sequence)
        self._send()

    def _send(self) -> None:
        self._sent_s = now()
        self._peer.send(self._steps[self._next].frame)

    def _answered(self, answer: bytes) -> None:
        if not self.is_ready:
            self._initialized(answer)
            return
        step = self._steps[self._next]
        error = step.error_of(answer)
        if error:
            self._refused(error, step.retry_s, self._send)
            return
        self._next += 1
        if self._next < len(self._steps):
            self._send()
            return
        self.ended.append(Ended(self._began_s, self._sent_s, now()))
        self._next = 0
        self._is_open = False
        self._prepare_next(answer)
        if self._goes_on:
            self._begin()

    def _prepare_next(self, answer: bytes) -> None:
        if self._work.is_v2:
            self._producer = PRODUCER.unpack_from(answer, PRODUCER_AFTER_ERROR)
        else:
            in_each = self._work.records // len(self._work.partitions)
            self._sequence = (self._sequence + in_each) & MAX_SEQUENCE

    def _initialized(self, answer: bytes) -> None:
        (error,) = ERROR.unpack_from(answer, ERROR_AFTER_THROTTLE)
        if error:
            self._refused(error, RETRY_S, self.initialize)
            return
        self._producer = PRODUCER.unpack_from(answer, PRODUCER_AFTER_ERROR)
        self.is_ready = True

    def _refused(self, error: int, retry_s: float, again: Callable[[], None]) -> None:
        if error not in RETRIED:
            raise AssertionError(f"{self._id} was refused: {ErrorCode(error).name}")
        self.retries += 1
        self._swarm.call_at(now() + retry_s, again)


def steps_of(transactional_id: str, work: Work) -> list[Step]:
    """The requests of one transaction that is committed."""
    steps = [produce_step(transactional_id, work)]
    if not work.is_v2:
        steps.insert(0, add_partitions_step(transactional_id, work))
    if work.group_id is not None:
        if not work.is_v2:
            steps.append(add_offsets_step(transactional_id, work.group_id))
        steps.append(offsets_step(transactional_id, work))
    return [*steps, end_step(transactional_id, work, commit=True)]


def produce_step(transactional_id: str, work: Work) -> Step:
    """A batch for each partition."""
    in_each = work.records // len(work.partitions)
    batch = build_batch(
        [Record(None, bytes(work.value_bytes), int(time.time() * 1000))] * in_each,
        producer_id=UNSTAMPED[0],
        producer_epoch=UNSTAMPED[1],
        base_sequence=0,
        is_transactional=True,
    )
    data = [
        ProducePartitionData(index=index, records=memoryview(batch)) for index in work.partitions
    ]
    topic = ProduceTopicData(name=work.topic, topic_id=work.topic_id, partition_data=data)
    request = ProduceRequest(
        transactional_id=transactional_id, acks=-1, timeout_ms=30_000, topic_data=[topic]
    )
    topic_bytes = 16 if work.is_v2 else 1 + len(work.topic)
    first = 1 + 1 + topic_bytes + 1 + 4  # tags, topics, topic, partitions, index
    positions = [first + ANSWERED_PARTITION_BYTES * n for n in range(len(data))]
    return Step(request, 13 if work.is_v2 else 11, positions, batch_bytes=len(batch))


def add_partitions_step(transactional_id: str, work: Work) -> Step:
    """Version 1: the partitions to which records will be sent."""
    topics = [AddPartitionsToTxnTopic(name=work.topic, partitions=list(work.partitions))]
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=UNSTAMPED[0],
        v3_and_below_producer_epoch=UNSTAMPED[1],
        v3_and_below_topics=topics,
    )
    return Step(request, 3, errors_by_partition(work), retry_s=FIRST_ADD_RETRY_S)


def add_offsets_step(transactional_id: str, group_id: str) -> Step:
    """Version 1: the group whose offsets will be committed."""
    request = AddOffsetsToTxnRequest(
        transactional_id=transactional_id,
        producer_id=UNSTAMPED[0],
        producer_epoch=UNSTAMPED[1],
        group_id=group_id,
    )
    return Step(request, 4, [ERROR_AFTER_THROTTLE])


def offsets_step(transactional_id: str, work: Work) -> Step:
    """The group's offset in each partition, as of a consumer that is in no group."""
    assert work.group_id is not None
    partitions = [
        TxnOffsetCommitRequestPartition(
            partition_index=index, committed_offset=12345, committed_metadata=""
        )
        for index in work.partitions
    ]
    request = TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=work.group_id,
        producer_id=UNSTAMPED[0],
        producer_epoch=UNSTAMPED[1],
        topics=[TxnOffsetCommitRequestTopic(name=work.topic, partitions=partitions)],
    )
    return Step(request, 5 if work.is_v2 else 4, errors_by_partition(work))


def errors_by_partition(work: Work) -> list[int]:
    """The positions of errors in the answers to AddPartitionsToTxn and TxnOffsetCommit."""
    first = 1 + 4 + 1 + 1 + len(work.topic) + 1 + 4  # tags, throttle, topics, name, partitions
    return [first + 7 * n for n in range(len(work.partitions))]


def end_step(transactional_id: str, work: Work, *, commit: bool) -> Step:
    """Commit or abort."""
    request = EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=UNSTAMPED[0],
        producer_epoch=UNSTAMPED[1],
        committed=commit,
    )
    return Step(request, 5 if work.is_v2 else 4, [ERROR_AFTER_THROTTLE])
