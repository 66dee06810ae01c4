"""The time index of a segment: from which offset on to look for a timestamp.

On disk: never renumber. An entry has 12 bytes: a timestamp (int64), and an offset relative to the
segment's first (int32). It says: up to and including that offset, nothing is newer than that
timestamp. Entries ascend in both; a batch that is older than what was there adds none.

One slot stays free until the segment is closed, for then the newest timestamp of all is added.

Kafka: TimeIndex.
"""

import struct
from typing import NamedTuple

from odradek.protocol.batch_header import NO_TIMESTAMP

from .index_file import MAX_RELATIVE_OFFSET, CorruptIndexError, IndexFile


class TimestampOffset(NamedTuple):
    """The newest timestamp so far, and the last offset of the batch that has it."""

    timestamp_ms: int
    offset: int


class TimeIndex(IndexFile):
    """See the module, and IndexFile for its life."""

    entry = struct.Struct(">qi")
    key_code = "q"

    @property
    def last_entry(self) -> TimestampOffset:
        """(-1, base offset) of an empty index."""
        return self._timestamp(self._last())

    def entry_at(self, slot: int) -> TimestampOffset:
        """Raises IndexError."""
        return self._timestamp(self._slot(slot))

    def lookup(self, timestamp_ms: int) -> TimestampOffset:
        """The last entry that is not newer; (-1, base offset) where there is none."""
        return self._timestamp(self._floor(timestamp_ms))

    def maybe_append(self, timestamp_ms: int, offset: int, *, closing: bool = False) -> None:
        """Add an entry, unless the last one is as new already.

        `closing` may take the last slot, or grow an index that was trimmed. Raises ValueError:
        full, an offset or a timestamp before the last entry's, or too far from the base offset.
        """
        keys, values = self._load()
        relative_offset = offset - self.base_offset
        if not closing and len(keys) >= self.max_entries - 1:
            raise ValueError(f"{self.path} is full with {len(keys)} entries")
        if keys:
            if timestamp_ms < keys[-1] or relative_offset < values[-1]:
                last = self.last_entry
                raise ValueError(f"{self.path}: ({timestamp_ms}, {offset}) is not behind {last}")
            if timestamp_ms == keys[-1]:
                return
        if timestamp_ms == NO_TIMESTAMP:
            return
        if not 0 <= relative_offset <= MAX_RELATIVE_OFFSET:
            raise ValueError(f"{self.path}: {offset} is too far from {self.base_offset}")
        self._append(timestamp_ms, relative_offset)

    def sanity_check(self) -> None:
        """Raises CorruptIndexError. Sees only what costs two reads."""
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
