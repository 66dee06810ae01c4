"""Prints the batches and records of a segment or a metadata snapshot, as Kafka's tool does.

A line is written in parts, as each part is read. If a damaged batch ends the dump, the start of its
line has been printed, as in Kafka.

Kafka: DumpLogSegments.dumpLog.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from odradek.coordinator.inspect.internal_records import RecordDecoder, decode_control
from odradek.coordinator.inspect.kafka_json import Json, json_text
from odradek.protocol.batch_header import DELETE_HORIZON_BIT, MAGIC_V2
from odradek.protocol.compression import NO_LIMIT
from odradek.storage.filenames import BOOTSTRAP_CHECKPOINT, FileKind
from odradek.storage.files import Files, OpenFile
from odradek.storage.inspect.raw_batch import AnyRecord, RawBatch, RawRecord, scan_raw
from odradek.storage.inspect.raw_message import RawMessage, UnreadableError

from .findings import Findings
from .java_text import JavaFile, optional_long, parse_long

INT_MAX = 0x7FFFFFFF
RECORD_INDENT = "|"
_OFFSET_DIGITS = 20
_EPOCH_DIGITS = 10

Write = Callable[[str], object]


class LogOptions(NamedTuple):
    """What to print of each batch."""

    deep: bool  # its records
    contents: bool  # their keys and values
    metadata: bool  # their offsets, times and sizes
    max_bytes: int  # of each log; INT_MAX for all
    decode: RecordDecoder


class LogPart:
    """The part of a file that is dumped."""

    def __init__(self, files: Files, file: JavaFile, max_bytes: int = INT_MAX) -> None:
        """Raises OSError, UnreadableError."""
        self.files = files
        self.open_file: OpenFile = files.open(file.path, read_only=True)
        self.size_bytes = self.open_file.append_position
        if self.size_bytes > INT_MAX:
            raise UnreadableError(f"{self.size_bytes} bytes are more than a segment may have")
        if max_bytes < 0:
            raise UnreadableError(f"--max-bytes {max_bytes} is below 0")
        self.end = min(self.size_bytes, max_bytes)

    def batches(self, start: int = 0, max_bytes: int = INT_MAX) -> Iterator[RawBatch]:
        """The complete batches in `max_bytes` bytes from `start`. Raises UnreadableError.

        Raises also if `start` is not in the dumped part of the file.
        """
        if not 0 <= start <= self.end or max_bytes < 0:
            raise UnreadableError(f"cannot read at byte {start}: the file ends at {self.end}")
        end = min(self.end, start + max_bytes)
        return scan_raw(self.files, self.open_file, start, end)


def opening_line(file: JavaFile) -> str:
    """The first line of a dump, from the file's name. Raises ValueError if it has no offset."""
    if file.suffix == FileKind.LOG:
        return f"Log starting offset: {parse_long(file.stem)}"
    if file.name == BOOTSTRAP_CHECKPOINT:
        return "KRaft bootstrap snapshot"
    offset, epoch = snapshot_id(file.name)
    return f"Snapshot end offset: {offset}, epoch: {epoch}"


def snapshot_id(name: str) -> tuple[int, int]:
    """The offset and epoch in the name of a metadata snapshot. Raises ValueError."""
    epoch = name[_OFFSET_DIGITS + 1 : _OFFSET_DIGITS + 1 + _EPOCH_DIGITS]
    return parse_long(name[:_OFFSET_DIGITS]), parse_long(epoch)


def dump_log(
    files: Files, file: JavaFile, options: LogOptions, findings: Findings, write: Write
) -> None:
    """Print a `.log` or `.checkpoint` file. Raises OSError, UnreadableError, ValueError."""
    write(f"{opening_line(file)}\n")
    part = LogPart(files, file, options.max_bytes)
    valid_bytes, last_offset = 0, -1
    for batch in part.batches():
        _write_batch(batch, valid_bytes, write)
        if options.deep:
            for record in batch.records(NO_LIMIT):
                findings.note_offsets(file.absolute, last_offset, record.offset)
                last_offset = record.offset
                _write_record(batch, record, options, write)
                write("\n")
        valid_bytes += batch.size_bytes
    trailing_bytes = part.end - valid_bytes
    if trailing_bytes > 0 and options.max_bytes == INT_MAX:
        write(f"Found {trailing_bytes} invalid bytes at the end of {file.name}\n")


def _write_batch(batch: RawBatch, position: int, write: Write) -> None:
    write(f"offset: {batch.last_offset}" if batch.is_message else _batch_fields(batch))
    compression = batch.compression.name.lower()
    write(
        f" position: {position} {batch.timestamp_type}: {batch.max_timestamp}"
        f" size: {batch.size_bytes} magic: {batch.magic} compresscodec: {compression}"
        f" crc: {batch.crc} isvalid: {_java(batch.is_valid())}\n"
    )


def _batch_fields(batch: RawBatch) -> str:
    header = batch.header
    horizon = header.base_timestamp if header.attributes & DELETE_HORIZON_BIT else None
    return (
        f"baseOffset: {batch.offset} lastOffset: {batch.last_offset} count: {header.record_count}"
        f" baseSequence: {header.base_sequence} lastSequence: {batch.last_sequence}"
        f" producerId: {header.producer_id} producerEpoch: {header.producer_epoch}"
        f" partitionLeaderEpoch: {header.partition_leader_epoch}"
        f" isTransactional: {_java(header.is_transactional)} isControl: {_java(header.is_control)}"
        f" deleteHorizonMs: {optional_long(horizon)}"
    )


def _java(value: bool) -> str:
    return "true" if value else "false"


def _write_record(batch: RawBatch, record: AnyRecord, options: LogOptions, write: Write) -> None:
    if options.metadata:
        _write_metadata(batch, record, write)
    if options.contents and not batch.is_control:
        prefix = " " if options.metadata else f"{RECORD_INDENT} "
        _write_contents(record, options.decode, prefix, write)


def _write_metadata(batch: RawBatch, record: AnyRecord, write: Write) -> None:
    write(
        f"{RECORD_INDENT} offset: {record.offset} {batch.timestamp_type}: {record.timestamp_ms}"
        f" keySize: {record.key_size} valueSize: {record.value_size}"
    )
    if batch.magic >= MAGIC_V2:
        assert isinstance(record, RawRecord)
        names = ",".join(name for name, _ in record.headers)
        write(f" sequence: {record.sequence} headerKeys: [{names}]")
    if isinstance(record, RawMessage):
        write(f" isValid: {_java(record.is_valid)} crc: {record.crc}")
    if batch.is_control:
        write(f" {control_text(record)}")


def control_text(record: AnyRecord) -> str:
    """The content of a control record as text. Raises UnreadableError."""
    control = decode_control(record.key, record.value)
    if control.kind is None:
        return f"{control.name} UNKNOWN({control.type_id})"
    if control.message is None:
        return f"{control.name} {control.kind.name} coordinatorEpoch: {control.coordinator_epoch}"
    return f"{control.name} {json_text(control.message)}"


def _write_contents(record: AnyRecord, decode: RecordDecoder, prefix: str, write: Write) -> None:
    decoded = decode(record)
    if decoded.key is not None:
        write(f"{prefix}key: {_shown(decoded.key)}")
        prefix = " "
    if decoded.value is not None:
        write(f"{prefix}payload: {_shown(decoded.value)}")


def _shown(value: Json) -> str:
    return value if isinstance(value, str) else json_text(value)
