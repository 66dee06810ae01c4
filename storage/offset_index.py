"""The offset index of a segment: which byte of the log to look at for an offset.

On disk: never renumber. An entry has 8 bytes: the offset relative to the segment's first (int32),
and the position in the .log file (int32). There is one about every `index.interval.bytes`: the last
offset of a batch, and where that batch begins. A reader starts at the entry at or before what it
looks for, and walks batch headers from there.

Kafka: OffsetIndex.
"""

import struct
from typing import NamedTuple

from .index_file import MAX_RELATIVE_OFFSET, CorruptIndexError, IndexFile


class OffsetPosition(NamedTuple):
    """A batch in the log that reaches up to `offset` begins at byte `position`."""

    offset: int
    position: int


class OffsetIndex(IndexFile):
    """See the module, and IndexFile for its life."""

    entry = struct.Struct(">ii")
    key_code = "i"

    @property
    def last_offset(self) -> int:
        """Of the last entry; the base offset of an empty index."""
        last = self._last()
        return self.base_offset + last[0] if last else self.base_offset

    def lookup(self, offset: int) -> OffsetPosition:
        """The last entry at or before `offset`; (base offset, 0) where there is none."""
        return self._position(self._floor(offset - self.base_offset))

    def before_position(self, position: int) -> OffsetPosition:
        """The last entry whose batch begins at or before `position`; else (base offset, 0)."""
        return self._position(self._floor(position, column=1))

    def append(self, offset: int, position: int) -> None:
        """Raises ValueError: full, not behind the last entry, or too far from the base offset."""
        keys = self._load().keys
        relative_offset = offset - self.base_offset
        if len(keys) >= self.max_entries:
            raise ValueError(f"{self.path} is full with {len(keys)} entries")
        if keys and relative_offset <= keys[-1]:
            raise ValueError(f"{self.path}: {offset} is not behind {self.last_offset}")
        if not 0 <= relative_offset <= MAX_RELATIVE_OFFSET:
            raise ValueError(f"{self.path}: {offset} is too far from {self.base_offset}")
        self._append(relative_offset, position)

    def sanity_check(self) -> None:
        """Raises CorruptIndexError. Sees only what costs one read."""
        if self.entries and self.last_offset < self.base_offset:
            raise CorruptIndexError(
                f"{self.path} ends with offset {self.last_offset}, before {self.base_offset}"
            )
        self._check_length()

    def _position(self, entry: tuple[int, int] | None) -> OffsetPosition:
        if entry is None:
            return OffsetPosition(self.base_offset, 0)
        return OffsetPosition(self.base_offset + entry[0], entry[1])
