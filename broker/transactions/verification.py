"""Asks the transaction coordinator before a producer's transaction begins in another partition.

A transactional batch may begin a transaction in a log only if the coordinator will end it there.
Producers of transaction version 2 do not add partitions themselves: the broker adds those to which
they write (KIP-890). For older producers it checks that they have added the partition
(`transaction.partition.verification.enable`).

There is no await between the coordinator's answer and the append: the transaction cannot end in
between. So a batch must be verified again if it has to wait. It waits for the coordinator's record,
if that must be synced (`flush.messages`). Otherwise a power cut could keep the batch and lose the
record: the coordinator would not know that there is something to end.

Kafka: AddPartitionsToTxnManager, ReplicaManager.maybeSendPartitionsToTransactionCoordinator.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Set
from enum import Enum
from functools import partial
from typing import NamedTuple

from odradek.broker.disk.log_sync import LogSyncs
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.runtime.producer import ProducerIdAndEpoch
from odradek.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from odradek.protocol.batch_header import BatchHeader
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.log import PartitionLog
from odradek.storage.topic_partition import TopicPartition

from .producer_errors import known_producer_error


class Support(Enum):
    """What a client of a version expects. Kafka: TransactionSupportedOperation."""

    OLD_ERRORS = 1  # it knows INVALID_TXN_STATE
    ABORTABLE = 2  # it knows TRANSACTION_ABORTABLE
    ADDS = 3  # the broker adds the partitions (transaction version 2)

    @classmethod
    def of(cls, api_version: int, *, abortable_since: int, adds_since: int) -> Support:
        """What a client expects, by the versions of its API that brought the two others."""
        if api_version >= adds_since:
            return cls.ADDS
        return cls.ABORTABLE if api_version >= abortable_since else cls.OLD_ERRORS


class Batch(NamedTuple):
    """The header of a transactional batch, and the log to which it is sent."""

    log: PartitionLog
    header: BatchHeader


class UnsyncedTransactionError(Exception):
    """The newest record of a transaction must be synced before more is written for it.

    `wait` returns when that has succeeded or failed.
    """

    def __init__(self, reason: str, wait: Callable[[], Awaitable[object]]) -> None:
        super().__init__(reason)
        self.wait = wait


Obstacle = ApiError | UnsyncedTransactionError
# The answer for each batch that was verified. None: it may be appended.
Verified = Mapping[TopicPartition, Obstacle | None]


class TransactionVerifier:
    """Asks the transaction coordinator."""

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        timer_ms: Callable[[], int],
        coordinator: TransactionCoordinator,
        log_syncs: LogSyncs,
    ) -> None:
        """`timer_ms` is a clock that never jumps."""
        self._config = config
        self._timer_ms = timer_ms
        self._coordinator = coordinator
        self._log_syncs = log_syncs

    def may_skip(self, support: Support) -> bool:
        """Whether old producers are trusted, because verification is switched off."""
        is_on = self._config().transaction_partition_verification_enable
        return support is not Support.ADDS and not is_on

    def verify(self, transactional_id: str, batches: Iterable[Batch], support: Support) -> Verified:
        """Verify that the batches belong to the open transaction of a producer, or add them to it.

        Raises ApiError: INVALID_PRODUCER_ID_MAPPING for batches of several producers.
        """
        producer: ProducerIdAndEpoch | None = None
        answers: dict[TopicPartition, Obstacle | None] = {}
        unknown: set[TopicPartition] = set()
        is_trusted, adds = self.may_skip(support), support is Support.ADDS
        now_ms = self._timer_ms()
        for log, header in batches:
            sender = ProducerIdAndEpoch(header.producer_id, header.producer_epoch)
            if producer not in (None, sender):
                raise ApiError(
                    ErrorCode.INVALID_PRODUCER_ID_MAPPING, "the batches are of several producers"
                )
            producer = sender
            key = log.key
            answers[key] = None
            if is_trusted:
                continue
            try:
                if log.begin_verification(sender, header.base_sequence, now_ms, is_v2=adds):
                    unknown.add(key)
            except ApiError as error:
                answers[key] = error.with_traceback(None)
        if unknown and producer is not None:
            answers |= self.add_or_verify(transactional_id, producer, unknown, support)
        return answers

    def add_or_verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Set[TopicPartition],
        support: Support,
    ) -> dict[TopicPartition, Obstacle]:
        """Add partitions to a transaction, or check that they are in it, as the client expects.

        Returns the obstacles, by partition.
        """
        coordinator = self._coordinator
        missing: Sequence[TopicPartition] = ()
        try:
            if not coordinator.shards.is_open:
                raise ApiError(
                    ErrorCode.COORDINATOR_NOT_AVAILABLE,
                    f"{coordinator.shards.topic} does not exist",
                )
            if support is Support.ADDS:
                coordinator.add_partitions(transactional_id, producer, partitions, client_version=2)
            else:
                missing = coordinator.missing_partitions(transactional_id, producer, partitions)
            unsynced = self._unsynced(transactional_id)
        except ApiError as error:
            code = known_producer_error(error.code, knows_fenced=False)
            return dict.fromkeys(partitions, ApiError(code, error.message))
        if not missing and unsynced is None:
            return {}
        code = ErrorCode.TRANSACTION_ABORTABLE
        if support is Support.OLD_ERRORS:
            code = ErrorCode.INVALID_TXN_STATE
        obstacles: dict[TopicPartition, Obstacle] = {}
        if unsynced is not None:
            obstacles |= dict.fromkeys(partitions, unsynced)
        for partition in missing:
            obstacles[partition] = ApiError(code, "the partition is not in the transaction")
        return obstacles

    def _unsynced(self, transactional_id: str) -> UnsyncedTransactionError | None:
        """Return what writes for the transaction wait for, or None. Raises ApiError."""
        log = self._coordinator.unsynced_log(transactional_id)
        if log is None:
            return None
        sync = self._log_syncs.running(log)
        if sync is None:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"a sync of {log.name} failed")
        return UnsyncedTransactionError(f"{log.name} is not synced", partial(asyncio.wait, [sync]))
