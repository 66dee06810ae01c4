"""The broker's own process always answers what a worker asks about a transaction."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from odradek.broker.processes.worker_messages import TransactionVerified, VerifyTransaction
from odradek.broker.transactions.verification import CoordinatorVerifier, Support
from odradek.broker.workers.verification import Verification
from odradek.coordinator.runtime.producer import ProducerIdAndEpoch
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.topic_partition import TopicPartition

WHERE = TopicPartition("t", 0)
QUESTION = VerifyTransaction(
    7, "transfers", ProducerIdAndEpoch(9, 0), frozenset({WHERE}), Support.ADDS.value
)


class Coordinator:
    """Fails as it is told."""

    shards = SimpleNamespace(is_open=True)

    def __init__(self, error: Exception) -> None:
        self._error = error

    def add_partitions(self, *_: object, **__: object) -> None:
        raise self._error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ApiError(ErrorCode.INVALID_PRODUCER_EPOCH, "old"), ErrorCode.INVALID_PRODUCER_EPOCH),
        (KeyError("what nobody foresaw"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
async def test_every_question_is_answered(error: Exception, code: ErrorCode) -> None:
    config = SimpleNamespace(
        add_partitions_to_txn_retry_backoff_max_ms=0, add_partitions_to_txn_retry_backoff_ms=0
    )
    coordinator, unused = cast(Any, Coordinator(error)), cast(Any, None)
    verifier = CoordinatorVerifier(unused, unused, coordinator, unused)
    broker = SimpleNamespace(
        loop=asyncio.get_running_loop(),
        config=config,
        partition_transactions=SimpleNamespace(verifier=verifier),
    )
    answers: asyncio.Queue[object] = asyncio.Queue()
    Verification(cast(Any, broker), answers.put_nowait).serve(QUESTION)
    async with asyncio.timeout(20):
        answer = await answers.get()
    assert isinstance(answer, TransactionVerified)
    assert (answer.number, answer.refusals[WHERE][0]) == (7, code)
