"""Idempotent and transactional producers that know the fate of every record they send.

They speak the protocol themselves, one request after the other. A request that was not answered is
sent again as it was, once the broker is back. In its place, a transactional producer may give its
transaction up, by beginning anew with InitProducerId.
"""

import random
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from odradek.protocol.compression import CompressionType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
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
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.schema import Message
from tests.crash.keyed_history import Fate, History, Transaction, Written
from tests.support.wire import WireClient

PARTITIONS = 2
KEYS = 40
LIMIT_SECONDS = 60.0
RETRY_SECONDS = 0.02
PACE_SECONDS = 0.002
TRANSACTION_TIMEOUT_MS = 600_000
ID_HEADER = "id"
TRANSIENT = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}


class Style(NamedTuple):
    """How a producer works. `version` of transactions: 0 without, 1, or 2 (KIP-890).

    A producer that `rests` writes one batch, which may be a transaction, whenever it is woken.
    """

    version: int
    rests: bool


class Batch(NamedTuple):
    """One that was acknowledged."""

    partition: int
    data: bytes
    base_offset: int


class GivenUpError(Exception):
    """The connection was lost, and the producer does not want to know how its request ended."""


class KeyedWriter:
    """One producer, in a thread of its own. While `pause` is held, it does nothing."""

    def __init__(
        self, port: int, topic: str, name: str, style: Style, history: History, seed: str
    ) -> None:
        self.name = name
        self.pause = threading.Lock()
        self.failure: Exception | None = None
        self._port = port
        self._topic = topic
        self._style = style
        self._history = history
        self._chance = random.Random(seed)
        self._client: WireClient | None = None
        self._producer = (-1, -1)
        self._sequences = [0] * PARTITIONS
        self._last: dict[int, Batch] = {}
        self._transaction: Transaction | None = None
        self._count = 0
        self._awake = threading.Event()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def wake(self) -> None:
        """Let it write again, if it rests."""
        self._awake.set()

    def stop(self) -> None:
        """End what is open, and stop. The broker must be there."""
        self._ends.set()
        self._awake.set()
        self._thread.join(2 * LIMIT_SECONDS)
        assert not self._thread.is_alive(), f"{self.name} does not come to its end"

    def close(self) -> None:
        """Close its connection. It was stopped before."""
        self._disconnect()

    def repeat_last(self) -> None:
        """Send the last batch of each partition again: its answer must be the same as before.

        No batch of a transaction that has ended: no client does so, and in Kafka the next batch
        would be refused then (OUT_OF_ORDER_SEQUENCE_NUMBER). The caller holds `pause`.
        """
        for batch in self._last.values():
            offset = self._produce(batch.partition, batch.data)
            assert offset == batch.base_offset, f"{self.name}: {offset} for {batch}"

    # --- its thread

    def _run(self) -> None:
        try:
            with self.pause:
                self._init()
            while not self._ends.is_set():
                self._awake.wait(None if self._style.rests else PACE_SECONDS)
                self._awake.clear()
                with self.pause:
                    self._step()
            with self.pause:
                if self._transaction is not None:
                    self._end(commit=True)
        except Exception as error:
            self.failure = error
            raise

    def _step(self) -> None:
        if not self._style.version:
            self._write()
            return
        try:
            if self._transaction is None:
                self._transaction = Transaction()
                if self._style.version == 1:
                    self._add_partitions()
            self._write()
            fate = self._chance.random()
            if fate < 0.3 or self._style.rests:  # else the cleaner would wait for it
                self._end(commit=fate < 0.2)
            elif fate < 0.33:
                self._init()
        except GivenUpError:
            self._init()

    def _write(self) -> None:
        """A batch of random records."""
        partition = self._chance.randrange(PARTITIONS)
        count = self._chance.randrange(1, 7)
        written = [self._new_record(partition) for _ in range(count)]
        now_ms = time.time_ns() // 1_000_000
        data = build_batch(
            [Record(each.key, each.value, now_ms, ((ID_HEADER, each.id),)) for each in written],
            compression=self._chance.choice(list(CompressionType)),
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=self._sequences[partition],
            is_transactional=self._style.version > 0,
        )
        self._history.send(written)
        base_offset = self._produce(partition, bytes(data), may_give_up=True)
        self._sequences[partition] += count
        self._history.acknowledge(written, base_offset)
        self._last[partition] = Batch(partition, bytes(data), base_offset)

    def _new_record(self, partition: int) -> Written:
        self._count += 1
        record_id = f"{self.name}-{self._count}".encode()
        key = b"%d" % self._chance.randrange(KEYS)
        value = None if self._chance.random() < 0.2 else record_id * self._chance.randrange(1, 20)
        return Written(record_id, partition, key, value, self._transaction)

    # --- its requests

    def _init(self) -> None:
        """A new epoch. It aborts what is open; what was to be committed may have been."""
        self._ask(
            FindCoordinatorRequest(key_type=1, coordinator_keys=[self.name]),
            FindCoordinatorResponse,
            4,
            lambda answer: answer.coordinators[0].error_code,
        )
        request = InitProducerIdRequest(
            transactional_id=self.name if self._style.version else None,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
        )
        answer = self._ask(request, InitProducerIdResponse, 5, lambda answer: answer.error_code)
        if self._transaction is not None and self._transaction.fate is Fate.OPEN:
            self._transaction.fate = Fate.ABORTED
        self._begin_epoch(answer.producer_id, answer.producer_epoch)

    def _begin_epoch(self, producer_id: int, epoch: int) -> None:
        if self._producer != (producer_id, epoch):
            self._sequences = [0] * PARTITIONS
        self._producer = (producer_id, epoch)
        self._transaction = None
        self._last.clear()

    def _add_partitions(self) -> None:
        """All partitions: those without a record get a marker, too."""
        topics = [AddPartitionsToTxnTopic(name=self._topic, partitions=list(range(PARTITIONS)))]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self._producer[0],
            v3_and_below_producer_epoch=self._producer[1],
            v3_and_below_topics=topics,
        )
        self._ask(
            request,
            AddPartitionsToTxnResponse,
            3,
            lambda answer: max(
                partition.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for partition in topic.results_by_partition
            ),
            may_give_up=True,
        )

    def _produce(self, partition: int, data: bytes, *, may_give_up: bool = False) -> int:
        """The base offset that is answered."""
        of_partition = ProducePartitionData(index=partition, records=memoryview(data))
        request = ProduceRequest(
            transactional_id=self.name if self._style.version else None,
            acks=-1,
            timeout_ms=30_000,
            topic_data=[ProduceTopicData(name=self._topic, partition_data=[of_partition])],
        )
        answer = self._ask(
            request,
            ProduceResponse,
            12 if self._style.version == 2 else 9,
            lambda answer: answer.responses[0].partition_responses[0].error_code,
            may_give_up=may_give_up and self._style.version > 0,
        )
        base_offset: int = answer.responses[0].partition_responses[0].base_offset
        return base_offset

    def _end(self, *, commit: bool) -> None:
        transaction = self._transaction
        assert transaction is not None
        if commit:
            transaction.fate = Fate.UNKNOWN
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            committed=commit,
        )
        answer = self._ask(
            request,
            EndTxnResponse,
            5 if self._style.version == 2 else 3,
            lambda answer: answer.error_code,
            may_give_up=not self._ends.is_set(),
        )
        transaction.fate = Fate.COMMITTED if commit else Fate.ABORTED
        if self._style.version == 2:
            self._begin_epoch(answer.producer_id, answer.producer_epoch)
        self._transaction = None
        self._last.clear()

    def _ask(
        self,
        request: Message,
        response: type[Message],
        version: int,
        error_of: Callable[[Any], int],
        *,
        may_give_up: bool = False,
    ) -> Any:
        """Ask until there is an answer without a transient error."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while True:
            try:
                if self._client is None:
                    self._client = WireClient(self._port)
                answer = self._client.ask(request, response, version)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                is_lost = self._client is not None  # else the broker is not back
                self._disconnect()
                if is_lost and may_give_up and self._chance.random() < 0.3:
                    raise GivenUpError from None
            else:
                code = ErrorCode(error_of(answer))
                if not code:
                    return answer
                assert code in TRANSIENT, f"{self.name}: {code.name} in {answer} for {request}"
                assert time.monotonic() < deadline, f"{self.name}: {code.name} for {request}"
            time.sleep(RETRY_SECONDS)

    def _disconnect(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None
