"""What the broker does by itself: compaction, recovery, moves between directories, retention."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from msgspec import field

from odradek.broker.console.calls import Call
from odradek.broker.console.endpoints import Endpoint, Nothing
from odradek.broker.console.view import View
from odradek.broker.maintenance.cleaning.cleaner_status import CleanerStatus, explain_due
from odradek.broker.security.operations import ResourceType
from odradek.storage.cleaning.plan import LogToClean
from odradek.storage.log import PartitionLog

EVERY_S = 2.0
MAX_SHOWN = 100


class CompactedLog(View):
    """A compacted log, as the cleaner saw it when it last looked at all of them.

    `dirty_bytes` can be cleaned. `state`: cleaning, due, or clean enough; `why` says it in a line.
    It is null if the client may not DESCRIBE_CONFIGS on the topic.
    """

    topic: str
    partition: int
    dirty_ratio: float
    dirty_bytes: int
    cleaned_to_offset: int
    state: str
    why: str | None


class CurrentCleaning(View):
    """A log that is being cleaned, and the bytes that were read and written for it."""

    topic: str
    partition: int
    moved_bytes: int


class UncleanableLog(View):
    """A log that is not cleaned until a restart."""

    topic: str
    partition: int
    reason: str


class Cleaner(View):
    """The log cleaner. `logs` are the dirtiest that may be cleaned.

    `last_round` and `last_error` are lines of text.
    """

    is_enabled: bool
    threads: int
    checked_ms: int | None
    logs: list[CompactedLog]
    cleaning: list[CurrentCleaning]
    uncleanable: list[UncleanableLog]
    last_round: str | None
    last_error: str | None


class RecoveringLog(View):
    """A log that waits for its recovery, or is being recovered; `unflushed_bytes` must be read."""

    topic: str
    partition: int
    unflushed_bytes: int
    is_at_work: bool


class Recovery(View):
    """The recovery after the start. `total` logs needed one; `waiting` are not served yet."""

    total: int
    waiting: int
    logs: list[RecoveringLog]


class Move(View):
    """A log that is copied to another log directory."""

    topic: str
    partition: int
    source: str = field(name="from")
    target: str = field(name="to")
    copied_bytes: int
    total_bytes: int


class RetentionCheck(View):
    """When retention was last applied to all logs, and how often it is."""

    last_ms: int | None
    every_ms: int


class Maintenance(View):
    """The whole view. Of long lists it has a hundred entries."""

    cleaner: Cleaner
    recovery: Recovery
    moves: list[Move]
    moves_total: int
    retention_check: RetentionCheck


def maintenance(call: Call, _: Nothing) -> Maintenance:
    """Make the view. Needs DESCRIBE on the cluster, as DescribeLogDirs does."""
    call.check_cluster()
    broker = call.observed.broker
    futures = broker.log_manager.futures
    return Maintenance(
        cleaner=_cleaner(call),
        recovery=_recovery(call),
        moves=_moves(call),
        moves_total=len(futures),
        retention_check=RetentionCheck(
            last_ms=broker.maintenance.cleaner.retention_checked_ms,
            every_ms=broker.config.log_retention_check_interval_ms,
        ),
    )


def _cleaner(call: Call) -> Cleaner:
    broker = call.observed.broker
    status = broker.maintenance.cleaner.status()
    clock = broker.clock
    checked_ms = None
    if status.checked_at_ms is not None:
        checked_ms = clock.now_ms() - (clock.timer_ms() - status.checked_at_ms)
    at_work = {each.partition for each in status.cleaning}
    return Cleaner(
        is_enabled=status.is_enabled,
        threads=broker.config.log_cleaner_threads,
        checked_ms=checked_ms,
        logs=[
            _compacted(call, log, to_clean, is_at_work=log.key in at_work)
            for log, to_clean in call.sliced(list(status.dirtiest))
        ],
        cleaning=[
            CurrentCleaning(topic=topic, partition=partition, moved_bytes=moved_bytes)
            for (topic, partition), moved_bytes in status.cleaning
        ],
        uncleanable=list(islice(_uncleanable(status), MAX_SHOWN)),
        last_round=None if status.last_round is None else str(status.last_round),
        last_error=status.last_error,
    )


def _compacted(
    call: Call, log: PartitionLog, to_clean: LogToClean, *, is_at_work: bool
) -> CompactedLog:
    config = log.config
    may_see = call.may_see_settings(ResourceType.TOPIC, log.topic)
    why = "it is being cleaned" if is_at_work else explain_due(to_clean, config)
    is_due = to_clean.is_due(config.min_cleanable_dirty_ratio)
    waits = "due" if is_due else "clean enough"
    return CompactedLog(
        topic=log.topic,
        partition=log.partition,
        dirty_ratio=to_clean.cleanable_ratio,
        dirty_bytes=to_clean.cleanable_bytes,
        cleaned_to_offset=to_clean.first_dirty_offset,
        state="cleaning" if is_at_work else waits,
        why=why if may_see else None,
    )


def _uncleanable(status: CleanerStatus) -> Iterator[UncleanableLog]:
    for reasons in status.uncleanable.values():
        for (topic, partition), reason in reasons.items():
            yield UncleanableLog(topic=topic, partition=partition, reason=reason)


def _recovery(call: Call) -> Recovery:
    broker = call.observed.broker
    recovery, waiting = broker.maintenance.recovery, broker.log_manager.waiting()
    return Recovery(
        total=recovery.total,
        waiting=len(waiting),
        logs=[
            RecoveringLog(
                topic=found.topic,
                partition=found.partition,
                unflushed_bytes=found.unflushed_bytes,
                is_at_work=found.key in recovery.at_work,
            )
            for found in call.sliced(waiting[:MAX_SHOWN])
        ],
    )


def _moves(call: Call) -> list[Move]:
    manager = call.observed.broker.log_manager
    return [
        Move(
            topic=future.log.topic,
            partition=future.log.partition,
            source=str(manager.directory_of(future.log).path),
            target=str(future.home.path),
            copied_bytes=future.size_bytes,
            total_bytes=future.log.size_bytes,
        )
        for future in call.sliced(list(islice(manager.futures.values(), MAX_SHOWN)))
        if manager.find(*future.key) is future.log
    ]


ENDPOINTS = (
    Endpoint(
        method="GET",
        template="/maintenance",
        summary="Compaction, recovery, moves between directories, and retention.",
        handle=maintenance,
        response=Maintenance,
        every_s=EVERY_S,
    ),
)
