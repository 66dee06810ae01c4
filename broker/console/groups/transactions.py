"""The open transactions that hold back the consumers of a partition.

A consumer with isolation.level=read_committed gets no record at or after the last stable offset,
which is the first one of the oldest open transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from odradek.broker.console.calls import Call
from odradek.broker.console.endpoints import View
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.transactions.states import IDLE, TransactionState
from odradek.coordinator.transactions.transaction import Transaction
from odradek.storage.log import PartitionLog
from odradek.storage.time_text import utc


class HoldingTransaction(View):
    """The open transaction that holds a partition back: its first record there is `start_offset`.

    `held_back_records` counts the offsets from there to the high watermark. `transactional_id` and
    `started_ms` are None if the client may not know them, and for a transaction that its
    coordinator does not know. `last_write_ms`: the timestamp of its last records in the partition.
    """

    producer_id: int
    producer_epoch: int
    transactional_id: str | None
    start_offset: int
    started_ms: int | None
    last_write_ms: int
    held_back_records: int
    state: str | None

    @property
    def text(self) -> str:
        """Say who holds back how much, and since when."""
        name = "" if self.transactional_id is None else f" ({self.transactional_id})"
        since = (
            f"last written to at {utc(self.last_write_ms)}"
            if self.started_ms is None
            else f"open since {utc(self.started_ms)}"
        )
        if self.state not in (None, TransactionState.ONGOING.client_name):
            since += f", now {self.state}"
        return (
            f"transaction of producer {self.producer_id}{name}, {since}, "
            f"holds back {self.held_back_records} records"
        )


def holder_of(log: PartitionLog) -> tuple[int, int] | None:
    """The first offset of the oldest open transaction, and its producer id."""
    if log.last_stable_offset == log.high_watermark:
        return None
    return next(iter(log.producers.open_transactions), None)


def known_transactions(call: Call, producer_ids: Collection[int]) -> Mapping[int, Transaction]:
    """The open transactions of producers that the client may describe, by producer id."""
    if not producer_ids:
        return {}
    known: dict[int, Transaction] = {}
    for shard in call.observed.broker.coordinators.transactions.shards.serving():
        for transactional_id in call.sliced(list(shard.state.by_id)):
            transaction = shard.state.find(transactional_id)
            if (
                transaction is not None
                and transaction.producer_id in producer_ids
                and transaction.state not in IDLE
                and call.may(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id)
            ):
                known[transaction.producer_id] = transaction
    return known


def holding_transaction(
    log: PartitionLog, known: Mapping[int, Transaction]
) -> HoldingTransaction | None:
    """Describe what holds a partition back. `known` has it if its coordinator knows it."""
    holder = holder_of(log)
    if holder is None:
        return None
    start_offset, producer_id = holder
    entry = log.producers.producers[producer_id]
    transaction = known.get(producer_id)
    return HoldingTransaction(
        producer_id=producer_id,
        producer_epoch=entry.epoch,
        transactional_id=None if transaction is None else transaction.transactional_id,
        start_offset=start_offset,
        started_ms=None if transaction is None else transaction.start_ms,
        last_write_ms=entry.last_timestamp_ms,
        held_back_records=log.high_watermark - log.last_stable_offset,
        state=None if transaction is None else transaction.state.client_name,
    )
