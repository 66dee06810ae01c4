"""Prints the files of a log as JSON lines, for scripts: one object per batch, record or entry.

    {"type":"batch","file":…,"position":0,"baseOffset":0,…,"isValid":true}
    {"type":"record","file":…,"offset":0,"timestamp":…,"key":…,"value":…,"headers":[["name",…]]}
    {"type":"offsetIndexEntry"…}     {"type":"timeIndexEntry"…}     {"type":"producer"…}
    {"type":"abortedTransaction"…}   {"type":"problem","message":…}

Names are those that Kafka's tool prints, in camel case. Records follow their batch if
`--deep-iteration` or a decoder is given. A key or value is a text, {"base64": …} if it is not
UTF-8, or the object that a decoder of an internal log returned. `isTrue` of an index entry says
whether it agrees with the log. With `--skip-record-metadata` a record has its key and value only,
and control records are left out.
"""

import json
from collections.abc import Iterator

from odradek.coordinator.inspect.internal_records import decode_control
from odradek.coordinator.inspect.kafka_json import Json
from odradek.protocol.batch_header import (
    DELETE_HORIZON_BIT,
    MAGIC_V2,
    NO_TIMESTAMP,
    decrement_sequence,
)
from odradek.protocol.compression import NO_LIMIT
from odradek.storage.filenames import FileKind
from odradek.storage.files import Files
from odradek.storage.inspect.raw_batch import AnyRecord, RawBatch, RawRecord
from odradek.storage.inspect.raw_message import RawMessage
from odradek.storage.offset_index import OffsetIndex
from odradek.storage.producer_snapshot import CorruptSnapshotError, decode_snapshot

from .decoders import text_or_base64
from .index_text import IndexEntries, IndexOptions, TimeIndexWalk, check_offsets, check_times
from .java_text import JavaFile, parse_long
from .log_text import INT_MAX, LogOptions, LogPart, Write, opening_line
from .producer_state_text import corruption_text, transactions

Line = dict[str, Json]


def dump_as_json(
    files: Files, file: JavaFile, log: LogOptions, index: IndexOptions, write: Write
) -> None:
    """Print one file. Raises OSError, UnreadableError, ValueError."""
    for line in _lines(files, file, log, index):
        write(json_line({"type": line.pop("type"), "file": file.text, **line}))


def json_line(line: Line) -> str:
    """The JSON of one object with a line end."""
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"


def problem_line(file: JavaFile, message: str) -> str:
    """A line that says why the dump of a file ended."""
    return json_line({"type": "problem", "file": file.text, "message": message})


def _lines(files: Files, file: JavaFile, log: LogOptions, index: IndexOptions) -> Iterator[Line]:
    match file.suffix:
        case FileKind.LOG | ".checkpoint":
            return _log(files, file, log)
        case FileKind.OFFSET_INDEX:
            return _offset_index(files, file, index)
        case FileKind.TIME_INDEX:
            return _time_index(files, file, index)
        case FileKind.PRODUCER_SNAPSHOT:
            return _producers(files, file)
        case FileKind.TXN_INDEX:
            return _transactions(files, file)
        case _:
            return iter([_problem("this is not a file of a log")])


def _problem(message: str) -> Line:
    return {"type": "problem", "message": message}


# --- logs


def _log(files: Files, file: JavaFile, options: LogOptions) -> Iterator[Line]:
    opening_line(file)  # raises ValueError for a name without an offset
    part = LogPart(files, file, options.max_bytes)
    valid_bytes = 0
    for batch in part.batches():
        yield _batch(batch)
        if options.deep:
            for record in batch.records(NO_LIMIT):
                if options.metadata or (options.contents and not batch.is_control):
                    yield _record(batch, record, options)
        valid_bytes += batch.size_bytes
    trailing_bytes = part.end - valid_bytes
    if trailing_bytes > 0 and options.max_bytes == INT_MAX:
        yield _problem(f"{trailing_bytes} invalid bytes at the end")


def _batch(batch: RawBatch) -> Line:
    line: Line = {"type": "batch", "position": batch.position}
    if batch.is_message:
        line |= {"lastOffset": batch.last_offset}
    else:
        header = batch.header
        has_horizon = header.attributes & DELETE_HORIZON_BIT != 0
        line |= {
            "baseOffset": batch.offset,
            "lastOffset": batch.last_offset,
            "count": header.record_count,
            "baseSequence": header.base_sequence,
            "lastSequence": batch.last_sequence,
            "producerId": header.producer_id,
            "producerEpoch": header.producer_epoch,
            "partitionLeaderEpoch": header.partition_leader_epoch,
            "isTransactional": header.is_transactional,
            "isControl": header.is_control,
            "deleteHorizonMs": header.base_timestamp if has_horizon else None,
        }
    return line | {
        "timestampType": batch.timestamp_type,
        "maxTimestamp": batch.max_timestamp,
        "size": batch.size_bytes,
        "magic": batch.magic,
        "compression": batch.compression.name.lower(),
        "crc": batch.crc,
        "isValid": batch.is_valid(),
    }


def _record(batch: RawBatch, record: AnyRecord, options: LogOptions) -> Line:
    line: Line = {"type": "record"}
    if options.metadata:
        line |= _metadata(batch, record)
    if options.contents and not batch.is_control:
        decoded = options.decode(record)
        line |= {"key": decoded.key, "value": decoded.value}
    return line


def _metadata(batch: RawBatch, record: AnyRecord) -> Line:
    line: Line = {
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "keySize": record.key_size,
        "valueSize": record.value_size,
    }
    if isinstance(record, RawMessage):
        line |= {"crc": record.crc, "isValid": record.is_valid}
    elif batch.magic >= MAGIC_V2:
        line |= {"sequence": record.sequence, "headers": _headers(record)}
    if batch.is_control:
        control = decode_control(record.key, record.value)
        kind = "UNKNOWN" if control.kind is None else control.kind.name
        line |= {"controlType": kind, "controlTypeId": control.type_id}
        if control.message is not None:
            line["value"] = control.message
        elif control.kind is not None:
            line["coordinatorEpoch"] = control.coordinator_epoch
    return line


def _headers(record: RawRecord) -> Json:
    return [
        [name, None if value is None else text_or_base64(value)] for name, value in record.headers
    ]


# --- indexes


def _offset_index(files: Files, file: JavaFile, options: IndexOptions) -> Iterator[Line]:
    base_offset = parse_long(file.stem)
    log = LogPart(files, file.sibling(FileKind.LOG))
    index = IndexEntries(files, file.path, base_offset, OffsetIndex)
    if options.sanity_only:
        check_offsets(index)
        yield {"type": "sanityCheck", "passed": True}
        return
    for slot in range(index.count):
        relative, position = index.at(slot)
        if relative == 0 and slot > 0:
            return
        batch = next(log.batches(position, options.max_message_bytes), None)
        found = None if batch is None else batch.last_offset
        is_true = found == base_offset + relative
        if not (options.verify_only and is_true):
            yield {
                "type": "offsetIndexEntry",
                "offset": base_offset + relative,
                "position": position,
                "logOffset": found,
                "isTrue": is_true,
            }


def _time_index(files: Files, file: JavaFile, options: IndexOptions) -> Iterator[Line]:
    walk = TimeIndexWalk(files, file)
    if options.sanity_only:
        check_times(walk.times)
        yield {"type": "sanityCheck", "passed": True}
        return
    previous_ms = NO_TIMESTAMP
    for timestamp_ms, offset, batch in walk.entries():
        found_ms = None
        if batch is not None and batch.last_offset == offset:
            found_ms = max((r.timestamp_ms for r in batch.records(NO_LIMIT)), default=NO_TIMESTAMP)
        is_true = found_ms == timestamp_ms and timestamp_ms > previous_ms
        if not (options.verify_only and is_true):
            yield {
                "type": "timeIndexEntry",
                "timestamp": timestamp_ms,
                "offset": offset,
                "logTimestamp": found_ms,
                "isTrue": is_true,
            }
        previous_ms = timestamp_ms


# --- small files


def _producers(files: Files, file: JavaFile) -> Iterator[Line]:
    data = files.read(file.path)
    try:
        producers = decode_snapshot(data)
    except CorruptSnapshotError:
        yield _problem(corruption_text(data))
        return
    for producer in producers:
        line: Line = {
            "type": "producer",
            "producerId": producer.producer_id,
            "producerEpoch": producer.epoch,
            "coordinatorEpoch": producer.coordinator_epoch,
            "currentTxnFirstOffset": (
                producer.txn_first_offset if producer.has_open_transaction else None
            ),
            "lastTimestamp": producer.last_timestamp_ms,
        }
        if producer.batches:
            last = producer.batches[-1]
            line |= {
                "firstSequence": decrement_sequence(last.last_sequence, last.offset_delta),
                "lastSequence": last.last_sequence,
                "lastOffset": last.last_offset,
                "offsetDelta": last.offset_delta,
            }
        yield line


def _transactions(files: Files, file: JavaFile) -> Iterator[Line]:
    for version, each in transactions(files, file):
        yield {
            "type": "abortedTransaction",
            "version": version,
            "producerId": each.producer_id,
            "firstOffset": each.first_offset,
            "lastOffset": each.last_offset,
            "lastStableOffset": each.last_stable_offset,
        }
