"""Asks the transaction coordinator, from a worker, before a transaction begins in a partition."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Set
from functools import partial

from odradek.broker.processes.remote_transactions import Asked, RemoteTransactions
from odradek.broker.transactions.verification import (
    Obstacle,
    Support,
    TransactionVerifier,
    UnsyncedTransactionError,
)
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.runtime.producer import ProducerIdAndEpoch
from odradek.protocol.errors import ApiError
from odradek.storage.topic_partition import TopicPartition


class RemoteVerifier(TransactionVerifier):
    """Asks the coordinator in the broker's own process."""

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        timer_ms: Callable[[], int],
        remote: RemoteTransactions,
    ) -> None:
        super().__init__(config, timer_ms)
        self._remote = remote

    def add_or_verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Set[TopicPartition],
        support: Support,
    ) -> dict[TopicPartition, Obstacle]:
        """Ask, or use the answers that have come."""
        answers = self._remote.answers(transactional_id, producer, partitions, support.value)
        return {
            partition: answer if isinstance(answer, ApiError) else _asked(answer)
            for partition, answer in answers.items()
            if answer is not None
        }


def _asked(asked: Asked) -> UnsyncedTransactionError:
    """The answer is not known yet. It comes after the fsync."""
    return UnsyncedTransactionError("the coordinator has been asked", partial(_answered, asked))


async def _answered(asked: Asked) -> None:
    await asyncio.wait([asked])
