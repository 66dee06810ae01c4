"""Follows the transactions of one log, and checks batches, markers and producer snapshots.

In a log that was cleaned, or whose first records were deleted, less can be checked: a transaction
may have begun before the first batch that is left.

Kafka: ProducerAppendInfo.appendDataBatch, appendEndTxnMarker.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from odradek.coordinator.inspect.internal_records import decode_control
from odradek.protocol.batch_header import NO_SEQUENCE, BatchHeader
from odradek.protocol.records.control import ControlRecordType, control_type
from odradek.protocol.schema import DecodeError
from odradek.storage.inspect.open_transactions import OpenTransaction, OpenTransactions
from odradek.storage.inspect.raw_batch import RawBatch
from odradek.storage.inspect.raw_message import UnreadableError
from odradek.storage.producer_entry import NO_COORDINATOR_EPOCH, ProducerEntry

from .findings import Findings, Kind, Tally

_ENDS = (ControlRecordType.ABORT, ControlRecordType.COMMIT)


class Marker(NamedTuple):
    """A marker. `ended`: the transaction that it ended, if a batch of it is in the log.

    `last_stable_offset` is that of the log after the marker.
    """

    producer_id: int
    offset: int
    is_abort: bool
    ended: OpenTransaction | None
    last_stable_offset: int


class LogTransactions:
    """The transactions of one log. `begin`: its first offset.

    `open` are the transactions that are open after the batches so far. `is_known`: False if damage
    may have hidden some of their batches, until a producer snapshot tells which are open.
    `has_gaps`: the log was cleaned.
    """

    def __init__(self, directory: Path, begin: int, findings: Findings) -> None:
        self.begin = begin
        self.open = OpenTransactions(begin)
        self.is_known = True
        self.has_gaps = False
        self._directory = directory
        self._findings = findings
        # The coordinator epoch of the last marker of each producer id.
        self._coordinator_epochs: dict[int, int] = {}
        self._wrong = Tally()
        self._older_coordinators = Tally()
        self._unknown = Tally()

    def note_gap(self) -> None:
        """Note that records are missing here, because the log was cleaned.

        The cleaner may have removed the markers of transactions that began before the log.
        """
        self.has_gaps = True
        self.open.forget_unseen()

    def note_damage(self) -> None:
        """Note that batches cannot be read or are lost: they may begin and end transactions."""
        self.is_known = False

    # --- batches

    def add(self, batch: RawBatch) -> Marker | None:
        """Follow and check the next batch; returns its marker, if it has one."""
        if batch.is_message:  # of the old formats, which have no transactions
            return None
        header = batch.header
        if header.is_control:
            return self._add_control(batch, header)
        if header.producer_id < 0:
            if header.is_transactional:
                self._wrong.add(f"offset {batch.offset}: a transactional batch without a producer")
            return None
        known = self.open.find(header.producer_id)
        if known is not None and self.is_known:
            self._check_batch(header, known)
        self.open.add(header)
        return None

    def _check_batch(self, header: BatchHeader, known: OpenTransaction) -> None:
        where = f"offset {header.base_offset}: producer {header.producer_id}"
        if not header.is_transactional:
            self._wrong.add(
                f"{where} writes outside its transaction, which is open since {known.first_offset}"
            )
        if header.producer_epoch < known.producer_epoch:
            self._wrong.add(
                f"{where} writes with epoch {header.producer_epoch} after {known.producer_epoch}"
            )

    def _add_control(self, batch: RawBatch, header: BatchHeader) -> Marker | None:
        if header.record_count == 0:  # the cleaner has removed the marker
            self.note_gap()
            return None
        try:
            record, *more = batch.records()
            kind = control_type(record.key)
            if kind is None:  # of a later version
                self._unknown.add("a marker of unknown kind", offset=batch.offset)
                return None
            if kind not in _ENDS:
                self._wrong.add(f"offset {batch.offset}: a {kind.name} record in a topic's log")
                return None
            coordinator_epoch = decode_control(record.key, record.value).coordinator_epoch
        except (UnreadableError, DecodeError) as error:
            self._wrong.add(f"the marker at offset {batch.offset} cannot be read: {error}")
            self.note_damage()
            return None
        self._check_form(header, has_more=bool(more))
        self._check_epochs(header, coordinator_epoch)
        ended = self.open.end(header.producer_id)
        unstable = self.open.first_unstable_offset
        return Marker(
            header.producer_id,
            batch.offset,
            kind is ControlRecordType.ABORT,
            ended if self.is_known else None,
            batch.offset + 1 if unstable is None else unstable,
        )

    def _check_form(self, header: BatchHeader, *, has_more: bool) -> None:
        faults = (
            (has_more, "more than one record"),
            (not header.is_transactional, "no transactional bit"),
            (header.producer_id < 0 or header.producer_epoch < 0, "no producer"),
            (header.base_sequence != NO_SEQUENCE, f"sequence {header.base_sequence}"),
        )
        for is_faulty, what in faults:
            if is_faulty:
                self._wrong.add(f"offset {header.base_offset}: a marker with {what}")

    def _check_epochs(self, header: BatchHeader, coordinator_epoch: int) -> None:
        producer_id = header.producer_id
        known = self.open.find(producer_id)
        where = f"offset {header.base_offset}: a marker of producer {producer_id} with"
        if known is not None and self.is_known and header.producer_epoch < known.producer_epoch:
            self._wrong.add(
                f"{where} epoch {header.producer_epoch} ends a transaction of epoch"
                f" {known.producer_epoch}"
            )
        last = self._coordinator_epochs.get(producer_id, NO_COORDINATOR_EPOCH)
        if coordinator_epoch < last:
            # A broker accepts it after it has forgotten the producer, which was long inactive.
            what = f"{where} coordinator epoch {coordinator_epoch} came after {last}"
            self._older_coordinators.add(what)
        self._coordinator_epochs[producer_id] = coordinator_epoch

    # --- snapshots

    def compare(
        self, path: Path, snapshot: Iterable[ProducerEntry], offset: int, *, is_end: bool
    ) -> None:
        """Compare the open transactions with the producer snapshot at `offset`.

        All batches before `offset` have been added. `is_end`: it is the end of the log.
        After damage nothing is compared, and the snapshot's transactions are taken over. In a log
        that was cleaned, batches and markers may be missing. There a snapshot is taken over only at
        the end: after an earlier one, the marker that ends a transaction may be missing.
        """
        entries = list(snapshot)
        if not self.is_known or (self.has_gaps and is_end):
            self.open.reset(entries, offset)
            self.is_known = True
        elif not self.has_gaps:
            self.open.adopt(entries)
            if self._report_differences(path, entries):
                # Otherwise each later snapshot would be reported for the same difference.
                self.open.reset(entries, offset)

    def _report_differences(self, path: Path, entries: Iterable[ProducerEntry]) -> bool:
        """Report how a snapshot differs from the open transactions; returns whether it does."""
        stored = {
            entry.producer_id: entry.txn_first_offset
            for entry in entries
            if entry.has_open_transaction
        }
        followed = {each.producer_id: each.first_offset for each in self.open}
        wrong = Tally()
        for producer_id in sorted(stored.keys() | followed.keys()):
            first, by_log = stored.get(producer_id), followed.get(producer_id)
            if first != by_log:
                wrong.add(
                    f"producer {producer_id}: the snapshot has {_open_from(first)}, the log"
                    f" {_open_from(by_log)}"
                )
        at_start = "if it is the newest, it is used as it is"
        self._findings.problem(path, wrong, at_start, Kind.SNAPSHOT)
        return bool(wrong.count)

    def end(self) -> None:
        """Report what was found, after the last batch."""
        at_start, kind = "it is served as it is", Kind.TRANSACTION
        self._findings.problem(self._directory, self._wrong, at_start, kind)
        self._findings.note(self._directory, self._older_coordinators, at_start, kind)
        self._findings.note(self._directory, self._unknown, "it is ignored", kind)


def _open_from(first_offset: int | None) -> str:
    if first_offset is None:
        return "no open transaction"
    return f"a transaction open from {first_offset} on"
