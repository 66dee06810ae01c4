"""What has become of the transactions of records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from odradek.broker.console.calls import Call
from odradek.protocol.batch_header import MAGIC_V2, CorruptRecordError
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.control import ControlRecordType, control_type
from odradek.storage.committed_reads import aborted_between
from odradek.storage.log import PartitionLog

from .picking import Picked

Outcome = Literal["open", "committed", "aborted"]


async def outcomes_of(call: Call, topic: str, picked: Sequence[Picked]) -> Sequence[Outcome | None]:
    """The outcome of each record's transaction; None: it is in none. Raises ApiError."""
    manager = call.observed.broker.log_manager
    if not any(_is_transactional(each) for each in picked):
        return [None] * len(picked)
    logs = {each.partition: manager.get(topic, each.partition) for each in picked}

    def look_up() -> Sequence[Outcome | None]:
        return [_outcome(logs[each.partition], each) for each in picked]

    try:
        return await call.observed.broker.fetching.cold_reads.look_up(look_up)
    except (OSError, CorruptRecordError) as error:
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{topic}: {error}") from error


def _is_transactional(picked: Picked) -> bool:
    return picked.header.magic >= MAGIC_V2 and picked.header.is_transactional


def _outcome(log: PartitionLog, picked: Picked) -> Outcome | None:
    """Runs in a disk thread: the index of an old segment is read when it is needed."""
    if not _is_transactional(picked):
        return None
    if picked.header.is_control:
        is_abort = control_type(picked.key) is ControlRecordType.ABORT
        return "aborted" if is_abort else "committed"
    producer_id, offset = picked.header.producer_id, picked.offset
    open_since = log.producers.open_since(producer_id)
    if open_since is not None and open_since <= offset:
        return "open"
    first_index = max(log.segments.floor_index(offset), 0)
    aborted, _ = aborted_between(log.segments, first_index, offset, offset + 1)
    is_aborted = any(each.producer_id == producer_id for each in aborted)
    return "aborted" if is_aborted else "committed"
