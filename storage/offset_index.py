"""The offset index of a segment: maps offsets to positions in the .log file.

On disk: never renumber. An entry has 8 bytes: an offset relative to the segment's base offset
(int32) and a position in the .log file (int32). There is one entry about every
`index.interval.bytes`: the last offset of a batch, and the position where that batch begins. A
lookup takes the last entry at or before an offset and reads batch headers from that position on.

Kafka: OffsetIndex.
"""

import struct
from typing import NamedTuple

from .index_file import MAX_RELATIVE_OFFSET, CorruptIndexError, IndexFile


class OffsetPosition(NamedTuple):
    """The batch whose last offset is `offset` begins at byte `position`."""

    offset: int
    position: int


class OffsetIndex(IndexFile):
    """See the module docstring, and IndexFile for the states of an index."""

    entry = struct.Struct(">ii")
    key_code = "i"

    @property
    def last_offset(self) -> int:
        """The offset of the last entry; the base offset if the index is empty."""
        last = self._last()
        return self.base_offset + last[0] if last else self.base_offset

    def lookup(self, offset: int) -> OffsetPosition:
        """The last entry at or before `offset`; (base offset, 0) if there is none."""
        return self._position(self._floor(offset - self.base_offset))

    def before_position(self, position: int) -> OffsetPosition:
        """The last entry at or before `position`; (base offset, 0) if there is none."""
        return self._position(self._floor(position, column=1))

    def append(self, offset: int, position: int) -> None:
        """Add an entry. Raises ValueError: full, not after the last, too far from the base."""
        keys, _ = self._loaded or self._load()
        relative_offset = offset - self.base_offset
        if len(keys) >= self.max_entries:
            raise ValueError(f"{self.path} is full with {len(keys)} entries")
        if keys and relative_offset <= keys[-1]:
            raise ValueError(f"{self.path}: {offset} is not after {self.last_offset}")
        if not 0 <= relative_offset <= MAX_RELATIVE_OFFSET:
            raise ValueError(f"{self.path}: {offset} is too far from {self.base_offset}")
        self._append(relative_offset, position)

    def sanity_check(self) -> None:
        """Raise CorruptIndexError if the length or the last entry is invalid. Costs one read.

        No entry is for the first batch, here and in Kafka, because there is one after so many bytes
        of the segment. Position 0 at the end is that of the unused part of an active index, which a
        failed write or a power cut may leave.
        """
        self._check_length()
        last = self._last()
        if last is not None and last[0] < 0:
            raise CorruptIndexError(
                f"{self.path} ends with offset {self.last_offset}, before {self.base_offset}"
            )
        if last is not None and last[1] <= 0:
            raise CorruptIndexError(f"{self.path} ends with position {last[1]}")

    def _position(self, entry: tuple[int, int] | None) -> OffsetPosition:
        if entry is None:
            return OffsetPosition(self.base_offset, 0)
        return OffsetPosition(self.base_offset + entry[0], entry[1])
