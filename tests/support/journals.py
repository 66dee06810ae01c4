"""What lies in the log of a coordinator, and a way to lay something there."""

from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import CoordinatorRecordCodec
from odradek.protocol.record import Record, read_records
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.consumer_offsets import RECORD_TYPES
from odradek.protocol.schema import Message
from odradek.storage.log import AppendOrigin
from tests.support.memory_log import MemoryLog

CODEC = CoordinatorRecordCodec(RECORD_TYPES)


def append_records(log: MemoryLog, key: Message, value: Message | None) -> None:
    """One record, as another broker might have written it."""
    encoded = CODEC.encode(JournalRecord(value, 0, key))
    batch = build_batch([Record(*encoded, 0)])
    log.append(bytes(batch), now_ms=0, origin=AppendOrigin.COORDINATOR)


def records_since(log: MemoryLog, offset: int) -> list[JournalRecord]:
    """The records of a log of `__consumer_offsets` from an offset on."""
    found = []
    for batch in log.batches(offset):
        for stored in read_records(batch):
            record = CODEC.decode(stored.key, stored.value)
            assert record is not None
            if stored.offset >= offset:
                found.append(record)
    return found


def keys_since(log: MemoryLog, offset: int) -> list[type[Message]]:
    """The kinds of those records."""
    return [type(record.key) for record in records_since(log, offset) if record.key is not None]
