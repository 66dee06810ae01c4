"""The transaction coordinator, as a worker asks it.

Before a transaction begins in a partition, the worker asks the broker's own process to verify the
batch, or to add the partition. An answer is used once. The end of the transaction makes it void:
the marker comes over the same channel, after the answer. So no batch is appended to a transaction
that has ended in between. Kafka: AddPartitionsToTxnManager, VerificationGuard.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Set

from odradek.coordinator.runtime.producer import ProducerIdAndEpoch
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.topic_partition import TopicPartition

from .worker_messages import TransactionVerified, VerifyTransaction

Answer = ApiError | None  # None: the batch may be appended
Asked = asyncio.Future[None]


class RemoteTransactions:
    """Questions to the coordinator, and its answers until they are used."""

    def __init__(self, send: Callable[[object], object]) -> None:
        self._send = send
        self._asked: dict[int, tuple[VerifyTransaction, Asked]] = {}
        self._last_number = 0
        # By producer id, then by its epoch and the partition.
        self._known: dict[int, dict[tuple[int, TopicPartition], Answer]] = {}

    def answers(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Set[TopicPartition],
        support: int,
    ) -> dict[TopicPartition, Answer | Asked]:
        """Return the answer for each partition. If one is not known, it is asked for.

        The future ends when the answers are known, for one use. `support`: the value of
        transactions/verification.Support.
        """
        known = self._known.get(producer.producer_id, {})
        unknown = {each for each in partitions if (producer.epoch, each) not in known}
        answers: dict[TopicPartition, Answer | Asked] = {
            each: known.pop((producer.epoch, each)) for each in partitions - unknown
        }
        if not known:
            self._known.pop(producer.producer_id, None)
        if unknown:
            asked = self._ask(transactional_id, producer, unknown, support)
            answers |= dict.fromkeys(unknown, asked)
        return answers

    def _ask(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Set[TopicPartition],
        support: int,
    ) -> Asked:
        self._last_number += 1
        question = VerifyTransaction(
            self._last_number, transactional_id, producer, frozenset(partitions), support
        )
        asked: Asked = asyncio.get_running_loop().create_future()
        self._asked[question.number] = (question, asked)
        self._send(question)
        return asked

    def answered(self, answer: TransactionVerified) -> None:
        """Note the answer to a question."""
        question, asked = self._asked.pop(answer.number)
        known = self._known.setdefault(question.producer.producer_id, {})
        for partition in question.partitions:
            refusal = answer.refusals.get(partition)
            error = None if refusal is None else ApiError(ErrorCode(refusal[0]), refusal[1])
            known[question.producer.epoch, partition] = error
        if not asked.done():
            asked.set_result(None)

    def transaction_ended(self, producer_id: int) -> None:
        """Forget the answers that were given while a transaction was open."""
        self._known.pop(producer_id, None)
