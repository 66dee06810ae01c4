"""Answers the questions of workers about transactions (remote_transactions.py)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from odradek.broker.broker import Broker
from odradek.broker.processes.worker_messages import TransactionVerified, VerifyTransaction
from odradek.broker.transactions.verification import Obstacle, Support, UnsyncedTransactionError
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.topic_partition import TopicPartition

logger = logging.getLogger("odradek.workers")


class Verification:
    """Asks the transaction coordinator for one worker."""

    def __init__(self, broker: Broker, send: Callable[[object], object]) -> None:
        self._broker = broker
        self._send = send
        self._running: set[asyncio.Task[None]] = set()

    def serve(self, question: VerifyTransaction) -> None:
        """Answer a question as soon as that is possible."""
        task = asyncio.ensure_future(self._answer(question))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def cancel_all(self) -> None:
        """Answer nothing more: the worker has ended."""
        for task in list(self._running):
            task.cancel()

    async def _answer(self, question: VerifyTransaction) -> None:
        """Answer in any case: the worker's clients wait for it."""
        try:
            refusals = await self._refusals(question)
        except Exception as error:
            logger.exception("a transaction of a worker could not be verified")
            failed = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{type(error).__name__}: {error}")
            refusals = dict.fromkeys(question.partitions, failed)
        codes = {key: (int(error.code), error.message) for key, error in refusals.items()}
        self._send(TransactionVerified(question.number, codes))

    async def _refusals(self, question: VerifyTransaction) -> dict[TopicPartition, ApiError]:
        broker = self._broker
        give_up_s = broker.loop.time()
        give_up_s += broker.config.add_partitions_to_txn_retry_backoff_max_ms / 1000
        while True:
            obstacles = self._obstacles(question)
            unsynced = [
                each for each in obstacles.values() if isinstance(each, UnsyncedTransactionError)
            ]
            if unsynced:
                await unsynced[0].wait()
                continue
            refusals = {key: each for key, each in obstacles.items() if isinstance(each, ApiError)}
            if not _is_ending(question, refusals) or broker.loop.time() >= give_up_s:
                return refusals
            await asyncio.sleep(broker.config.add_partitions_to_txn_retry_backoff_ms / 1000)

    def _obstacles(self, question: VerifyTransaction) -> dict[TopicPartition, Obstacle]:
        verifier = self._broker.partition_transactions.verifier
        return verifier.add_or_verify(
            question.transactional_id,
            question.producer,
            question.partitions,
            Support(question.support),
        )


def _is_ending(question: VerifyTransaction, refusals: dict[TopicPartition, ApiError]) -> bool:
    """Whether the producer's last transaction is still being completed.

    Producers of version 2 write again as soon as EndTxn is answered (produced_transactions.py).
    """
    ending = ErrorCode.CONCURRENT_TRANSACTIONS
    return question.support == Support.ADDS.value and any(
        error.code is ending for error in refusals.values()
    )
