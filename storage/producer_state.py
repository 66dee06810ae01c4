"""The producers of one log, by which a batch that is sent twice is recognized as a duplicate.

    find_duplicate -> check -> (the log appends) -> update

Most batches continue where their producer's last one ended. `continues_with` finds that out with
one look at the producer, and the first two steps are left out.

Nothing changes before the append has succeeded. The rules are in producer_entry.py.

The state can be computed by replaying the log's batches from the start. To save that at a restart,
a snapshot of the state is taken when a segment is rolled and at a clean shutdown. After a roll, a
snapshot with many producers is encoded in parts, and written before the next flush. A snapshot's
file name is the offset up to which it covers the log (`map_end_offset`): a segment's base offset,
or the log's end. `truncate_and_reload` loads the newest snapshot that is not after the log's end;
the caller then replays the batches from `map_end_offset` on. A snapshot that cannot be read is
deleted, and the one before it is loaded.

Open transactions are tracked because the last stable offset is the first offset of the oldest.

Kafka: ProducerStateManager.
"""

import logging
from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from odradek.protocol.batch_header import TRANSACTIONAL_BIT, BatchHeader
from odradek.protocol.compression import Buffer
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.record import read_records
from odradek.protocol.records.control import ControlRecordType, control_type, coordinator_epoch_of

from .append import EndMarker
from .filenames import FileKind, FileState, live_offsets, segment_file
from .files import Files
from .parts import ITEMS_OF_A_PART, in_parts
from .producer_entry import NO_OFFSET, BatchSpan, ProducerEntry
from .producer_snapshot import CorruptSnapshotError, SnapshotEncoder, decode_snapshot
from .verification import Verification

logger = logging.getLogger(__name__)


class CompletedTransaction(NamedTuple):
    """A transaction that a marker completed; `last_offset` is the marker's offset."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class SnapshotRename(NamedTuple):
    """The rename of a snapshot's file to its `.deleted` name."""

    files: Files
    directory: Path
    offset: int

    def run(self) -> Path:
        """Rename the file if it exists, on any thread; return its new path. Raises OSError."""
        source, target = (
            self.directory / segment_file(self.offset, FileKind.PRODUCER_SNAPSHOT, state)
            for state in (FileState.LIVE, FileState.DELETED)
        )
        with suppress(FileNotFoundError):
            self.files.rename(source, target)
        return target


class ProducerStates:
    """Producer states by producer id. `directory` may be assigned when it is renamed."""

    def __init__(self, files: Files, directory: Path, *, expiration_ms: int) -> None:
        """List the snapshots; `truncate_and_reload` loads one."""
        self.directory = directory
        self.expiration_ms = expiration_ms
        self.producers: dict[int, ProducerEntry] = {}
        self.map_end_offset = 0  # up to which the state covers the log; set after every append
        # Reads from the log the recent batches that a snapshot does not have. Called once, at the
        # first batch that may be a duplicate of one of them.
        self.recall: Callable[[], None] | None = None
        self._files = files
        self._open_transactions: dict[int, int] = {}  # first offset, ascending -> producer id
        self._verifications: dict[int, Verification] = {}
        self._last_snapshot_offset = 0
        self._snapshots: list[int] = []
        self.list_snapshots()
        # The snapshot that is begun and not written yet, and its offset.
        self._encoder: SnapshotEncoder | None = None
        self._begun_offset = 0

    # --- one append

    def continues_with(self, header: BatchHeader) -> bool:
        """Whether the batch is the next one of a known producer: it is new and may be appended.

        If not, `find_duplicate`, `check_transaction` and `check` find out what it is.
        """
        producer_id = header.producer_id
        producer = self.producers.get(producer_id)
        return (
            producer is not None
            and producer_id not in self._verifications
            and producer.continues_with(header)
        )

    def find_duplicate(self, header: BatchHeader) -> BatchSpan | None:
        """The stored copy of the batch, if it is one of the last five of its producer."""
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
        """Check whether the batch may be appended at `base_offset`.

        Without `check_sequence`, for appends of the coordinators, which have no sequence numbers,
        only the epoch and the transaction are checked. Raises ApiError:
        OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE.
        """
        producer = self.producers.get(header.producer_id)
        if check_sequence and self._verifications:
            self._check_verification(header, producer)
        if producer is not None:
            producer.check(header, base_offset, check_sequence=check_sequence)

    def check_transaction(self, header: BatchHeader, *, is_verified: bool) -> None:
        """Check that a transactional batch belongs to an open transaction, or may begin one.

        Raises ApiError: INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE.
        """
        producer_id, epoch = header.producer_id, header.producer_epoch
        if self.has_open_transaction(producer_id, epoch):
            return
        self._check_epoch(producer_id, epoch)
        if not is_verified:
            raise ApiError(
                ErrorCode.INVALID_TXN_STATE, f"producer id {producer_id} has no transaction open"
            )

    def has_open_transaction(self, producer_id: int, epoch: int) -> bool:
        """Whether a producer of this epoch has a transaction open."""
        producer = self.producers.get(producer_id)
        return producer is not None and producer.has_open_transaction and producer.epoch == epoch

    def open_since(self, producer_id: int) -> int | None:
        """The first offset of the producer's open transaction; None if it has none."""
        producer = self.producers.get(producer_id)
        if producer is None or not producer.has_open_transaction:
            return None
        return producer.txn_first_offset

    def begin_verification(
        self, producer_id: int, epoch: int, sequence: int, now_ms: int, *, is_v2: bool
    ) -> bool:
        """Whether the coordinator must confirm that the transaction has this partition.

        `now_ms` is a time of a clock that never jumps. Raises ApiError: INVALID_PRODUCER_EPOCH.
        """
        self._check_epoch(producer_id, epoch)
        if self.has_open_transaction(producer_id, epoch):
            return False
        waiting = self._verifications.get(producer_id)
        if waiting is None:
            self._verifications[producer_id] = Verification(epoch, sequence, now_ms, is_v2)
        else:
            waiting.note(epoch, sequence)
        return True

    def check_marker(self, marker: EndMarker, base_offset: int) -> None:
        """See ProducerEntry.check_marker. An unknown producer may get any marker."""
        producer = self.producers.get(marker.producer_id)
        if producer is not None:
            producer.check_marker(marker, base_offset)

    def _check_epoch(self, producer_id: int, epoch: int) -> None:
        producer = self.producers.get(producer_id)
        if producer is not None and epoch < producer.epoch:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"epoch {epoch} of producer {producer_id} is older than the last seen,"
                f" {producer.epoch}",
            )

    def _check_verification(self, header: BatchHeader, producer: ProducerEntry | None) -> None:
        """Refuse a batch that overtook one of its producer that has been refused."""
        waiting = self._verifications.get(header.producer_id)
        if waiting is None:
            return
        is_unknown = producer is None or not producer.batches
        is_gap = waiting.is_v2 and header.base_sequence != 0 and is_unknown
        if is_gap or header.base_sequence > waiting.lowest_sequence:
            expected = 0 if is_gap else waiting.lowest_sequence
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"sequence {header.base_sequence} of producer {header.producer_id} came,"
                f" {expected} was expected",
            )

    def update(self, header: BatchHeader, base_offset: int) -> None:
        """Add a batch that was appended, or is replayed, at `base_offset`; no control batch.

        `header` is the one that was written, with the LogAppendTime if there is one.
        """
        producer_id = header.producer_id
        producer = self.producers.get(producer_id)
        if producer is None:
            producer = ProducerEntry(producer_id, header.producer_epoch, header.max_timestamp)
            self.producers[producer_id] = producer
        elif self._encoder is not None:
            self._encoder.keep(producer)
        producer.add(header, base_offset)
        if header.attributes & TRANSACTIONAL_BIT:
            self._verifications.pop(producer_id, None)
            if not producer.has_open_transaction:
                producer.txn_first_offset = base_offset
                self._open_transactions[base_offset] = producer_id

    def replay_marker(self, header: BatchHeader, batch: Buffer) -> CompletedTransaction | None:
        """Apply a control batch that is read from the log.

        Returns None as `end_transaction`, and if the batch has no marker because it is of another
        type or the cleaner has emptied it. Raises CorruptRecordError, DecodeError.
        """
        record = next(read_records(batch, header=header), None)
        if record is None:
            return None
        kind = control_type(record.key)
        if kind not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
            return None
        marker = EndMarker(
            header.producer_id,
            header.producer_epoch,
            is_commit=kind is ControlRecordType.COMMIT,
            coordinator_epoch=coordinator_epoch_of(record.value or b""),
        )
        return self.end_transaction(marker, header.base_offset, record.timestamp_ms)

    def end_transaction(
        self, marker: EndMarker, offset: int, timestamp_ms: int
    ) -> CompletedTransaction | None:
        """Complete a transaction by a marker that was appended, or is replayed, at `offset`.

        Returns None if the marker ended no transaction: the producer had written nothing to this
        log.
        """
        producer_id, epoch = marker.producer_id, marker.producer_epoch
        producer = self.producers.get(producer_id)
        if producer is None:
            producer = ProducerEntry(producer_id, epoch, timestamp_ms)
            self.producers[producer_id] = producer
        elif self._encoder is not None:
            self._encoder.keep(producer)
        waiting = self._verifications.get(producer_id)
        if waiting is not None and not (waiting.is_v2 and waiting.epoch == epoch):
            del self._verifications[producer_id]  # else it is that of the next transaction
        first_offset = producer.txn_first_offset
        producer.end_transaction(epoch, marker.coordinator_epoch, timestamp_ms)
        if first_offset == NO_OFFSET:
            return None
        self._open_transactions.pop(first_offset, None)
        return CompletedTransaction(
            producer_id, first_offset, offset, is_aborted=not marker.is_commit
        )

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of the oldest open transaction, or None."""
        return next(iter(self._open_transactions), None)

    @property
    def open_transactions(self) -> list[tuple[int, int]]:
        """First offset and producer id of the open transactions, ascending."""
        return list(self._open_transactions.items())

    def move_open_transactions(self, first_offsets: Mapping[int, int | None]) -> None:
        """Set the first offsets of open transactions, by producer id; None: it is closed."""
        for producer_id, first_offset in first_offsets.items():
            self.producers[producer_id].txn_first_offset = (
                NO_OFFSET if first_offset is None else first_offset
            )
        self._replace_producers(list(self.producers.values()))

    # --- all producers

    def remove_expired(self, now_ms: int) -> None:
        """Remove producers inactive for `expiration_ms`, unless they have an open transaction."""
        for _ in self.remove_expired_in_parts(now_ms):
            pass

    def remove_expired_in_parts(self, now_ms: int) -> Iterator[None]:
        """The same, in parts of a millisecond. The state may change between two of them."""
        for part in in_parts(self.producers):
            for producer_id in part:
                entry = self.producers.get(producer_id)
                if entry is not None and self._is_expired(entry, now_ms):
                    del self.producers[producer_id]
            yield

    def remove_expired_verifications(self, now_ms: int) -> Iterator[None]:
        """Remove verifications that have waited for `expiration_ms`, by their clock, in parts."""
        for part in in_parts(self._verifications):
            for producer_id in part:
                waiting = self._verifications.get(producer_id)
                if waiting is not None and now_ms - waiting.since_ms >= self.expiration_ms:
                    del self._verifications[producer_id]
            yield

    def _is_expired(self, entry: ProducerEntry, now_ms: int) -> bool:
        inactive_ms = now_ms - entry.last_timestamp_ms
        return not entry.has_open_transaction and inactive_ms >= self.expiration_ms

    def truncate_and_reload(self, log_start_offset: int, log_end_offset: int, now_ms: int) -> None:
        """Delete snapshots outside these offsets of the log, and load the newest of the others.

        If the state already covers the log up to `log_end_offset`, it is kept. Afterwards the
        caller replays the batches from `map_end_offset` to the log's end. Raises OSError.
        """
        self.finish_snapshot()
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
        """Clear the state and the snapshots: the log is empty and begins at `offset`."""
        self._encoder = None
        self._clear()
        for snapshot in list(self._snapshots):
            self.delete_snapshot(snapshot)
        self._last_snapshot_offset = 0
        self.map_end_offset = offset

    def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
        """Record that the log starts at this offset. The state of all producers is kept."""
        self.map_end_offset = max(self.map_end_offset, log_start_offset)
        latest = self.latest_snapshot_offset
        self._last_snapshot_offset = log_start_offset if latest is None else latest

    def _clear(self) -> None:
        self.producers.clear()
        self._open_transactions.clear()
        self._verifications.clear()

    def _load_newest(self, log_start_offset: int, now_ms: int) -> int:
        while (offset := self.latest_snapshot_offset) is not None:
            path = self._snapshot_path(offset)
            try:
                entries = decode_snapshot(self._files.read(path))
            except (CorruptSnapshotError, FileNotFoundError) as error:
                logger.warning("%s is deleted, an older one is used: %s", path, error)
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
        """The offsets of all snapshots, ascending."""
        return list(self._snapshots)

    @property
    def latest_snapshot_offset(self) -> int | None:
        return self._snapshots[-1] if self._snapshots else None

    def take_snapshot(self) -> Path | None:
        """Write a snapshot at `map_end_offset`; return its path, or None if it exists already."""
        path = self.begin_snapshot()
        self.finish_snapshot()
        return path

    def begin_snapshot(self) -> Path | None:
        """Like `take_snapshot`, but more than ITEMS_OF_A_PART producers are not written at once.

        `encode_in_parts` encodes it, and `finish_snapshot` writes it. Raises OSError.
        """
        self.finish_snapshot()
        if self.map_end_offset <= self._last_snapshot_offset:
            return None
        self._encoder = SnapshotEncoder(self.producers.values())
        self._begun_offset = self.map_end_offset
        if len(self.producers) <= ITEMS_OF_A_PART:
            self.finish_snapshot()
        return self._snapshot_path(self.map_end_offset)

    def encode_in_parts(self) -> Iterator[None]:
        """Encode the snapshot that is begun. The state may change between two parts."""
        return iter(()) if self._encoder is None else self._encoder.encode_in_parts()

    def finish_snapshot(self) -> None:
        """Write the snapshot that is begun, if there is one. Raises OSError: then there is none."""
        encoder, self._encoder = self._encoder, None
        if encoder is None:
            return
        content, path = encoder.finish(), self._snapshot_path(self._begun_offset)
        file = self._files.open(path, create=True)
        try:
            self._files.truncate(file, 0)
            self._files.append(file, content)
        except OSError:
            with suppress(OSError):  # half a snapshot is none
                self._files.remove(path)
            raise
        if self._begun_offset not in self._snapshots:
            insort(self._snapshots, self._begun_offset)
        self._last_snapshot_offset = self._begun_offset

    def remove_stray_snapshots(self, segment_base_offsets: Iterable[int]) -> None:
        """Delete snapshots that belong to no segment, at start.

        The newest is kept if it is not before the last segment, because a clean shutdown wrote it.
        """
        bases = set(segment_base_offsets)
        strays = [offset for offset in self._snapshots if offset not in bases]
        if strays and (not bases or strays[-1] >= max(bases)):
            strays.pop()
        for offset in strays:
            self.delete_snapshot(offset)

    def delete_snapshot(self, offset: int) -> None:
        """Delete a snapshot if it exists."""
        if offset == self._begun_offset:
            self._encoder = None
        if offset in self._snapshots:
            self._snapshots.remove(offset)
            self._files.remove(self._snapshot_path(offset))

    def release_snapshots(self, offsets: Iterable[int]) -> list[SnapshotRename]:
        """Drop snapshots from the list; return the renames that mark their files as deleted.

        There may be thousands, so the list is copied once. Missing ones are ignored.
        """
        released = set(offsets)
        if self._begun_offset in released:
            self._encoder = None
        renames = [
            SnapshotRename(self._files, self.directory, offset)
            for offset in self._snapshots
            if offset in released
        ]
        if renames:
            self._snapshots = [offset for offset in self._snapshots if offset not in released]
        return renames

    def _snapshot_path(self, offset: int) -> Path:
        return self.directory / segment_file(offset, FileKind.PRODUCER_SNAPSHOT)

    def list_snapshots(self) -> None:
        """Find the snapshots in the directory. Again, if another object has deleted some there."""
        names = self._files.list_directory(self.directory)
        self._snapshots = live_offsets(names, FileKind.PRODUCER_SNAPSHOT)
