"""The open transactions that hold back the consumers of a partition.

A consumer with isolation.level=read_committed gets no record at or after the last stable offset,
which is the first one of the oldest open transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from odradek.broker.console.calls import Call
from odradek.broker.console.open_transactions import (
    OpenTransaction,
    began_ms,
    open_transactions,
    transactions_of,
    what_ends_it,
)
from odradek.broker.console.view import View
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.storage.log import PartitionLog
from odradek.storage.time_text import utc


class HoldingTransaction(View):
    """The open transaction that holds a partition back: its first record there is `start_offset`.

    `held_back_records` counts the offsets from there to the end. `is_hanging`: no coordinator will
    end it. `producer_id` and `producer_epoch` are None if the client may not READ the topic.
    `transactional_id` and `ends`, which says how it ends, are None if the client may not know the
    transactional id.
    """

    producer_id: int | None
    producer_epoch: int | None
    transactional_id: str | None
    start_offset: int
    started_ms: int | None
    held_back_records: int
    is_hanging: bool
    ends: str | None

    @property
    def text(self) -> str:
        """Say who holds back how much, and since when."""
        who = "a transaction"
        if self.producer_id is not None:
            who = f"transaction of producer {self.producer_id}"
        name = "" if self.transactional_id is None else f" ({self.transactional_id})"
        since = "" if self.started_ms is None else f", open since {utc(self.started_ms)}"
        return f"{who}{name}{since}, holds back {self.held_back_records} records"


async def holders_of(
    call: Call, logs: Iterable[PartitionLog]
) -> Mapping[PartitionLog, HoldingTransaction]:
    """What holds back each of the logs. The client must be allowed to describe their topics."""
    oldest: dict[PartitionLog, OpenTransaction] = {}
    for log in call.sliced(iter(logs)):
        first = next(open_transactions(call, [log]), None)
        if first is not None and log.last_stable_offset != log.high_watermark:
            oldest[log] = first
    known = transactions_of(call, [each.producer_id for each in oldest.values()])
    holders: dict[PartitionLog, HoldingTransaction] = {}
    for log, open_ in call.sliced(iter(oldest.items())):
        if not open_.is_still_open:
            continue
        transaction = known.get(open_.producer_id)
        is_owned = transaction is not None and transaction.will_end(log.key, open_.producer_epoch)
        may_name = transaction is None or call.may(
            AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transaction.transactional_id
        )
        may_read = call.may(AclOperation.READ, ResourceType.TOPIC, log.topic)
        holders[log] = HoldingTransaction(
            producer_id=open_.producer_id if may_read else None,
            producer_epoch=open_.producer_epoch if may_read else None,
            transactional_id=transaction.transactional_id
            if transaction is not None and may_name
            else None,
            start_offset=open_.first_offset,
            started_ms=transaction.start_ms
            if transaction is not None and is_owned
            else await began_ms(call, log, open_.first_offset),
            held_back_records=open_.held_back,
            is_hanging=not is_owned,
            ends=what_ends_it(open_, transaction) if may_name else None,
        )
    return holders
