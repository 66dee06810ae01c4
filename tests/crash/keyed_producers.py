"""Producers that write to compacted topics through kills of the broker, and know what they wrote.

A request that is not answered is sent again, byte for byte, until it is. So every batch gets one
offset, and every end of a transaction is decided.
"""

import random
import threading
import time
from collections.abc import Mapping
from typing import NamedTuple, TypeVar

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
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicData,
)
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.schema import Message
from tests.crash.keyed_writes import KeyedWrites, Transaction
from tests.support.wire import WireClient

LIMIT_SECONDS = 90.0
PAUSE_SECONDS = 0.01
TRANSACTION_TIMEOUT_MS = 900_000
KEYS = 40
TOMBSTONES = 0.15
RESENDS = 0.1
COMMITS, ABORTS, FENCES = 0.15, 0.27, 0.29  # the shares, summed up
# A parked producer with an open transaction keeps everything after its start from being cleaned.
SETTLES = 0.85
RETRIED = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
Response = TypeVar("Response", bound=Message)


class Batch(NamedTuple):
    """A batch that was acknowledged."""

    topic: str
    data: bytes
    base_offset: int


class Versions(NamedTuple):
    """The versions of requests that make transactions of version 1 or 2 (KIP-890)."""

    produce: int
    end: int


VERSION_1, VERSION_2 = Versions(11, 4), Versions(12, 5)


class KeyedProducer(threading.Thread):
    """An idempotent producer, transactional if it has versions. Writes while `go` is set."""

    def __init__(
        self, name: str, port: int, topics: Mapping[str, KeyedWrites], versions: Versions | None
    ) -> None:
        super().__init__(name=name, daemon=True)
        self.go = threading.Event()
        self.is_parked = threading.Event()
        self.error: BaseException | None = None
        self._port = port
        self._topics = topics
        self._transactional_id = name if versions else None
        self._versions = versions or VERSION_2
        self._chance = random.Random(name)
        self._client: WireClient | None = None
        self._ends = threading.Event()
        self._producer_id, self._epoch = -1, -1
        self._sequences = dict.fromkeys(topics, 0)
        self._number = 0
        self._transaction: Transaction | None = None
        self._last: dict[str, Batch] = {}

    # -- from outside ------------------------------------------------------------------------------

    def park(self) -> None:
        """Wait until what was sent is answered; raises what went wrong."""
        self.go.clear()
        assert self.is_parked.wait(LIMIT_SECONDS), f"{self.name} waits for an answer"
        if self.error is not None:
            raise AssertionError(f"{self.name}: {self.error}") from self.error

    def end(self) -> None:
        """End its open transaction, and the thread."""
        self._ends.set()
        self.go.set()
        self.join(LIMIT_SECONDS)

    def close(self) -> None:
        """Close its connection. The thread does it at its end."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def check_sequences(self) -> None:
        """Only while parked: the log knows the last batches, and refuses a gap after them."""
        for topic, batch in self._last.items():
            again = self._produce(topic, batch.data)
            found = (again.error_code, again.base_offset)
            assert found == (0, batch.base_offset), f"{self.name}: {batch} repeated gave {found}"
            if self._transactional_id is None:
                gap = self._batch([(b"key-0", b"never")], self._sequences[topic] + 1)
                code = self._produce(topic, gap).error_code
                assert code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, f"{self.name}: gap: {code}"

    # -- the thread --------------------------------------------------------------------------------

    def run(self) -> None:
        try:
            self.begin()
            while not self._ends.is_set():
                if not self.go.is_set():
                    if self._transaction is not None and self._chance.random() < SETTLES:
                        self._end_transaction(commit=self._chance.random() < 0.5)
                    self.is_parked.set()
                    self.go.wait()
                    self.is_parked.clear()
                elif not self._ends.is_set():
                    self.step()
            if self._transaction is not None:
                self._end_transaction(commit=True)
        except BaseException as error:  # noqa: BLE001 - `park` raises it in the test's thread
            self.error = error
        finally:
            self.close()
            self.is_parked.set()

    def begin(self) -> None:
        """Get an id and epoch. `run` does it first; a test that does not start the thread, too."""
        # The broker makes the topic of transactions when somebody looks for a coordinator.
        if self._transactional_id is not None:
            request = FindCoordinatorRequest(key=self._transactional_id, key_type=1)
            self._ask(request, FindCoordinatorResponse, 3)
        self._initialize()

    def step(self) -> None:
        """Write a batch, or end a transaction."""
        dice = self._chance.random()
        if self._transaction is not None and dice < ABORTS:
            self._end_transaction(commit=dice < COMMITS)
        elif self._transaction is not None and dice < FENCES:
            self._initialize()
        else:
            self._write(self._chance.choice(list(self._topics)))

    def _initialize(self) -> None:
        """Get an id and epoch; an open transaction is aborted."""
        request = InitProducerIdRequest(
            transactional_id=self._transactional_id, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS
        )
        answer = self._ask(request, InitProducerIdResponse, 4)
        if self._transaction is not None:
            # The answer CONCURRENT_TRANSACTIONS is retried until the abort is complete.
            self._transaction.is_committed = False
        self._begin_epoch(answer.producer_id, answer.producer_epoch)

    def _begin_epoch(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self._producer_id, self._epoch):
            self._sequences = dict.fromkeys(self._topics, 0)
        self._producer_id, self._epoch = producer_id, epoch
        self._transaction = None
        self._last.clear()

    def _write(self, topic: str) -> None:
        if self._transactional_id is not None:
            if self._transaction is None:
                self._transaction = Transaction()
            if self._versions is VERSION_1:
                self._add_partition(topic)
        records = [self._record() for _ in range(self._chance.randrange(1, 7))]
        data = self._batch(records, self._sequences[topic])
        answer = self._produce(topic, data)
        assert answer.error_code == 0, f"error {answer.error_code}: {answer.error_message}"
        self._topics[topic].add(answer.base_offset, records, self._transaction)
        self._sequences[topic] += len(records)
        self._last[topic] = Batch(topic, data, answer.base_offset)
        if self._chance.random() < RESENDS:
            again = self._produce(topic, data)
            assert (again.error_code, again.base_offset) == (0, answer.base_offset)

    def _record(self) -> tuple[bytes, bytes | None]:
        self._number += 1
        key = b"key-%d" % self._chance.randrange(KEYS)
        if self._chance.random() < TOMBSTONES:
            return key, None
        return key, b"%s-%d" % (self.name.encode(), self._number)

    def _batch(self, records: list[tuple[bytes, bytes | None]], sequence: int) -> bytes:
        now_ms = time.time_ns() // 1_000_000
        return bytes(
            build_batch(
                [Record(key, value, now_ms) for key, value in records],
                compression=self._chance.choice(list(CompressionType)),
                producer_id=self._producer_id,
                producer_epoch=self._epoch,
                base_sequence=sequence,
                is_transactional=self._transactional_id is not None,
            )
        )

    def _end_transaction(self, *, commit: bool) -> None:
        assert self._transactional_id is not None
        assert self._transaction is not None
        request = EndTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            committed=commit,
        )
        answer = self._ask(request, EndTxnResponse, self._versions.end)
        assert answer.error_code == 0, f"EndTxn: error {answer.error_code}"
        self._transaction.is_committed = commit
        if self._versions is VERSION_1:
            self._begin_epoch(self._producer_id, self._epoch)
        else:
            self._begin_epoch(answer.producer_id, answer.producer_epoch)

    def _add_partition(self, topic: str) -> None:
        assert self._transactional_id is not None
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._transactional_id,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0])],
        )
        answer = self._ask(request, AddPartitionsToTxnResponse, 3)
        code = _code_of(answer)
        assert code == 0, f"AddPartitionsToTxn: error {code}"

    # -- requests ----------------------------------------------------------------------------------

    def _produce(self, topic: str, data: bytes) -> ProducePartitionResponse:
        partitions = [ProducePartitionData(index=0, records=data)]
        request = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[ProduceTopicData(name=topic, partition_data=partitions)],
        )
        answer = self._ask(request, ProduceResponse, self._versions.produce)
        found: ProducePartitionResponse = answer.responses[0].partition_responses[0]
        return found

    def _ask(self, request: Message, response: type[Response], version: int) -> Response:
        """Ask until there is an answer that need not be retried."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while True:
            try:
                if self._client is None:
                    self._client = WireClient(self._port)
                answer = self._client.ask(request, response, version)
                if _code_of(answer) not in RETRIED:
                    return answer
                code = _code_of(answer)
            except OSError as error:
                code = repr(error)
                self.close()
            assert time.monotonic() < deadline, f"{type(request).__name__} is not answered: {code}"
            time.sleep(PAUSE_SECONDS)


def _code_of(answer: Message) -> int:
    """The error of an answer about one thing."""
    if isinstance(answer, ProduceResponse):
        code = answer.responses[0].partition_responses[0].error_code
    elif isinstance(answer, AddPartitionsToTxnResponse):
        code = answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
    else:
        code = answer.error_code  # type: ignore[attr-defined] # all others have it
    return int(code)
