"""The time index of a segment: maps timestamps to offsets.

An entry has 12 bytes, the same as in Kafka: a timestamp (int64) and an offset relative to the
segment's base offset (int32). No record of the segment up to and including that offset is newer
than that timestamp. Entries ascend in both columns.

One slot stays free for the segment's largest timestamp, which is added when the segment is closed.

Kafka: TimeIndex.
"""

import struct
from typing import NamedTuple

from odradek.protocol.batch_header import NO_TIMESTAMP

from .index_file import MAX_RELATIVE_OFFSET, CorruptIndexError, IndexFile


class TimestampOffset(NamedTuple):
    """The largest timestamp of a segment up to `offset`, the last offset of the batch with it."""

    timestamp_ms: int
    offset: int


class TimeIndex(IndexFile):
    """See the module docstring, and IndexFile for the states of an index."""

    entry = struct.Struct(">qi")
    key_code = "q"  # the timestamps in memory have 64 bits

    @property
    def last_entry(self) -> TimestampOffset:
        """The last entry; (-1, base offset) if the index is empty."""
        return self._timestamp(self._last())

    def entry_at(self, slot: int) -> TimestampOffset:
        """The entry in that slot. Raises IndexError."""
        return self._timestamp(self._slot(slot))

    def lookup(self, timestamp_ms: int) -> TimestampOffset:
        """The last entry with at most this timestamp; (-1, base offset) if there is none."""
        return self._timestamp(self._floor(timestamp_ms))

    def maybe_append(self, timestamp_ms: int, offset: int, *, closing: bool = False) -> None:
        """Add an entry, unless the last one has this timestamp, or there is none (NO_TIMESTAMP).

        `closing`: the segment is being closed. Then the last slot may be used, and an index that
        was trimmed may be extended. Raises ValueError if the index is full, if timestamp or offset
        is before the last entry's, or if the offset is too far from the base offset.
        """
        keys, values = self._loaded or self._load()
        relative_offset = offset - self.base_offset
        if not closing and len(keys) >= self.max_entries - 1:
            raise ValueError(f"{self.path} is full with {len(keys)} entries")
        if keys:
            if timestamp_ms < keys[-1] or relative_offset < values[-1]:
                last = self.last_entry
                raise ValueError(f"{self.path}: ({timestamp_ms}, {offset}) is not after {last}")
            if timestamp_ms == keys[-1]:
                return
        if timestamp_ms == NO_TIMESTAMP:
            return
        if not 0 <= relative_offset <= MAX_RELATIVE_OFFSET:
            raise ValueError(f"{self.path}: {offset} is too far from {self.base_offset}")
        self._append(timestamp_ms, relative_offset)

    def sanity_check(self) -> None:
        """Raise CorruptIndexError if length, first or last entry is invalid. Costs two reads."""
        if self.entries:
            first, last = self.entry_at(0), self.last_entry
            if last.timestamp_ms < first.timestamp_ms:
                raise CorruptIndexError(
                    f"{self.path} begins at {first.timestamp_ms} ms, ends at {last.timestamp_ms} ms"
                )
            if last.offset < self.base_offset:
                raise CorruptIndexError(
                    f"{self.path} ends with offset {last.offset}, before {self.base_offset}"
                )
        self._check_length()

    def _timestamp(self, entry: tuple[int, int] | None) -> TimestampOffset:
        if entry is None:
            return TimestampOffset(NO_TIMESTAMP, self.base_offset)
        return TimestampOffset(entry[0], self.base_offset + entry[1])
