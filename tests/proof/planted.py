"""Faults that are planted in the broker, to see whether the proofs find them.

`PLANTED` are those that the simulation must find, `PLANTED_IN_LIVES` those for power cuts, and
`PLANTED_ON_DISKS` those for calls that fail. The tests log how many seeds, images or calls it took.
Of those that came last, with the seconds on a busy core:

    seed 0    the end of a transaction does not reach one of its partitions
    seed 0    transactions that are left open are never aborted
    seed 0    the index of aborted transactions begins too late
    seed 0    a producer id is given out twice
    seed 0    what a share group accepts is not stored
    seed 0    silent members of groups are kept
    seed 0    a classic group forgets its generation
    seed 0    the epoch of a producer is not raised (4 s)
    seed 0    a checkpoint of log starts is ahead of the logs (2 s)
    seed 0    the cleaner removes the newest record of a key (4 s)
    image 1   entries of an offset index are one byte off (4 s)
    image 62  a change of the metadata is answered before its fsync (51 s)
    image 1   names are not synced
    image 2   a metadata snapshot gets its name before it is synced
    call 1    the rest of a short write is left out
    call 7    a failed fsync is taken for done
    call 6    a failed fsync is repeated

Planted, not found, and left out: a recovery point that is ahead (300 images, 12 seeds), a
truncation that is a byte late (40 images, 5 seeds), one that cuts nothing (5 seeds), and readers
that see what is not synced (found by one seed only).
"""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from msgspec.structs import replace

from odradek.broker.disk.log_sync import LogSync, LogSyncs
from odradek.broker.shares.led_partition import LedPartition
from odradek.coordinator.classic_groups.group import ClassicGroup
from odradek.coordinator.consumer_groups.ownership import FREE, Ownership
from odradek.coordinator.metadata.producer_ids import ProducerIds
from odradek.coordinator.runtime.timers import KeyedDeadlines
from odradek.coordinator.transactions import starting, transaction_coordinator
from odradek.coordinator.transactions.marker_writer import MarkerWriter
from odradek.coordinator.transactions.starting import NewProducer
from odradek.coordinator.transactions.table import TransactionTable
from odradek.coordinator.transactions.transaction import Transaction
from odradek.protocol.compression import Buffer
from odradek.storage.append import EndMarker
from odradek.storage.cleaning.offset_map import OffsetMap
from odradek.storage.data_directory import DataDirectory
from odradek.storage.directories.offset_checkpoints import OffsetCheckpoints, Offsets
from odradek.storage.files import Files, OpenFile
from odradek.storage.flush_plan import FlushPlan
from odradek.storage.log import PartitionLog
from odradek.storage.offset_index import OffsetIndex
from odradek.storage.producer_state import ProducerStates
from odradek.storage.topic_partition import TopicPartition
from odradek.storage.txn_index import AbortedTransaction, TxnIndex

from .failing import Fault
from .journal import JournalledFiles


class Change(NamedTuple):
    """A method or property of a class, or a function of a module, and what takes its place."""

    owner: Any
    name: str
    value: Any


def _nothing(*_: object, **__: object) -> None:
    pass


async def _nothing_later(*_: object) -> None:
    pass


def _done_at_once(syncs: LogSyncs) -> dict[PartitionLog, asyncio.Future[None]]:
    done = asyncio.get_running_loop().create_future()
    done.set_result(None)
    logs = list(syncs.due)
    syncs.due.clear()
    return dict.fromkeys(logs, done)


def _atomic_write(files: Files, path: Path, data: Buffer, *, sync: bool = True) -> None:
    temporary = path.with_name(path.name + ".tmp")
    files.write(temporary, data, sync=False)
    files.rename(temporary, path)
    if sync:
        files.fsync_directory(path.parent)


_truncate = JournalledFiles.truncate


def _truncate_short(files: JournalledFiles, file: OpenFile, size: int) -> None:
    # The last byte of a batch is 0, as the one that takes its place.
    _truncate(files, file, max(size - 2, 0) if file.path.suffix == ".log" else size)


_reload = ProducerStates.truncate_and_reload


def _reload_nobody(producers: ProducerStates, *args: Any) -> None:
    _reload(producers, *args)
    producers.producers.clear()


_append_marker = MarkerWriter.append


def _append_commit(writer: MarkerWriter, marker: Any, *args: Any) -> Any:
    return _append_marker(writer, replace(marker, is_commit=True), *args)


def _append_twice(writer: MarkerWriter, marker: Any, *args: Any) -> Any:
    _append_marker(writer, marker, *args)
    return _append_marker(writer, marker, *args)


_mark_flushed = PartitionLog.mark_flushed


def _mark_all_flushed(log: PartitionLog, plan: Any, now_ms: int) -> None:
    _mark_flushed(log, plan, now_ms)
    log.recovery_point = log.log_end_offset


def _append_late(index: TxnIndex, aborted: AbortedTransaction) -> None:
    _index(index, aborted._replace(first_offset=aborted.first_offset + 1))


_index = TxnIndex.append


def _not_to_the_second(
    writer: MarkerWriter, marker: EndMarker, where: TopicPartition, now_ms: int
) -> PartitionLog | None:
    return _write_marker(writer, marker, where, now_ms) if where.partition != 1 else None


_write_marker = MarkerWriter.write


def _without_generation(group: ClassicGroup, value: Any, *args: Any) -> None:
    generation = group.generation_id
    _replay_group(group, value, *args)
    group.generation_id = generation


_replay_group = ClassicGroup.replay


def _run_without_names(plan: FlushPlan) -> None:
    _run_plan(replace(plan, directory=None, parent=None))


def _write_unsynced(files: Files, path: Path, data: Buffer, *, sync: bool = True) -> None:
    _write(files, path, data, sync=sync and path.suffix != ".part")


_write = Files.write


def _run_without_errors(plan: FlushPlan) -> None:
    with suppress(OSError):
        _run_plan(plan)


def _run_again(plan: FlushPlan) -> None:
    try:
        _run_plan(plan)
    except OSError:
        _run_plan(plan)


_run_plan = FlushPlan.run


_raise_epoch = starting.raise_epoch


def _keep_epoch(transaction: Transaction, *args: Any, **kwargs: Any) -> NewProducer:
    new = _raise_epoch(transaction, *args, **kwargs)
    epoch = max(transaction.producer_epoch, 0)
    return new._replace(transaction=replace(new.transaction, producer_epoch=epoch))


_starts = OffsetCheckpoints._log_starts


def _starts_at_the_ends(checkpoints: OffsetCheckpoints, directory: DataDirectory) -> Offsets:
    logs = checkpoints._table.partitions_in(directory)
    return _starts(checkpoints, directory) | {key: log.log_end_offset for key, log in logs.items()}


_put = OffsetMap.put


def _put_too_late(offsets: OffsetMap, key: bytes, offset: int) -> bool:
    return _put(offsets, key, offset + 1)


_append_to_index = OffsetIndex.append


def _append_one_off(index: OffsetIndex, offset: int, position: int) -> None:
    _append_to_index(index, offset, position + 1)


def _true(*_: object, **__: object) -> bool:
    return True


PLANTED: dict[str, tuple[Change, ...]] = {
    "an fsync of a file is left out": (Change(JournalledFiles, "fsync", _nothing),),
    "an fsync of a directory is left out": (Change(JournalledFiles, "fsync_directory", _nothing),),
    "a file gets its name before its content is synced": (
        Change(Files, "atomic_write", _atomic_write),
    ),
    "a Produce is answered before its fsync": (Change(LogSyncs, "take_due", _done_at_once),),
    "an fsync covers what was written while it ran": (
        Change(PartitionLog, "mark_flushed", _mark_all_flushed),
    ),
    "a log is cut two bytes too early": (Change(JournalledFiles, "truncate", _truncate_short),),
    "a batch that is sent again is refused": (Change(ProducerStates, "find_duplicate", _nothing),),
    "a batch that is sent again is stored again": (
        Change(ProducerStates, "find_duplicate", _nothing),
        Change(ProducerStates, "continues_with", lambda *_: True),
        Change(ProducerStates, "check", _nothing),
    ),
    "the sequence numbers of producers are forgotten at a start": (
        Change(ProducerStates, "truncate_and_reload", _reload_nobody),
    ),
    "aborted transactions are not indexed": (Change(TxnIndex, "append", _nothing),),
    "open transactions are read": (
        Change(PartitionLog, "last_stable_offset", property(lambda log: log.high_watermark)),
    ),
    "each marker is a commit": (Change(MarkerWriter, "append", _append_commit),),
    "a partition is given to a member before its owner has given it up": (
        Change(Ownership, "epoch", lambda *_: FREE),
    ),
    "the end of a transaction does not reach one of its partitions": (
        Change(MarkerWriter, "write", _not_to_the_second),
    ),
    "transactions that are left open are never aborted": (
        Change(TransactionTable, "timed_out", lambda *_: []),
    ),
    "the index of aborted transactions begins too late": (
        Change(TxnIndex, "append", _append_late),
    ),
    "a producer id is given out twice": (Change(ProducerIds, "take", lambda *_: 5),),
    "what a share group accepts is not stored": (Change(LedPartition, "store", _true),),
    "silent members of groups are kept": (Change(KeyedDeadlines, "schedule", _nothing),),
    "a classic group forgets its generation": (
        Change(ClassicGroup, "replay", _without_generation),
    ),
    "the epoch of a producer is not raised": (
        Change(transaction_coordinator, "raise_epoch", _keep_epoch),
    ),
    "a checkpoint of log starts is ahead of the logs": (
        Change(OffsetCheckpoints, "_log_starts", _starts_at_the_ends),
    ),
    "the cleaner removes the newest record of a key": (Change(OffsetMap, "put", _put_too_late),),
}
PLANTED_IN_LIVES: dict[str, tuple[Change, ...]] = {
    "a change of the metadata is answered before its fsync": (
        Change(LogSync, "sync", _nothing_later),
    ),
    "names are not synced": (Change(FlushPlan, "run", _run_without_names),),
    "a metadata snapshot gets its name before it is synced": (
        Change(Files, "write", _write_unsynced),
    ),
    "entries of an offset index are one byte off": (
        Change(OffsetIndex, "append", _append_one_off),
    ),
}
PLANTED_ON_DISKS: dict[str, tuple[Fault, tuple[Change, ...]]] = {
    "the rest of a short write is left out": (
        Fault.SHORT,
        (Change(Files, "_write_rest", _nothing),),
    ),
    "a failed fsync is taken for done": (
        Fault.LOST,
        (Change(FlushPlan, "run", _run_without_errors),),
    ),
    "a failed fsync is repeated": (Fault.LOST, (Change(FlushPlan, "run", _run_again),)),
}
# Not found: the protocol allows it, or nobody is harmed.
HARMLESS: dict[str, tuple[Change, ...]] = {
    "a marker is written twice": (Change(MarkerWriter, "append", _append_twice),),
}


@contextmanager
def planted(changes: tuple[Change, ...]) -> Iterator[None]:
    """The broker has the fault inside the `with`."""
    with ExitStack() as stack:
        for owner, name, value in changes:
            stack.enter_context(mock.patch.object(owner, name, value))
        yield
