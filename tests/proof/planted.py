"""Faults that are planted in the broker, to see whether the simulation finds them."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from msgspec.structs import replace

from odradek.broker.disk.log_sync import LogSyncs
from odradek.broker.disk.progress import SyncWithWorkers
from odradek.coordinator.consumer_groups.ownership import FREE, Ownership
from odradek.coordinator.transactions.marker_writer import MarkerWriter
from odradek.protocol.compression import Buffer
from odradek.storage.files import Files, OpenFile
from odradek.storage.log import PartitionLog
from odradek.storage.producer_state import ProducerStates
from odradek.storage.txn_index import TxnIndex

from .journal import JournalledFiles


class Change(NamedTuple):
    """A method or property of a class, and what takes its place."""

    owner: type
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


PLANTED: dict[str, tuple[Change, ...]] = {
    "an fsync of a file is left out": (Change(JournalledFiles, "fsync", _nothing),),
    "an fsync of a directory is left out": (Change(JournalledFiles, "fsync_directory", _nothing),),
    "a file gets its name before its content is synced": (
        Change(Files, "atomic_write", _atomic_write),
    ),
    "a Produce is answered before its fsync": (Change(LogSyncs, "take_due", _done_at_once),),
    "a change of the metadata is answered before its fsync": (
        Change(SyncWithWorkers, "sync", _nothing_later),
    ),
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
