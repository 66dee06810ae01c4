"""The aborted transactions of one segment, by the offset of their markers.

On disk, an entry has 34 bytes: version int16 (0), producer id, first offset, last offset (the
marker's), and the last stable offset when the marker was written, int64 each. Entries are sorted by
last offset. A segment without entries has no file. Kafka: TransactionIndex, AbortedTxn.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from .files import Files

_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0
ENTRY_BYTES = _ENTRY.size


class AbortedTransaction(NamedTuple):
    """A transaction whose records a read_committed consumer must drop."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TxnIndex:
    """The index of one segment. Its entries are loaded when they are first used.

    `path` may be assigned when the file is renamed. Errors are OSError.
    """

    __slots__ = ("_files", "_loaded", "_written", "path")

    def __init__(self, files: Files, path: Path, *, is_new: bool = False) -> None:
        """The file is opened when it is first used. `is_new`: there is none, and no entries."""
        self.path = path
        self._files = files
        self._loaded: list[AbortedTransaction] | None = [] if is_new else None
        self._written = 0  # how many of the loaded entries are in the file

    def entries(self) -> Sequence[AbortedTransaction]:
        """All entries, loaded if necessary."""
        return self._load()

    def append(self, transaction: AbortedTransaction) -> None:
        """Add an entry at the end. If it cannot be written now, `write_out` tries again."""
        self._load().append(transaction)
        with suppress(OSError):
            self.write_out()

    def write_out(self) -> None:
        """Write the entries that are only in memory. Raises OSError."""
        if self._loaded is not None and len(self._loaded) > self._written:
            data = _packed(self._loaded[self._written :])
            file = self._files.open(self.path, create=True)
            self._files.pwrite(file, data, self._written * ENTRY_BYTES)
            self._written = len(self._loaded)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries whose markers are at `offset` or later."""
        kept = [each for each in self._load() if each.last_offset < offset]
        if kept != self._loaded:
            rewrite_aborted(self._files, self.path, kept)
            self._loaded, self._written = kept, len(kept)

    def _load(self) -> list[AbortedTransaction]:
        if self._loaded is None:
            self._loaded = read_aborted(self._files, self.path)
            self._written = len(self._loaded)
        return self._loaded


def rewrite_aborted(files: Files, path: Path, transactions: Iterable[AbortedTransaction]) -> None:
    """Replace the content of the file; without entries, remove the file."""
    data = _packed(transactions)
    if data:
        files.atomic_write(path, data)
    else:
        files.remove(path)


def read_aborted(files: Files, path: Path) -> list[AbortedTransaction]:
    """Read the file of one segment; an incomplete entry at the end is ignored."""
    if not files.exists(path):
        return []
    return [transaction for _, transaction in entries_of(files.read(path))]


def entries_of(data: bytes) -> Iterator[tuple[int, AbortedTransaction]]:
    """Version and content of every complete entry."""
    whole = data[: len(data) - len(data) % ENTRY_BYTES]
    for version, *fields in _ENTRY.iter_unpack(whole):
        yield version, AbortedTransaction(*fields)


def _packed(transactions: Iterable[AbortedTransaction]) -> bytes:
    return b"".join(_ENTRY.pack(_VERSION, *each) for each in transactions)
