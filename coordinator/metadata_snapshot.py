"""Snapshot files of the metadata log: what stands for all records before an offset.

`00000000000000000500-0000000003.checkpoint` stands for the records before offset 500, the last of
them of epoch 3. It is a file of record batches: a SnapshotHeader, perhaps KRaftVersion and Voters,
then metadata records, at last a SnapshotFooter. Two of them come from formatting a directory:

    bootstrap.checkpoint                                 in the log directory: the first records
    00000000000000000000-0000000000.checkpoint           beside the log: the first voters

Kafka writes larger ones as its log grows, and then deletes the log before them.
Kafka: RecordsSnapshotWriter, RecordsSnapshotReader, BootstrapDirectory.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..protocol.record import Record, read_records
from ..protocol.record_batch import CorruptRecordError, build_batch, check_crc, read_header
from ..protocol.records.control import (
    ControlRecordType,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    control_key,
    control_type,
)
from ..protocol.schema import Message
from ..storage.filenames import MetadataSnapshotName, parse_metadata_snapshot_file
from ..storage.files import Files
from .journal import CorruptJournalError
from .outcome import JournalRecord
from .record_codec import RecordCodec

# The version inside the records' first field and of their messages: all are 0 as of Kafka 4.4.
CONTROL_VERSION = 0
SNAPSHOT_EPOCH = 0  # of the batches; readers do not look at it


def newest_snapshot(files: Files, directory: Path) -> MetadataSnapshotName | None:
    """The snapshot in the metadata log's directory that reaches furthest."""
    names = (parse_metadata_snapshot_file(name) for name in files.list_directory(directory))
    return max((name for name in names if name is not None), default=None)


def read_snapshot(files: Files, path: Path) -> list[memoryview]:
    """The batches of a snapshot file. Raises CorruptJournalError unless it is whole and sound."""
    data = memoryview(files.read(path))
    batches = []
    position = 0
    try:
        while position < len(data):
            header = read_header(data, position)
            batch = data[position : position + header.size_bytes]
            if len(batch) < header.size_bytes or header.batch_length <= 0:
                raise CorruptRecordError(f"a batch of {header.size_bytes} bytes is cut short")
            check_crc(batch, header)
            batches.append(batch)
            position += header.size_bytes
    except CorruptRecordError as error:
        raise CorruptJournalError(f"{path}, byte {position}: {error}") from error
    if not any(kind is ControlRecordType.SNAPSHOT_FOOTER for kind, _ in control_records(batches)):
        raise CorruptJournalError(f"{path}: its end is missing")
    return batches


def control_records(
    batches: Iterable[memoryview],
) -> Iterator[tuple[ControlRecordType | None, Record]]:
    """The control records in some batches, with what each is about."""
    for batch in batches:
        header = read_header(batch)
        if header.is_control:
            for record in read_records(batch, header=header):
                yield control_type(record.key), record


def control_record(kind: ControlRecordType, message: Message) -> Record:
    """A control record that belongs to the quorum or to a snapshot; it still needs its time."""
    return Record(control_key(kind), message.encode(CONTROL_VERSION), 0)


def snapshot_bytes(
    controls: Sequence[Record],
    records: Sequence[JournalRecord],
    codec: RecordCodec,
    *,
    last_contained_ms: int,
    now_ms: int,
) -> bytes:
    """A whole snapshot file; `controls` follow the header in its batch, as Kafka writes them."""
    header = SnapshotHeaderRecord(
        version=CONTROL_VERSION, last_contained_log_timestamp=last_contained_ms
    )
    footer = SnapshotFooterRecord(version=CONTROL_VERSION)
    head = [control_record(ControlRecordType.SNAPSHOT_HEADER, header), *controls]
    body = [Record(*codec.encode(record), now_ms) for record in records]
    tail = [control_record(ControlRecordType.SNAPSHOT_FOOTER, footer)]
    out = bytearray()
    offset = 0
    for part in (head, body, tail):
        if part:
            out += build_batch(
                [record._replace(timestamp_ms=now_ms) for record in part],
                base_offset=offset,
                partition_leader_epoch=SNAPSHOT_EPOCH,
                is_control=part is not body,
            )
            offset += len(part)
    return bytes(out)
