"""The producers of one log: what makes a retried batch a duplicate instead of a second copy.

    find_duplicate -> check -> (the log appends) -> update

Nothing changes before the append has succeeded. The rules are in producer_entry.py.

The state is a function of the log: replaying its batches from the start gives it. So that a restart
need not, a snapshot of it is written when a segment is rolled and at a clean shutdown; it is named
by the offset up to which it holds (`map_end_offset`), which is a segment's first offset, or the
log's end. `truncate_and_reload` takes the newest snapshot that is not behind the log's end and
reads; the caller then replays the batches from `map_end_offset` on. A snapshot that cannot be read
is deleted, and the one before it serves.

Open transactions are kept, since the last stable offset is the first offset of the oldest.

Kafka: ProducerStateManager.
"""

import logging
from bisect import insort
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from odradek.protocol.batch_header import BatchHeader
from odradek.protocol.compression import Buffer
from odradek.protocol.record import read_records
from odradek.protocol.records.control import ControlRecordType, control_type, coordinator_epoch_of

from .filenames import FileKind, FileState, parse_segment_file, segment_file
from .files import Files
from .producer_entry import NO_OFFSET, BatchSpan, ProducerEntry
from .producer_snapshot import CorruptSnapshotError, decode_snapshot, encode_snapshot

logger = logging.getLogger(__name__)


class CompletedTransaction(NamedTuple):
    """A transaction that a marker ended; `last_offset` is the marker's."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class SnapshotRename(NamedTuple):
    """A snapshot's file, and its name for the time until it is removed."""

    files: Files
    source: Path
    target: Path

    def run(self) -> None:
        """Rename it, on any thread; one that is not there is fine. Raises OSError."""
        with suppress(FileNotFoundError):
            self.files.rename(self.source, self.target)


class ProducerStates:
    """By producer id. `directory` may be assigned when it is renamed."""

    def __init__(self, files: Files, directory: Path, *, expiration_ms: int) -> None:
        """See which snapshots are there; nothing is loaded before `truncate_and_reload`."""
        self.directory = directory
        self.expiration_ms = expiration_ms
        self.producers: dict[int, ProducerEntry] = {}
        self.map_end_offset = 0
        # Finds in the log the batches that a snapshot leaves out, when one may be sent again.
        self.recall: Callable[[], None] | None = None
        self._files = files
        self._open_transactions: dict[int, int] = {}  # first offset, ascending -> producer id
        self._last_snapshot_offset = 0
        self._snapshots = self._list_snapshots()

    # --- one append

    def find_duplicate(self, header: BatchHeader) -> BatchSpan | None:
        """Where the batch lies already, if it is one of the last five of its producer."""
        producer = self.producers.get(header.producer_id)
        if producer is None:
            return None
        found = producer.find_duplicate(header)
        if found is None and self.recall is not None and not producer.expects(header):
            recall, self.recall = self.recall, None
            recall()
            found = producer.find_duplicate(header)
        return found

    def check(self, header: BatchHeader, base_offset: int, *, check_sequence: bool = True) -> None:
        """May the batch be appended at `base_offset`?

        Appends of the coordinators have no sequences: without `check_sequence` only the epoch and
        the transaction are looked at. Raises ApiError: OUT_OF_ORDER_SEQUENCE_NUMBER,
        INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE.
        """
        producer = self.producers.get(header.producer_id)
        if producer is not None:
            producer.check(header, base_offset, check_sequence=check_sequence)

    def update(self, header: BatchHeader, base_offset: int) -> None:
        """A batch of a producer (no control batch) was appended, or is replayed, at `base_offset`.

        `header` as it was written: a LogAppendTime belongs into it.
        """
        producer_id = header.producer_id
        producer = self.producers.get(producer_id)
        if producer is None:
            producer = ProducerEntry(producer_id, header.producer_epoch, header.max_timestamp)
            self.producers[producer_id] = producer
        producer.add(header, base_offset)
        if header.is_transactional and not producer.has_open_transaction:
            producer.txn_first_offset = base_offset
            self._open_transactions[base_offset] = producer_id

    def end_transaction(self, header: BatchHeader, batch: Buffer) -> CompletedTransaction | None:
        """A control batch of a producer was appended, or is replayed: read the marker in it.

        `header` as it was written, with its base offset. None where it ended no transaction: the
        producer had written nothing here, or the cleaner has emptied the batch. Raises
        CorruptRecordError, DecodeError.
        """
        marker = next(read_records(batch, header=header), None)
        if marker is None:
            return None
        kind = control_type(marker.key)
        if kind not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
            return None
        coordinator_epoch = coordinator_epoch_of(marker.value or b"")
        producer_id, epoch = header.producer_id, header.producer_epoch
        producer = self.producers.get(producer_id)
        if producer is None:
            producer = ProducerEntry(producer_id, epoch, marker.timestamp_ms)
            self.producers[producer_id] = producer
        first_offset = producer.txn_first_offset
        producer.end_transaction(epoch, coordinator_epoch, marker.timestamp_ms)
        if first_offset == NO_OFFSET:
            return None
        self._open_transactions.pop(first_offset, None)
        is_aborted = kind is ControlRecordType.ABORT
        return CompletedTransaction(producer_id, first_offset, header.base_offset, is_aborted)

    def update_map_end_offset(self, offset: int) -> None:
        """The state holds for the log up to here; said after every append, whoever appended."""
        self.map_end_offset = offset

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest open transaction began; None: all is decided."""
        return next(iter(self._open_transactions), None)

    # --- the whole

    def remove_expired(self, now_ms: int) -> None:
        """Forget producers that have long been silent, unless they have a transaction open."""
        expired = [entry for entry in self.producers.values() if self._is_expired(entry, now_ms)]
        for entry in expired:
            del self.producers[entry.producer_id]

    def _is_expired(self, entry: ProducerEntry, now_ms: int) -> bool:
        silent_ms = now_ms - entry.last_timestamp_ms
        return not entry.has_open_transaction and silent_ms >= self.expiration_ms

    def truncate_and_reload(self, log_start_offset: int, log_end_offset: int, now_ms: int) -> None:
        """The log holds these offsets now: drop snapshots outside it, and load the newest inside.

        Where the state is already that of `log_end_offset`, it stays. Afterwards the caller replays
        the batches from `map_end_offset` to the log's end.
        """
        for offset in list(self._snapshots):
            if offset > log_end_offset or offset <= log_start_offset:
                self.delete_snapshot(offset)
        if log_end_offset == self.map_end_offset:
            self.on_log_start_offset_incremented(log_start_offset)
        else:
            self._clear()
            self.map_end_offset = self._load_newest(log_start_offset, now_ms)
            self._last_snapshot_offset = self.map_end_offset

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """The log is empty and begins at `offset`."""
        self._clear()
        for snapshot in list(self._snapshots):
            self.delete_snapshot(snapshot)
        self._last_snapshot_offset = 0
        self.map_end_offset = offset

    def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
        """Records before this offset are gone. What is known of their producers stays."""
        self.map_end_offset = max(self.map_end_offset, log_start_offset)
        latest = self.latest_snapshot_offset
        self._last_snapshot_offset = log_start_offset if latest is None else latest

    def _clear(self) -> None:
        self.producers.clear()
        self._open_transactions.clear()

    def _load_newest(self, log_start_offset: int, now_ms: int) -> int:
        while (offset := self.latest_snapshot_offset) is not None:
            path = self._snapshot_path(offset)
            try:
                entries = decode_snapshot(self._files.read(path))
            except (CorruptSnapshotError, FileNotFoundError) as error:
                logger.warning("%s is deleted, an older one must serve: %s", path, error)
                self.delete_snapshot(offset)
                continue
            self._replace_producers(
                [entry for entry in entries if not self._is_expired(entry, now_ms)]
            )
            return offset
        return log_start_offset

    def _replace_producers(self, entries: list[ProducerEntry]) -> None:
        self.producers = {entry.producer_id: entry for entry in entries}
        open_transactions = sorted(
            (entry.txn_first_offset, entry.producer_id)
            for entry in entries
            if entry.has_open_transaction
        )
        self._open_transactions = dict(open_transactions)

    # --- snapshots

    @property
    def snapshot_offsets(self) -> list[int]:
        """Of all snapshots there are, ascending."""
        return list(self._snapshots)

    @property
    def latest_snapshot_offset(self) -> int | None:
        return self._snapshots[-1] if self._snapshots else None

    def take_snapshot(self, *, sync: bool = True) -> Path | None:
        """Write the state as of `map_end_offset`; None where the last one says the same."""
        if self.map_end_offset <= self._last_snapshot_offset:
            return None
        path = self._snapshot_path(self.map_end_offset)
        self._files.write(path, encode_snapshot(self.producers.values()), sync=sync)
        if self.map_end_offset not in self._snapshots:
            insort(self._snapshots, self.map_end_offset)
        self._last_snapshot_offset = self.map_end_offset
        return path

    def remove_stray_snapshots(self, segment_base_offsets: Iterable[int]) -> None:
        """At start: delete snapshots that belong to no segment, but not the newest if it lies
        behind them all: a clean shutdown wrote that one.
        """
        self._snapshots = self._list_snapshots()
        bases = set(segment_base_offsets)
        strays = [offset for offset in self._snapshots if offset not in bases]
        if strays and (not bases or strays[-1] >= max(bases)):
            strays.pop()
        for offset in strays:
            self.delete_snapshot(offset)

    def delete_snapshot(self, offset: int) -> None:
        """One that is not there is fine."""
        if offset in self._snapshots:
            self._snapshots.remove(offset)
            self._files.remove(self._snapshot_path(offset))

    def release_snapshot(self, offset: int) -> SnapshotRename | None:
        """It is no longer used: how to mark its file as deleted; None: there is none."""
        if offset not in self._snapshots:
            return None
        self._snapshots.remove(offset)
        return SnapshotRename(
            self._files,
            self._snapshot_path(offset),
            self._snapshot_path(offset, FileState.DELETED),
        )

    def _snapshot_path(self, offset: int, state: FileState = FileState.LIVE) -> Path:
        return self.directory / segment_file(offset, FileKind.PRODUCER_SNAPSHOT, state)

    def _list_snapshots(self) -> list[int]:
        """Their offsets, ascending."""
        names = map(parse_segment_file, self._files.list_directory(self.directory))
        return [
            name.offset
            for name in names
            if name and name.kind is FileKind.PRODUCER_SNAPSHOT and name.state is FileState.LIVE
        ]
