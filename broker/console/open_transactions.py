"""Open transactions of partitions, and who will end them.

A transaction is hanging if no coordinator will end it. tools/transactions/ownership.py says the
same about the files of a stopped broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.transactions.states import PREPARED
from odradek.coordinator.transactions.transaction import Transaction
from odradek.protocol.batch_header import NO_TIMESTAMP, CorruptRecordError
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.log import PartitionLog
from odradek.storage.time_text import utc

from .calls import Call


class OpenTransaction(Struct, frozen=True, kw_only=True):
    """A transaction that is open in the partition of `log`, from `first_offset` on."""

    log: PartitionLog
    producer_id: int
    producer_epoch: int
    first_offset: int

    @property
    def held_back(self) -> int:
        """The offsets that consumers of committed records do not get while it is open."""
        return max(self.log.high_watermark - self.first_offset, 0)

    @property
    def is_still_open(self) -> bool:
        """Whether no marker has ended it meanwhile."""
        return self.log.producers.open_since(self.producer_id) == self.first_offset


def open_transactions(call: Call, logs: Iterable[PartitionLog]) -> Iterator[OpenTransaction]:
    """Iterate over the open transactions of logs, the oldest of a log first."""
    for log in logs:
        if log.producers.first_unstable_offset is None:
            continue
        for first_offset, producer_id in call.sliced(log.producers.open_transactions):
            entry = log.producers.producers.get(producer_id)
            if entry is not None:
                yield OpenTransaction(
                    log=log,
                    producer_id=producer_id,
                    producer_epoch=entry.epoch,
                    first_offset=first_offset,
                )


def transactions_of(call: Call, producer_ids: Iterable[int]) -> dict[int, Transaction]:
    """The transactions of coordinators, by those producer ids that have one. Raises ApiError."""
    wanted = frozenset(producer_ids)
    if not wanted:
        return {}
    coordinator = call.observed.broker.coordinators.transactions
    known = coordinator.transactions(call.slices.step)
    return {each.producer_id: each for each in known if each.producer_id in wanted}


def what_ends_it(open_: OpenTransaction, known: Transaction | None) -> str:
    """Say how an open transaction ends. `known`: what the coordinator has of its producer."""
    if known is None:
        return (
            "it is hanging: no transactional id has this producer id, so nobody will end it;"
            " abort it here"
        )
    name, state = f"transactional id {known.transactional_id}", known.state.client_name
    if not known.will_end(open_.log.key, open_.producer_epoch):
        return (
            f"it is hanging: {name} is {state} with epoch {known.producer_epoch}, and will not end"
            " it; abort it here"
        )
    return how_it_ends(known)


def how_it_ends(known: Transaction) -> str:
    """Say how the open transaction of a transactional id ends."""
    name, state = f"transactional id {known.transactional_id}", known.state.client_name
    if known.state in PREPARED:
        return f"{name} is {state}: the broker ends it as soon as it can"
    until = utc(known.start_ms + known.timeout_ms)
    return f"{name} is {state}: its producer ends it, or the broker aborts it after {until}"


def may_abort(call: Call, owner: Transaction | None) -> bool:
    """Whether the client may abort an open transaction that it may read.

    `owner`: that of the coordinator which will end it. None: it hangs, and a marker ends it.
    """
    if owner is not None:
        name = owner.transactional_id
        return call.may_change(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, name)
    operations = (AclOperation.ALTER, AclOperation.CLUSTER_ACTION)
    return any(call.may_change_cluster(each) for each in operations)


async def began_ms(call: Call, log: PartitionLog, offset: int) -> int | None:
    """The time of the batch that holds an offset, as its producer says.

    None if it has none, or retention has deleted it. Raises ApiError.
    """

    def look_up() -> int | None:
        index = log.segments.floor_index(offset)
        if index < 0 or not log.is_online:
            return None
        found = log.segments[index].find(offset)
        holds_it = found is not None and found.header.base_offset <= offset
        return found.header.max_timestamp if found is not None and holds_it else None

    try:
        time_ms = await call.observed.broker.fetching.cold_reads.look_up(look_up)
    except (OSError, CorruptRecordError) as error:
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{log.name}: {error}") from error
    return None if time_ms == NO_TIMESTAMP else time_ms
