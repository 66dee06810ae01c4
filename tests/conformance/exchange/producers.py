"""Transactional producers by hand, of both versions, which outlive the brokers they write to."""

import time
from collections.abc import Callable
from typing import Any

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from odradek.protocol.messages.produce import ProduceResponse
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from tests.conformance.exchange.first_turn import (
    GROUP,
    NOT_YET,
    TRANSACTION,
    WAIT_SECONDS,
    ask_until_ready,
    batch_of_now,
    find_coordinator,
)
from tests.conformance.requests import request_with
from tests.support.wire import WireClient

RETRIED = NOT_YET | {
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}


class Producer:
    """A producer of one transactional id, with a topic and a group of the same name.

    `version`: of its transactions. In version 2 the broker adds the partitions.
    """

    def __init__(self, transactional_id: str, version: int) -> None:
        self.transactional_id = transactional_id
        self.producer_id = -1
        self.epoch = -1
        self._is_v2 = version == 2
        self._sequences: dict[int, int] = {}

    def init(self, client: WireClient, timeout_ms: int) -> None:
        """Get an epoch, of a new producer id if there is none yet."""
        find_coordinator(client, self.transactional_id, TRANSACTION)
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=timeout_ms
        )
        answer = ask_until_ready(client, request, InitProducerIdResponse, 4)
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self._sequences = {}

    def write(self, client: WireClient, partition: int, *values: str) -> int:
        """Write records of the open transaction, which this may begin. Returns the error."""
        if not self._is_v2:
            code = self._add(client, partition)
            if code != ErrorCode.NONE:
                return code
        sequence = self._sequences.get(partition, 0)
        producer = (self.producer_id, self.epoch, sequence)
        request = request_with(
            self.transactional_id,
            batch_of_now(*values, producer=producer, transactional=True),
            partition=partition,
            transactional_id=self.transactional_id,
        )

        def ask() -> int:
            answer = client.ask(request, ProduceResponse, 12 if self._is_v2 else 11)
            return int(answer.responses[0].partition_responses[0].error_code)

        code = _retried(ask)
        if code == ErrorCode.NONE:
            self._sequences[partition] = sequence + len(values)
        return code

    def _add(self, client: WireClient, partition: int) -> int:
        topic = AddPartitionsToTxnTopic(name=self.transactional_id, partitions=[partition])
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[topic],
        )

        def ask() -> int:
            answer = client.ask(request, AddPartitionsToTxnResponse, 3)
            [result] = answer.results_by_topic_v3_and_below[0].results_by_partition
            return int(result.partition_error_code)

        return _retried(ask)

    def commit_offset(self, client: WireClient, offset: int) -> int:
        """Commit an offset of the group in the open transaction. Returns the error."""
        find_coordinator(client, self.transactional_id, GROUP)
        if not self._is_v2:
            add = AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                group_id=self.transactional_id,
            )
            ask_until_ready(client, add, AddOffsetsToTxnResponse, 3)
        place = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[TxnOffsetCommitRequestTopic(name=self.transactional_id, partitions=[place])],
        )

        def ask() -> int:
            answer = client.ask(request, TxnOffsetCommitResponse, 5 if self._is_v2 else 3)
            return int(answer.topics[0].partitions[0].error_code)

        return _retried(ask)

    def end(self, client: WireClient, *, commit: bool) -> int:
        """End the transaction, or repeat the request that did. Returns the error."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        answer: Any = None

        def ask() -> int:
            nonlocal answer
            answer = client.ask(request, EndTxnResponse, 5 if self._is_v2 else 3)
            return int(answer.error_code)

        code = _retried(ask)
        if code == ErrorCode.NONE and self._is_v2:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self._sequences = {}
        return code


def _retried(ask: Callable[[], int]) -> int:
    deadline = time.monotonic() + WAIT_SECONDS
    while (code := ask()) in RETRIED:
        assert time.monotonic() < deadline, code
        time.sleep(0.02)
    return code
