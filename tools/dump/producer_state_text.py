"""Prints producer snapshots and transaction indexes, as Kafka's tool does.

Kafka: DumpLogSegments.dumpProducerIdSnapshot and dumpTxnIndex, ProducerStateManager.readSnapshot.
"""

import struct

from odradek.protocol.batch_header import decrement_sequence
from odradek.protocol.crc import crc32c
from odradek.storage.files import Files
from odradek.storage.inspect.raw_message import UnreadableError
from odradek.storage.producer_entry import ProducerEntry
from odradek.storage.producer_snapshot import VERSION, CorruptSnapshotError, decode_snapshot
from odradek.storage.txn_index import AbortedTransaction, entries_of

from .java_text import JavaFile, optional_long, parse_long
from .log_text import Write

_HEAD_BYTES = 10  # version, CRC, number of entries
_PRODUCER_BYTES = 46  # one entry


def dump_producers(files: Files, file: JavaFile, write: Write, write_error: Write) -> None:
    """Print a `.snapshot` file. Raises OSError."""
    data = files.read(file.path)
    try:
        producers = decode_snapshot(data)
    except CorruptSnapshotError:
        write_error(f"{corruption_text(data)}\n")
        return
    for producer in producers:
        write(f"{_producer_line(producer)}\n")


def _producer_line(producer: ProducerEntry) -> str:
    open_since = producer.txn_first_offset if producer.has_open_transaction else None
    line = (
        f"producerId: {producer.producer_id} producerEpoch: {producer.epoch}"
        f" coordinatorEpoch: {producer.coordinator_epoch}"
        f" currentTxnFirstOffset: {optional_long(open_since)}"
        f" lastTimestamp: {producer.last_timestamp_ms}"
    )
    if not producer.batches:
        return line
    last = producer.batches[-1]
    return (
        f"{line} firstSequence: {decrement_sequence(last.last_sequence, last.offset_delta)}"
        f" lastSequence: {last.last_sequence} lastOffset: {last.last_offset}"
        f" offsetDelta: {last.offset_delta} timestamp: {last.timestamp_ms}"
    )


def corruption_text(data: bytes) -> str:
    """Kafka's error message for a snapshot that cannot be read."""
    failed = "Snapshot failed schema validation: "
    if len(data) < 2:
        return f"{failed}null"
    (version,) = struct.unpack_from(">h", data)
    if version != VERSION:
        return f"{failed}Snapshot contained an unknown file version {version}"
    if len(data) < _HEAD_BYTES:
        return f"{failed}null"
    crc, count = struct.unpack_from(">Ii", data, 2)
    left = len(data) - _HEAD_BYTES
    if count < 0:
        return f"{failed}non-nullable field producerEntries was serialized as null"
    if count > left:
        return (
            f"{failed}Tried to allocate a collection of size {count}, but there are only {left} "
            "bytes remaining."
        )
    if count * _PRODUCER_BYTES > left:
        return f"{failed}null"
    computed = crc32c(memoryview(data)[6:])
    return (
        f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {crc}. Computed crc: {computed}"
    )


def dump_transactions(files: Files, file: JavaFile, write: Write) -> None:
    """Print a `.txnindex` file. A missing file counts as empty. Raises OSError, UnreadableError."""
    for version, each in transactions(files, file):
        write(
            f"version: {version} producerId: {each.producer_id} firstOffset: {each.first_offset}"
            f" lastOffset: {each.last_offset} lastStableOffset: {each.last_stable_offset}\n"
        )


def transactions(files: Files, file: JavaFile) -> list[tuple[int, AbortedTransaction]]:
    """The aborted transactions, each with its version, which is at most 0.

    Raises OSError, UnreadableError.
    """
    parse_long(file.stem)
    data = files.read(file.path) if files.exists(file.path) else b""
    listed = list(entries_of(data))
    for version, _ in listed:
        if version > 0:
            raise UnreadableError(f"version {version} of an aborted transaction is not known")
    return listed
