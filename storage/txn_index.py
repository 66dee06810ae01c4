"""The aborted transactions of one segment, by the offset of their markers.

On disk, 34 bytes each: version int16 (0), producer id, first offset, last offset (the marker's),
and the last stable offset when the marker was written, int64 each. Entries come in the order of
their last offsets. Most segments have none, and then no file. Kafka: TransactionIndex, AbortedTxn.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
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


def write_aborted(
    files: Files, path: Path, transactions: Sequence[AbortedTransaction], written: int
) -> None:
    """Put those behind the first `written`, which are in the file already, into it as well."""
    if len(transactions) > written:
        data = b"".join(_ENTRY.pack(_VERSION, *each) for each in transactions[written:])
        files.pwrite(files.open(path, create=True), data, written * _ENTRY.size)


def rewrite_aborted(files: Files, path: Path, transactions: Iterable[AbortedTransaction]) -> None:
    """Replace the file by these; without any there is none."""
    data = b"".join(_ENTRY.pack(_VERSION, *each) for each in transactions)
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
