"""Checks that a segment's transaction index lists the transactions that were aborted in it.

A read_committed consumer gets from this index which records to drop. The first offset of an aborted
transaction is known only if its records are still in the log. If they were deleted or cleaned away,
the index may have an entry for the transaction or not.
"""

from pathlib import Path

from odradek.storage.files import Files
from odradek.storage.txn_index import ENTRY_BYTES, AbortedTransaction, entries_of

from .findings import Findings, Kind, Tally
from .log_transactions import LogTransactions, Marker

_REBUILT = "it is rebuilt after an unclean stop; after a clean stop it is used as it is"


class TransactionCheck:
    """The transaction index of one segment."""

    def __init__(
        self,
        files: Files,
        path: Path,
        transactions: LogTransactions,
        findings: Findings,
        *,
        in_use: bool,
    ) -> None:
        """`in_use`: a broker was writing to the segment when it ended, or still is."""
        self._files = files
        self._path = path
        self._transactions = transactions
        self._findings = findings
        self._in_use = in_use
        self._markers: dict[int, Marker] = {}  # by offset

    def add(self, marker: Marker) -> None:
        """Take the next marker of the segment."""
        self._markers[marker.offset] = marker

    def end(self, base_offset: int, end_offset: int) -> None:
        """Compare the index with the markers and report, after the last batch."""
        entries, wrong = self._read(), Tally()
        self._check_order(entries, base_offset, end_offset, wrong)
        if self._transactions.is_known:
            self._check_extra([each for each in entries if each.last_offset < end_offset], wrong)
        self._check_missing(entries, wrong)
        self._findings.problem(self._path, wrong, _REBUILT, Kind.TRANSACTION)

    def _read(self) -> list[AbortedTransaction]:
        # Read after the log, because a running broker writes the log first.
        if not self._files.exists(self._path):
            return []
        data = self._files.read(self._path)
        if len(data) % ENTRY_BYTES:
            what = "an incomplete entry at its end"
            self._findings.note(self._path, what, "it is ignored", Kind.INDEX)
        versions = sorted({version for version, _ in entries_of(data)} - {0})
        if versions:
            what = f"entries of unknown version {versions[0]}"
            self._findings.problem(self._path, what, kind=Kind.INDEX)
        return [entry for _, entry in entries_of(data)]

    def _check_order(
        self, entries: list[AbortedTransaction], base_offset: int, end_offset: int, wrong: Tally
    ) -> None:
        previous = -1
        for entry in entries:
            last = entry.last_offset
            if last <= previous:
                wrong.add(f"entries do not ascend: {last} follows {previous}")
            elif last < base_offset or (last >= end_offset and not self._in_use):
                wrong.add(f"offset {last} is outside the segment")
            elif entry.first_offset > last:
                wrong.add(f"a transaction from {entry.first_offset} to {last}")
            previous = last

    def _check_extra(self, entries: list[AbortedTransaction], wrong: Tally) -> None:
        for entry in entries:
            marker = self._markers.get(entry.last_offset)
            if marker is None and self._transactions.has_gaps:
                continue  # the cleaner has removed the marker
            if marker is None or not marker.is_abort or marker.producer_id != entry.producer_id:
                wrong.add(
                    f"producer {entry.producer_id} has no abort marker at {entry.last_offset}"
                )
            else:
                self._check_offsets(entry, marker, wrong)

    def _check_offsets(self, entry: AbortedTransaction, marker: Marker, wrong: Tally) -> None:
        """Compare the first offset and the last stable offset with the log.

        Both may be before the first offset of the log, and in a cleaned log before the first batch
        that is left.
        """
        first = None if marker.ended is None else marker.ended.first_offset
        if not self._agrees(entry.first_offset, first):
            shown = "none" if first is None else str(first)
            wrong.add(
                f"the transaction of producer {entry.producer_id} up to {entry.last_offset} has the"
                f" first offset {entry.first_offset}, in the log {shown}"
            )
        elif not self._agrees(entry.last_stable_offset, marker.last_stable_offset):
            wrong.add(
                f"the transaction of producer {entry.producer_id} up to {entry.last_offset} has the"
                f" last stable offset {entry.last_stable_offset}, in the log"
                f" {marker.last_stable_offset}"
            )

    def _agrees(self, stored: int, found: int | None) -> bool:
        """Whether an offset is the one that was found, or is before what is left of the log."""
        if stored == found:
            return True
        is_before = found is None or stored < found
        return is_before and (self._transactions.has_gaps or stored < self._transactions.begin)

    def _check_missing(self, entries: list[AbortedTransaction], wrong: Tally) -> None:
        by_end = {(entry.producer_id, entry.last_offset): entry for entry in entries}
        for marker in self._markers.values():
            if not marker.is_abort or marker.ended is None:
                continue
            found = by_end.get((marker.producer_id, marker.offset))
            if found is None:
                wrong.add(
                    f"the transaction of producer {marker.producer_id} from"
                    f" {marker.ended.first_offset} to {marker.offset} was aborted and is not in the"
                    " index"
                )
