"""Sorted entries of fixed size in a file: the common part of a segment's two indexes.

An index is active or closed, like its segment:

- *active*: after `create`, or `become_active` for an existing file. The file has its full size, as
  Kafka preallocates it; the unused part is a hole. The entries are in memory, in two arrays, and a
  lookup is one bisect. New entries are written by pwrite now and then, and when the index is
  flushed or trimmed. So an append to the log cannot fail half way because of its index, and an
  idle index holds no descriptor. (Kafka writes through a memory mapping. There a full disk would
  raise SIGBUS, which ends the process.)
- *closed*: `trim` truncates the file to its entries and drops them from memory. The first lookup
  opens the file, which stays open until `release`. A lookup halves the range by preads until it
  fits a block, and bisects that block. The block is kept, because readers go on: the next lookup
  is often in it or in the one after it.

Only the length of an existing file says how many entries it has. After a crash the last entries of
an active index are the zeros of the hole. They are never read, because the indexes of every segment
that was not flushed are rebuilt (`reset`, then append again), in Kafka too. Entries of a flushed
segment are trusted unless `sanity_check` finds them invalid: it also finds the zeros that an index
has kept.

Kafka: AbstractIndex.
"""

import struct
from array import array
from bisect import bisect_right
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

from .files import Files, OpenFile

MAX_RELATIVE_OFFSET = 0x7FFFFFFF
BLOCK_BYTES = 4096


class CorruptIndexError(Exception):
    """An index with impossible entries: rebuild it from the segment."""


class _Entries(NamedTuple):
    """The entries of an index in memory, as two columns."""

    keys: "array[int]"
    values: "array[int]"


class _Block(NamedTuple):
    """Entries of a closed index as they are in the file: slots `start` to `stop` (exclusive)."""

    start: int
    stop: int
    data: bytes
    entry: struct.Struct

    def value(self, slot: int, column: int) -> int:
        value: int = self.entry.unpack_from(self.data, (slot - self.start) * self.entry.size)[
            column
        ]
        return value

    def floor(self, key: int, column: int) -> tuple[int, int] | None:
        """The last entry of the block that is at most `key` in that column."""
        slots = range(self.start, self.stop)
        index = bisect_right(slots, key, key=lambda slot: self.value(slot, column)) - 1
        if index < 0:
            return None
        first, second = self.entry.unpack_from(self.data, index * self.entry.size)
        return first, second


class IndexFile:
    """Entries (key, value), both ascending, in a file; OffsetIndex and TimeIndex define them.

    Errors are OSError.
    """

    entry: ClassVar[struct.Struct]
    key_code: ClassVar[str]  # array codes of the two columns: 'i' is 32 bits, 'q' 64
    value_code: ClassVar[str] = "i"

    def __init__(self, files: Files, path: Path, base_offset: int, max_bytes: int) -> None:
        """An index whose file may not exist yet. The file is opened when it is first used."""
        self.path = path
        self.base_offset = base_offset
        self._files = files
        self._max_bytes = max_bytes
        self._loaded: _Entries | None = None
        self._written = 0  # how many of the loaded entries are in the file
        self._file: OpenFile | None = None  # of a closed index, after its first read
        self._length: int | None = None  # of the file in bytes; None: not known yet
        self._tail: tuple[int, int] | None = None  # the last entry of a closed index, once read
        self._block: _Block | None = None  # of a closed index, where the last lookup ended
        self._is_changed = True  # the file may differ from its last sync

    @classmethod
    def create(cls, files: Files, path: Path, base_offset: int, max_bytes: int) -> Self:
        """Create an empty active index, replacing an existing file."""
        index = cls(files, path, base_offset, max_bytes)
        index.reset()
        return index

    # --- size

    @property
    def entries(self) -> int:
        """The number of entries. Raises FileNotFoundError."""
        if self._loaded is not None:
            return len(self._loaded.keys)
        return self.file_bytes // self.entry.size

    @property
    def file_bytes(self) -> int:
        """The length of the file, including the unused part of an active index."""
        if self._length is None:
            self._length = self._open().append_position
        return self._length

    @property
    def max_entries(self) -> int:
        """The number of entries that fit into the file."""
        length = self._length
        return (self.file_bytes if length is None else length) // self.entry.size

    @property
    def size_bytes(self) -> int:
        """The size of the entries."""
        return self.entries * self.entry.size

    # --- states

    def become_active(self) -> None:
        """Load the entries and extend the file to its full size, to append to it."""
        self._load()  # they may be more than fit, if segment.index.bytes was lowered
        self._resize(self._open(), max(self._full_bytes(), self.size_bytes))

    def trim(self) -> None:
        """Truncate the file to its entries and release memory and descriptor."""
        if self._loaded is not None:
            self._resize(self.write_out(), self.size_bytes)
        self.release()

    def release(self) -> None:
        """Release memory and descriptor; the file does not change."""
        self._loaded = self._file = self._length = self._tail = self._block = None

    def use_copies_in(self, directory: Path) -> None:
        """Use the copy of the file in that directory from now on."""
        self.path = directory / self.path.name
        self._file = None

    def reset(self) -> None:
        """Drop all entries, in memory and on disk, and become active, for a rebuild."""
        self._file = None
        file = self._files.open(self.path, create=True)
        self._is_changed = True
        self._loaded = _Entries(array(self.key_code), array(self.value_code))
        self._written = 0
        self._files.truncate(file, 0)
        self._resize(file, self._full_bytes())

    def write_out(self) -> OpenFile:
        """Write the entries that are only in memory; return the file, to be synced."""
        file = self._open()
        if self._loaded is not None and self._written < len(self._loaded.keys):
            new = zip(
                self._loaded.keys[self._written :],
                self._loaded.values[self._written :],
                strict=True,
            )
            data = b"".join(self.entry.pack(key, value) for key, value in new)
            self._is_changed = True
            self._files.pwrite(file, data, self._written * self.entry.size)
            self._written = len(self._loaded.keys)
        return file

    @property
    def is_unsynced(self) -> bool:
        """Whether a power cut could lose a part of it."""
        return self._is_changed or (
            self._loaded is not None and self._written < len(self._loaded.keys)
        )

    def note_sync(self) -> None:
        """Record that the content of the file is being synced."""
        self._is_changed = False

    # --- for the subclasses

    def _append(self, key: int, value: int) -> None:
        """Add an entry at the end. Raises ValueError if it does not fit into its column."""
        keys, values = self._loaded or self._load()
        try:
            keys.append(key)
            values.append(value)
        except OverflowError:
            del keys[len(values) :]
            raise ValueError(f"{self.path}: no entry can hold ({key}, {value})") from None

    def _slot(self, slot: int) -> tuple[int, int]:
        """The entry in `slot`. Raises IndexError after the last."""
        if not 0 <= slot < self.entries:
            raise IndexError(f"{self.path} has {self.entries} entries, none at {slot}")
        if self._loaded is not None:
            return self._loaded.keys[slot], self._loaded.values[slot]
        (entry,) = self._read(self._open(), slot, slot + 1)
        return entry

    def _last(self) -> tuple[int, int] | None:
        entries = self.entries
        if self._loaded is not None or not entries:
            return self._slot(entries - 1) if entries else None
        if self._tail is None:
            self._tail = self._slot(entries - 1)
        return self._tail

    def _floor(self, key: int, column: int = 0) -> tuple[int, int] | None:
        """The last entry whose key (or, in column 1, value) is at most `key`."""
        if self._loaded is not None:
            slot = bisect_right(self._loaded[column], key) - 1
            return self._slot(slot) if slot >= 0 else None
        if self._tail is not None and self._tail[column] <= key:
            return self._tail
        return self._floor_on_disk(key, column)

    def _floor_on_disk(self, key: int, column: int) -> tuple[int, int] | None:
        entries = self.entries
        if not entries:
            return None
        block = self._block
        if block is None or not self._is_in(block, key, column):
            low = 0
            if block is not None and block.value(block.stop - 1, column) <= key:
                low = block.stop - 1
                block = self._read_block(low)
            if block is None or not self._is_in(block, key, column):
                block = self._search(low, entries, key, column)
            self._block = block
        return block.floor(key, column)

    def _is_in(self, block: _Block, key: int, column: int) -> bool:
        """Whether the floor of `key` is in that block."""
        return (block.start == 0 or block.value(block.start, column) <= key) and (
            block.stop == self.entries or key < block.value(block.stop - 1, column)
        )

    def _search(self, low: int, high: int, key: int, column: int) -> _Block:
        """The block with the floor of `key`, which is in [low, high) if there is one."""
        file = self._open()
        while high - low > self._block_entries:
            middle = (low + high) // 2
            if self._read(file, middle, middle + 1)[0][column] <= key:
                low = middle
            else:
                high = middle
        return self._read_block(low)

    @property
    def _block_entries(self) -> int:
        return BLOCK_BYTES // self.entry.size

    def _read_block(self, start: int) -> _Block:
        """As many entries from slot `start` on as fit into a block."""
        stop = min(start + self._block_entries, self.entries)
        size = self.entry.size
        data = self._files.pread_exact(self._open(), (stop - start) * size, start * size)
        return _Block(start, stop, data, self.entry)

    def _load(self) -> _Entries:
        if self._loaded is None:
            entries = self._read(self._open(), 0, self.max_entries)
            self._loaded = _Entries(
                array(self.key_code, [key for key, _ in entries]),
                array(self.value_code, [value for _, value in entries]),
            )
            self._written = len(entries)
            self._file = None
        return self._loaded

    def _read(self, file: OpenFile, start: int, stop: int) -> list[tuple[int, int]]:
        size = self.entry.size
        data = self._files.pread_exact(file, (stop - start) * size, start * size)
        return list(self.entry.iter_unpack(data))

    def _open(self) -> OpenFile:
        if self._file is not None:
            return self._file
        file = self._files.open(self.path)
        if self._loaded is None:
            self._file = file
            self._files.opened_by_segments += 1
        return file

    def _full_bytes(self) -> int:
        return self._max_bytes // self.entry.size * self.entry.size

    def _resize(self, file: OpenFile, size: int) -> None:
        self._is_changed = True
        self._files.preallocate(file, size)
        self._length, self._tail, self._block = size, None, None

    def _check_length(self) -> None:
        if self.file_bytes % self.entry.size:
            raise CorruptIndexError(
                f"{self.path} has {self.file_bytes} bytes, no multiple of {self.entry.size}"
            )
