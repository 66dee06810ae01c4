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
from collections.abc import Iterable, Mapping, Set
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from odradek.broker.broker import Broker
from odradek.broker.disk.log_sync import Sync
from odradek.coordinator.runtime.producer import ProducerIdAndEpoch
from odradek.protocol.batch_header import BatchHeader
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.log import PartitionLog
from odradek.storage.topic_partition import TopicPartition

from .producer_errors import known_producer_error

if TYPE_CHECKING:
    from odradek.broker.processes.remote_transactions import Asked  # imported only in workers


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
    """The newest record of a transaction must be synced before more is written for it."""

    def __init__(self, log: PartitionLog, sync: Sync) -> None:
        super().__init__(f"{log.name} is not synced")
        self._log = log
        self._sync = sync

    async def wait(self, broker: Broker) -> None:
        """Wait for the fsync. If it fails, the coordinator loses its log."""
        await asyncio.wait([self._sync])
        if self._sync.exception() is not None:
            broker.coordinator_logs.log_lost(self._log)


class AskedCoordinatorError(UnsyncedTransactionError):
    """The coordinator is in another process, and its answer is not known yet."""

    def __init__(self, asked: Asked) -> None:
        Exception.__init__(self, "the coordinator has been asked")
        self._asked = asked

    async def wait(self, broker: Broker) -> None:  # noqa: ARG002 # as UnsyncedTransactionError's
        """Wait for the answer, which comes after the fsync."""
        await asyncio.wait([self._asked])


Obstacle = ApiError | UnsyncedTransactionError
Verified = Mapping[TopicPartition, Obstacle | None]  # None: the batch may be appended


def verify_batches(
    broker: Broker,
    transactional_id: str,
    batches: Iterable[Batch],
    support: Support,
) -> Verified:
    """Verify that the batches belong to the open transaction of a producer, or add them to it.

    Raises ApiError: INVALID_PRODUCER_ID_MAPPING for batches of several producers.
    """
    producer: ProducerIdAndEpoch | None = None
    answers: dict[TopicPartition, Obstacle | None] = {}
    unknown: set[TopicPartition] = set()
    is_trusted, adds = may_skip(broker, support), support is Support.ADDS
    now_ms = broker.clock.timer_ms()
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
        answers |= add_or_verify(broker, transactional_id, producer, unknown, support)
    return answers


def may_skip(broker: Broker, support: Support) -> bool:
    """Whether old producers are trusted, because verification is switched off."""
    is_on = broker.config.transaction_partition_verification_enable
    return support is not Support.ADDS and not is_on


def add_or_verify(
    broker: Broker,
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    partitions: Set[TopicPartition],
    support: Support,
) -> dict[TopicPartition, Obstacle]:
    """Add partitions to a transaction, or check that they are in it, by what the client expects."""
    if broker.remote_transactions is not None:
        remote = broker.remote_transactions
        answers = remote.answers(transactional_id, producer, partitions, support.value)
        return {
            partition: answer if isinstance(answer, ApiError) else AskedCoordinatorError(answer)
            for partition, answer in answers.items()
            if answer is not None
        }
    coordinator = broker.transactions
    missing: Set[TopicPartition] = frozenset()
    try:
        if not coordinator.shards.is_open:
            raise ApiError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{coordinator.shards.topic} does not exist"
            )
        if support is Support.ADDS:
            coordinator.add_partitions(transactional_id, producer, partitions, client_version=2)
        else:
            missing = coordinator.missing_partitions(transactional_id, producer, partitions)
        unsynced = unsynced_transaction(broker, transactional_id)
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


def unsynced_transaction(broker: Broker, transactional_id: str) -> UnsyncedTransactionError | None:
    """Return the fsync that writes for the transaction wait for, or None. Raises ApiError."""
    log = broker.transactions.unsynced_log(transactional_id)
    if log is None:
        return None
    sync = broker.log_syncs.running(log)
    if sync is None:
        raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"a sync of {log.name} failed")
    return UnsyncedTransactionError(log, sync)
