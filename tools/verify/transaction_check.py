"""Checks that a segment's transaction index lists the transactions that were aborted in it.

A read_committed consumer gets from this index which records to drop. The first offset of an aborted
transaction is known only if its records are still in the log. If they were deleted or cleaned away,
the index may have an entry for the transaction or not.
"""

from pathlib import Path

from odradek.protocol.records.control import ControlRecordType, control_type
from odradek.protocol.schema import DecodeError
from odradek.storage.files import Files
from odradek.storage.inspect.raw_batch import RawBatch
from odradek.storage.inspect.raw_message import UnreadableError
from odradek.storage.txn_index import ENTRY_BYTES, AbortedTransaction, read_aborted

from .findings import Findings, Tally

_REBUILT = "it is rebuilt after an unclean stop; after a clean stop it is used as it is"


class OpenTransactions:
    """The open transactions of a log: producer id -> first offset of its transaction."""

    def __init__(self) -> None:
        self.first_offsets: dict[int, int] = {}


class TransactionCheck:
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

    def add(self, batch: RawBatch) -> None:
        """Follow the transactions in the next batch of the segment."""
        self._end_offset = batch.last_offset + 1
        if batch.is_message:
            return
        header = batch.header
        if header.is_control and header.producer_id >= 0:
            self._add_marker(batch)
        elif header.is_transactional and header.producer_id >= 0:
            self._open.setdefault(header.producer_id, batch.offset)

    def _add_marker(self, batch: RawBatch) -> None:
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
        """Compare the index with the batches and report, after the last batch."""
        entries = read_aborted(self._files, self._path)
        if entries and self._files.size(self._path) % ENTRY_BYTES:
            self._findings.note(self._path, "an incomplete entry at its end", "it is ignored")
        wrong = Tally()
        self._check_entries(entries, base_offset, wrong)
        by_end = {(entry.producer_id, entry.last_offset): entry for entry in entries}
        for producer_id, first, last in self._aborted:
            found = by_end.get((producer_id, last))
            if found is None or found.first_offset > first:
                wrong.add(
                    f"the transaction of producer {producer_id} from {first} to {last} was aborted "
                    "and is not in the index"
                )
        if wrong.count:
            self._findings.problem(self._path, str(wrong), _REBUILT)

    def _check_entries(
        self, entries: list[AbortedTransaction], base_offset: int, wrong: Tally
    ) -> None:
        previous = -1
        for entry in entries:
            last = entry.last_offset
            if last <= previous:
                wrong.add(f"entries do not ascend: {last} follows {previous}")
            elif not base_offset <= last < max(self._end_offset, base_offset):
                wrong.add(f"offset {last} is outside the segment")
            elif entry.first_offset > last:
                wrong.add(f"a transaction from {entry.first_offset} to {last}")
            previous = last
