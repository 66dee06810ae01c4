"""Partition directories as brokers of Kafka 0.8 to 0.10 left them, and newer ones went on in them.

`aged_entries` makes what such a log holds: messages of magic 0, then of magic 1, single ones and
wrappers of every codec, then v2 batches. `lay_down` writes entries as a segment's file, without an
index: what lies there without one has it made.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from odradek.protocol.batch_header import read_header
from odradek.protocol.compression import CompressionType
from odradek.protocol.record import Record, read_records
from odradek.protocol.record_batch import build_batch
from odradek.storage.log import PartitionLog
from tests.support.log_box import NOW_MS, read_slice
from tests.support.message_sets import (
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    OVERHEAD,
    SNAPPY,
    flat,
    message,
    wrapper,
)

MAGIC_AT = 16


class OldEntry(NamedTuple):
    """One batch, message or wrapper, with the records in it."""

    data: bytes
    records: list[Record]

    @property
    def base_offset(self) -> int:
        return self.records[0].offset

    @property
    def next_offset(self) -> int:
        return self.records[-1].offset + 1


def single(offset: int, magic: int, at_ms: int, value: bytes | None = b"v") -> OldEntry:
    """A message by itself."""
    key = b"key-%d" % (offset % 5)
    data = message(value, key, magic=magic, offset=offset, timestamp_ms=at_ms)
    return OldEntry(data, [Record(key, value, at_ms if magic else -1, (), offset)])


def wrapped(
    offsets: Sequence[int], magic: int, codec: int, at_ms: int, *, append_time: bool = False
) -> OldEntry:
    """A wrapper; its messages have times that go up and down, the newest `at_ms` (+ 0 to 3)."""
    inside, records = [], []
    times = [at_ms + offset % 4 for offset in offsets]
    for offset, time_ms in zip(offsets, times, strict=True):
        key, value = b"key-%d" % (offset % 5), b"value-%d" % offset * (offset % 6)
        inner = offset - offsets[0] if magic else offset
        inside.append(message(value, key, magic=magic, offset=inner, timestamp_ms=time_ms))
        read_ms = (max(times) if append_time else time_ms) if magic else -1
        records.append(Record(key, value, read_ms, (), offset))
    data = wrapper(
        b"".join(inside),
        codec,
        magic=magic,
        offset=offsets[-1],
        timestamp_ms=max(times),
        attributes=LOG_APPEND_TIME if append_time else 0,
    )
    return OldEntry(data, records)


def modern(offset: int, count: int, at_ms: int) -> OldEntry:
    """A v2 batch of leader epoch 0."""
    records = [
        Record(b"key-%d" % (each % 5), b"new-%d" % each, at_ms + each % 3, (), each)
        for each in range(offset, offset + count)
    ]
    data = build_batch(
        records,
        base_offset=offset,
        compression=CompressionType.LZ4 if count > 2 else CompressionType.NONE,
    )
    return OldEntry(bytes(data), records)


def aged_entries(start: int = 0, *, at_ms: int = NOW_MS - 100_000) -> list[OldEntry]:
    """Every kind, oldest format first; offsets from `start` on with a few gaps, later and later."""
    entries: list[OldEntry] = []
    offset = start
    for magic in (0, 1):
        for codec in (GZIP, SNAPPY, LZ4):
            entries.append(single(offset, magic, at_ms, None if codec == LZ4 else b"value"))
            entries.append(single(offset + 1, magic, at_ms + 7, b""))
            inside = [offset + 2 + each for each in range(6) if each != codec]
            entries.append(wrapped(inside, magic, codec, at_ms + 11))
            at_ms += 100
            offset += 9  # one is missing
    entries.append(wrapped(range(offset, offset + 3), 1, GZIP, at_ms, append_time=True))
    entries.append(modern(offset + 3, 1, at_ms + 100))
    entries.append(modern(offset + 4, 4, at_ms + 200))
    return entries


def records_of(entries: Iterable[OldEntry]) -> list[Record]:
    """All their records."""
    return [record for entry in entries for record in entry.records]


def lay_down(directory: Path, *segments: Sequence[OldEntry]) -> None:
    """Segments in a partition's directory, each named by its first offset."""
    directory.mkdir(parents=True, exist_ok=True)
    for entries in segments:
        path = directory / f"{entries[0].base_offset:020d}.log"
        path.write_bytes(b"".join(entry.data for entry in entries))


def entries_in(data: bytes) -> list[list[Record]]:
    """The records of each batch, message or wrapper in what a Fetch got: none may be cut."""
    found = []
    while data:
        size = OVERHEAD + int.from_bytes(data[8:OVERHEAD], "big")
        assert len(data) >= size, "it is cut"
        one, data = data[:size], data[size:]
        if one[MAGIC_AT] == 2:
            assert read_header(one).size_bytes == size
            found.append(list(read_records(one)))
        else:
            found.append([Record(e.key, e.value, e.timestamp_ms, (), e.offset) for e in flat(one)])
    return found


def all_records(log: PartitionLog, offset: int, max_bytes: int = 1 << 20) -> list[Record]:
    """The records from `offset` on, as a consumer fetches them that reads every format."""
    records: list[Record] = []
    while entries := entries_in(read_slice(log, offset, max_bytes)):
        first = entries[0]
        assert first[-1].offset >= offset, "the slice begins too early"
        records += [each for entry in entries for each in entry if each.offset >= offset]
        offset = entries[-1][-1].offset + 1
    assert offset == log.log_end_offset
    return records
