"""Whether a segment's transaction index names the transactions that were aborted in it.

A read_committed consumer learns from it which records to drop. What a marker ended is known where
the transaction began in the log as it is now; of one whose records were deleted or cleaned away
there may be an entry, and need not be.
"""

from pathlib import Path

from odradek.protocol.records.control import ControlRecordType, control_type
from odradek.protocol.schema import DecodeError
from odradek.storage.files import Files
from odradek.storage.raw_message import UnreadableError
from odradek.storage.raw_scan import RawBatch
from odradek.storage.txn_index import ENTRY_BYTES, AbortedTransaction, read_aborted

from .findings import Findings, Tally

_MADE_ANEW = "it is made anew after an unclean stop; after a clean one it is believed"


class OpenTransactions:
    """Of a whole log: producer id -> the first offset of its open transaction."""

    def __init__(self) -> None:
        self.first_offsets: dict[int, int] = {}


class TransactionWatch:
    """The transaction index of one segment."""

    def __init__(
        self, files: Files, path: Path, open_: OpenTransactions, findings: Findings
    ) -> None:
        self._files = files
        self._path = path
        self._open = open_.first_offsets
        self._findings = findings
        self._aborted: list[tuple[int, int, int]] = []  # producer, first and last offset
        self._markers: set[int] = set()  # offsets of abort markers
        self._end_offset = 0

    def see(self, batch: RawBatch) -> None:
        """The next batch of the segment."""
        self._end_offset = batch.last_offset + 1
        if batch.is_message:
            return
        header = batch.header
        if header.is_control and header.producer_id >= 0:
            self._see_marker(batch)
        elif header.is_transactional and header.producer_id >= 0:
            self._open.setdefault(header.producer_id, batch.offset)

    def _see_marker(self, batch: RawBatch) -> None:
        try:
            for record in batch.records():
                first = self._open.pop(batch.header.producer_id, None)
                if control_type(record.key) is ControlRecordType.ABORT:
                    self._markers.add(record.offset)
                    if first is not None:
                        self._aborted.append((batch.header.producer_id, first, record.offset))
        except (UnreadableError, DecodeError) as error:
            what = f"the marker at offset {batch.offset} cannot be read: {error}"
            self._findings.problem(self._path.with_suffix(".log"), what)

    def end(self, base_offset: int) -> None:
        """All batches of the segment went by."""
        entries = read_aborted(self._files, self._path)
        if entries and self._files.size(self._path) % ENTRY_BYTES:
            self._findings.note(self._path, "a torn entry at its end", "it is not looked at")
        wrong = Tally()
        self._check_entries(entries, base_offset, wrong)
        by_end = {(entry.producer_id, entry.last_offset): entry for entry in entries}
        for producer_id, first, last in self._aborted:
            found = by_end.get((producer_id, last))
            if found is None or found.first_offset > first:
                wrong.add(
                    f"the transaction of producer {producer_id} from {first} to {last} was aborted "
                    "and is not in it"
                )
        if wrong.count:
            self._findings.problem(self._path, str(wrong), _MADE_ANEW)

    def _check_entries(
        self, entries: list[AbortedTransaction], base_offset: int, wrong: Tally
    ) -> None:
        previous = -1
        for entry in entries:
            last = entry.last_offset
            if last <= previous:
                wrong.add(f"entries do not ascend: {last} follows {previous}")
            elif not base_offset <= last < max(self._end_offset, base_offset):
                wrong.add(f"offset {last} lies outside the segment")
            elif entry.first_offset > last:
                wrong.add(f"a transaction from {entry.first_offset} to {last}")
            previous = last
