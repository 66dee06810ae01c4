"""Checks that the bytes of a snapshot of the metadata log are whole: they are split into batches.

A snapshot begins with a control batch whose first record is the header, and has a footer. The magic
of a batch is not under its CRC. Kafka: RecordsSnapshotReader.
"""

from collections.abc import Iterable, Iterator

from odradek.protocol.batch_header import MAGIC_V2, CorruptRecordError, check_crc, read_header
from odradek.protocol.record import Record, read_records
from odradek.protocol.records.control import ControlRecordType, control_type
from odradek.protocol.schema import DecodeError


def snapshot_batches(data: bytes) -> list[memoryview]:
    """The batches in the bytes of a snapshot file.

    Raises CorruptRecordError if one is damaged, or if the header or the footer is missing.
    """
    view = memoryview(data)
    batches: list[memoryview] = []
    position = 0
    try:
        while position < len(view):
            batch = _batch_at(view, position)
            batches.append(batch)
            position += len(batch)
        first, *others = [kind for kind, _ in control_records(batches)] or [None]
    except (CorruptRecordError, DecodeError) as error:
        raise CorruptRecordError(f"byte {position}: {error}") from error
    if first is not ControlRecordType.SNAPSHOT_HEADER or not read_header(batches[0]).is_control:
        raise CorruptRecordError("its header is missing")
    if ControlRecordType.SNAPSHOT_FOOTER not in others:
        raise CorruptRecordError("its footer is missing")
    return batches


def _batch_at(data: memoryview, position: int) -> memoryview:
    header = read_header(data, position)
    if header.magic != MAGIC_V2:
        raise CorruptRecordError(f"a batch of magic {header.magic}")
    batch = data[position : position + header.size_bytes]
    if len(batch) < header.size_bytes or header.batch_length <= 0:
        raise CorruptRecordError(f"a batch of {header.size_bytes} bytes is cut short")
    check_crc(batch, header)
    return batch


def control_records(
    batches: Iterable[memoryview],
) -> Iterator[tuple[ControlRecordType | None, Record]]:
    """Iterate over the control records of batches, with their types; None for an unknown type."""
    for batch in batches:
        header = read_header(batch)
        if header.is_control:
            for record in read_records(batch, header=header):
                yield control_type(record.key), record
