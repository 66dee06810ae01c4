"""Finds the open transactions of a partition at an offset, in its producer snapshots."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from odradek.storage.filenames import FileKind, live_offsets, segment_file
from odradek.storage.files import Files
from odradek.storage.producer_snapshot import CorruptSnapshotError, decode_snapshot

_logger = logging.getLogger(__name__)

FirstOffsets = Mapping[int, int]  # of the open transactions, by producer id


class OpenTransactions(NamedTuple):
    """The transactions that are open after the records before `offset`."""

    offset: int
    first_offsets: FirstOffsets

    @property
    def last_stable_offset(self) -> int:
        """Where the oldest one begins; `offset` if none is open."""
        return min([self.offset, *self.first_offsets.values()])


NONE_OPEN = OpenTransactions(0, {})


def newest_open_transactions(files: Files, directory: Path, end: int) -> OpenTransactions:
    """Return those of the newest readable snapshot up to `end`; offset 0 without one."""
    offsets = live_offsets(files.list_directory(directory), FileKind.PRODUCER_SNAPSHOT)
    for offset in sorted(offsets, reverse=True):
        if offset <= end:
            first_offsets = _read(files, directory, offset)
            if first_offsets is not None:
                return OpenTransactions(offset, first_offsets)
    return NONE_OPEN


def open_transactions_at(files: Files, directory: Path, offset: int) -> FirstOffsets:
    """Return those of the snapshot at this offset; none if it is missing or damaged."""
    return _read(files, directory, offset) or {}


def _read(files: Files, directory: Path, offset: int) -> FirstOffsets | None:
    path = directory / segment_file(offset, FileKind.PRODUCER_SNAPSHOT)
    try:
        producers = decode_snapshot(files.read(path))
    except FileNotFoundError:
        return None
    except CorruptSnapshotError as error:
        _logger.warning("%s is ignored: %s", path, error)
        return None
    return {
        each.producer_id: each.txn_first_offset for each in producers if each.has_open_transaction
    }
