"""The aborted transactions of one segment, by the offset of their markers.

On disk, 34 bytes each: version int16 (0), producer id, first offset, last offset (the marker's),
and the last stable offset when the marker was written, int64 each. Entries come in the order of
their last offsets. Most segments have none, and then no file. Kafka: TransactionIndex, AbortedTxn.
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
    """The index of one segment: in memory once it is asked for, and its file.

    `path` may be assigned when the file is renamed. Errors are OSError.
    """

    __slots__ = ("_files", "_loaded", "_written", "path")

    def __init__(self, files: Files, path: Path) -> None:
        """The file is not touched before it is used."""
        self.path = path
        self._files = files
        self._loaded: list[AbortedTransaction] | None = None
        self._written = 0  # of the loaded ones: how many are in the file

    def entries(self) -> Sequence[AbortedTransaction]:
        """All of them."""
        return self._load()

    def append(self, transaction: AbortedTransaction) -> None:
        """One behind the last. What cannot be written now, `write_out` writes, or that fails."""
        self._load().append(transaction)
        with suppress(OSError):
            self.write_out()

    def write_out(self) -> None:
        """Put those that are only in memory into the file."""
        if self._loaded is not None and len(self._loaded) > self._written:
            data = _packed(self._loaded[self._written :])
            file = self._files.open(self.path, create=True)
            self._files.pwrite(file, data, self._written * ENTRY_BYTES)
            self._written = len(self._loaded)

    def truncate_to(self, offset: int) -> None:
        """Drop those whose markers lie at `offset` or behind it."""
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
    """Replace the file by these; without any there is none."""
    data = _packed(transactions)
    if data:
        files.write(path, data)
    else:
        files.remove(path)


def read_aborted(files: Files, path: Path) -> list[AbortedTransaction]:
    """All of one segment; a torn entry at the end is left out."""
    if not files.exists(path):
        return []
    return [transaction for _, transaction in entries_of(files.read(path))]


def entries_of(data: bytes) -> Iterator[tuple[int, AbortedTransaction]]:
    """Version and content of every whole entry."""
    whole = data[: len(data) - len(data) % ENTRY_BYTES]
    for version, *fields in _ENTRY.iter_unpack(whole):
        yield version, AbortedTransaction(*fields)


def _packed(transactions: Iterable[AbortedTransaction]) -> bytes:
    return b"".join(_ENTRY.pack(_VERSION, *each) for each in transactions)
