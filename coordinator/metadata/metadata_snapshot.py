"""Snapshot files of the metadata log. A snapshot replaces all records before an offset.

`00000000000000000500-0000000003.checkpoint` replaces the records before offset 500, the last of
which has epoch 3. It is a file of record batches (with that epoch, offsets from 0): a
SnapshotHeader with the timestamp of the last record that it replaces, optionally KRaftVersion and
Voters, then metadata records, and last a SnapshotFooter. Formatting a directory writes two:

    bootstrap.checkpoint                           in the data directory: the first records
    00000000000000000000-0000000000.checkpoint     in the metadata log's directory: the first voters

Others are written as the log grows; then the log before them may be deleted (snapshot_keeping.py).
Kafka: RecordsSnapshotWriter, RecordsSnapshotReader, BootstrapDirectory.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import CorruptJournalError, RecordCodec
from odradek.protocol.batch_header import CorruptRecordError
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.control import (
    ControlRecordType,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    control_key,
)
from odradek.protocol.schema import Message
from odradek.storage.filenames import MetadataSnapshotName, metadata_snapshot_file
from odradek.storage.files import Files
from odradek.storage.metadata_snapshots import snapshots_in

from .snapshot_batches import snapshot_batches

# The version inside the records' first field and of their messages: all are 0 as of Kafka 4.4.
CONTROL_VERSION = 0
RECORDS_PER_BATCH = 1000
RECORDS_PER_PIECE = 100
BATCH_BYTES = 256 << 10  # a batch is full when its records have so many


def read_snapshot(files: Files, path: Path) -> list[memoryview]:
    """Read the batches of a snapshot file. Raises CorruptJournalError if it is cut or damaged."""
    try:
        return snapshot_batches(files.read(path))
    except CorruptRecordError as error:
        raise CorruptJournalError(f"{path}: {error}") from error


def newest_sound_snapshot(
    files: Files, directory: Path, start_offset: int
) -> tuple[MetadataSnapshotName | None, tuple[MetadataSnapshotName, ...], list[memoryview]]:
    """Return the newest sound snapshot, the damaged newer ones, and its batches.

    `start_offset`: that of the log. Raises CorruptJournalError if records before it are lost, and
    OSError.
    """
    names = snapshots_in(files, directory)
    damaged: list[MetadataSnapshotName] = []
    first_error: CorruptJournalError | None = None
    for name in reversed(names):
        if name.end_offset < start_offset:
            break
        try:
            batches = read_snapshot(files, directory / metadata_snapshot_file(*name))
        except CorruptJournalError as error:
            first_error = first_error or error
            damaged.append(name)
        else:
            return name, tuple(damaged), batches
    # Without a snapshot the log must begin at 0. The voters in the snapshot of offset 0 are not in
    # the log: if that one is damaged, they are lost.
    if start_offset == 0 and not any(name.end_offset == 0 for name in damaged):
        return None, tuple(damaged), []
    if first_error is not None:
        raise first_error
    raise CorruptJournalError(
        f"{directory}: the log begins at offset {start_offset}, and no snapshot has the records "
        f"before it (the newest: {names[-1] if names else 'none'})"
    )


def control_record(kind: ControlRecordType, message: Message) -> Record:
    """Make a control record of the quorum or of a snapshot, without a timestamp."""
    return Record(control_key(kind), message.encode(CONTROL_VERSION), 0)


def snapshot_bytes(
    controls: Sequence[Record],
    records: Iterable[JournalRecord],
    codec: RecordCodec,
    *,
    last_contained_ms: int,
    now_ms: int,
    epoch: int = 0,
) -> bytes:
    """Make a whole snapshot file, see `snapshot_pieces`."""
    pieces = snapshot_pieces(
        controls, records, codec, last_contained_ms=last_contained_ms, now_ms=now_ms, epoch=epoch
    )
    return b"".join(pieces)


def snapshot_pieces(
    controls: Sequence[Record],
    records: Iterable[JournalRecord],
    codec: RecordCodec,
    *,
    last_contained_ms: int,
    now_ms: int,
    epoch: int,
) -> Iterator[bytes]:
    """Make a snapshot file in pieces, each of which takes little time; some are empty.

    `controls` follow the header in its batch, as Kafka writes them. Kafka puts up to 8 MiB of
    records into a batch; here it is 1,000 records, Kafka's limit for one write, or 256 KiB.
    """
    header = SnapshotHeaderRecord(
        version=CONTROL_VERSION, last_contained_log_timestamp=last_contained_ms
    )
    head = [control_record(ControlRecordType.SNAPSHOT_HEADER, header), *controls]
    batches = _Batches(now_ms, epoch)
    yield batches.build(head, is_control=True)
    body: list[Record] = []
    body_bytes = 0
    for record in records:
        key, value = codec.encode(record)
        body.append(Record(key, value, now_ms))
        body_bytes += len(value or b"")
        if len(body) == RECORDS_PER_BATCH or body_bytes >= BATCH_BYTES:
            yield batches.build(body)
            body, body_bytes = [], 0
        elif len(body) % RECORDS_PER_PIECE == 0:
            yield b""
    if body:
        yield batches.build(body)
    footer = SnapshotFooterRecord(version=CONTROL_VERSION)
    tail = [control_record(ControlRecordType.SNAPSHOT_FOOTER, footer)]
    yield batches.build(tail, is_control=True)


class _Batches:
    """Builds the batches of one file, with offsets from 0."""

    def __init__(self, now_ms: int, epoch: int) -> None:
        self._now_ms = now_ms
        self._epoch = epoch
        self._next_offset = 0

    def build(self, records: list[Record], *, is_control: bool = False) -> bytes:
        batch = build_batch(
            [record._replace(timestamp_ms=self._now_ms) for record in records],
            base_offset=self._next_offset,
            partition_leader_epoch=self._epoch,
            is_control=is_control,
        )
        self._next_offset += len(records)
        return bytes(batch)
