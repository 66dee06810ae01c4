"""Checks one segment of a log: every batch, and the index files of the segment."""

from odradek.storage.batch_scan import CorruptBatchError, scan_headers
from odradek.storage.filenames import FileKind
from odradek.storage.files import OpenFile
from odradek.storage.index_file import MAX_RELATIVE_OFFSET
from odradek.storage.inspect.raw_batch import RawBatch, find_whole_batch
from odradek.storage.inspect.raw_message import UnreadableError
from odradek.storage.log_reader import SegmentFile

from .findings import Kind, Tally
from .gap_check import is_cleaned_batch
from .index_check import OffsetIndexCheck, TimeIndexCheck
from .log_state import LogState
from .record_check import RecordCheck, is_internal
from .startup_action import StartupAction
from .transaction_check import TransactionCheck


class SegmentCheck:
    """One segment; `following` are the log's later segments."""

    def __init__(self, log: LogState, segment: SegmentFile, following: list[SegmentFile]) -> None:
        """Reads the indexes. `run` reads the batches."""
        self._log = log
        self._segment = segment
        base, files, findings, facts = segment.base_offset, log.files, log.findings, log.facts
        self._action = StartupAction(
            segment,
            following,
            facts.recovery_point,
            self._ends_whole,
            stopped_cleanly=facts.stopped_cleanly,
            is_metadata=facts.is_metadata,
        )
        in_use = self._action.is_in_use
        # The last segment's indexes may be preallocated although no broker writes: Apache Kafka 4.4
        # does not truncate those of the metadata log at a stop. Those of a log without records stay
        # so if the power failed before their truncation was on disk; the first append empties them.
        may_be_uncut = in_use or (not following and (facts.is_metadata or not segment.size_bytes))
        path = log.path(base, FileKind.OFFSET_INDEX)
        self._offsets = OffsetIndexCheck(files, path, base, findings, may_be_uncut=may_be_uncut)
        path = log.path(base, FileKind.TIME_INDEX)
        self._times = TimeIndexCheck(files, path, base, findings, may_be_uncut=may_be_uncut)
        path = log.path(base, FileKind.TXN_INDEX)
        self._transactions = TransactionCheck(
            files, path, log.transactions, findings, in_use=in_use
        )
        self._records: RecordCheck | None = None
        if facts.deep or is_internal(facts.topic):
            self._records = RecordCheck(facts.topic, segment.path, findings, log.on_record)
        self._corrupt, self._malformed, self._misplaced = Tally(), Tally(), Tally()
        self._is_cleaned = False

    def run(self) -> None:
        """Check all batches, and report what was found. Raises OSError."""
        log, segment = self._log, self._segment
        log.findings.totals.segments += 1
        log.findings.totals.log_bytes += segment.size_bytes
        log.next_offset = max(log.next_offset, segment.base_offset)
        position = 0
        try:
            for batch in log.reader.raw_batches(segment):
                self._check_batch(batch)
                position = batch.position + batch.size_bytes
                log.findings.totals.batches += 1
        except UnreadableError as error:
            self._offsets.stop()
            self._times.stop()
            self._report_bad_end(position, str(error), is_cut_short=False)
        else:
            if position < segment.size_bytes:
                what = f"{segment.size_bytes - position} bytes after the last complete batch"
                self._report_bad_end(position, what, is_cut_short=True)
        self._end()

    def _check_batch(self, batch: RawBatch) -> None:
        log = self._log
        fault = batch.fault()
        if fault is not None:
            tally = self._corrupt if fault.is_checksum else self._malformed
            tally.add(fault.what, position=batch.position, offset=batch.offset)
            self._action.note_damage(batch.position, is_readable=False)
            self._offsets.skip_batch(batch.position)
            self._times.stop()
            log.note_lost()
            return
        self._check_offsets(batch)
        self._offsets.add(batch)
        self._times.add(batch)
        if not log.facts.is_metadata:
            marker = log.transactions.add(batch)
            if marker is not None:
                self._transactions.add(marker)
        log.epochs.add(batch)
        if batch.is_message:
            log.findings.totals.records += _count_inside(batch)
        else:
            self._check_header(batch)
        if self._records is not None:
            self._records.add(batch)

    def _check_offsets(self, batch: RawBatch) -> None:
        log, expected = self._log, self._log.next_offset
        first = batch.last_offset if batch.is_message else batch.offset
        too_far = batch.last_offset - self._segment.base_offset > MAX_RELATIVE_OFFSET
        if first < expected or too_far:
            what = f"offset {batch.offset} where {expected} was expected"
            self._misplaced.add(what, position=batch.position, offset=batch.offset)
            self._action.note_damage(batch.position, is_readable=True)
        elif batch.offset > expected and not batch.is_message:
            log.note_gap(self._segment, batch.offset, batch.position)
        if log.lost_from is not None:
            log.gaps.add_lost(log.lost_from, batch.offset)
            log.lost_from = None
        log.next_offset = max(expected, batch.last_offset + 1)

    def _check_header(self, batch: RawBatch) -> None:
        log, header, segment = self._log, batch.header, self._segment
        span = header.last_offset_delta + 1
        if not 0 <= header.record_count <= span:
            what = f"{header.record_count} records in {span} offsets"
            self._malformed.add(what, position=batch.position, offset=batch.offset)
        elif not header.is_control:
            log.findings.totals.records += header.record_count
        if 0 <= header.partition_leader_epoch < log.last_epoch:
            what = f"leader epoch {header.partition_leader_epoch} follows {log.last_epoch}"
            self._misplaced.add(what, position=batch.position, offset=batch.offset)
        log.last_epoch = max(log.last_epoch, header.partition_leader_epoch)
        log.producers.add(header, segment.path, segment.base_offset, batch.position)
        self._is_cleaned |= is_cleaned_batch(header)

    def _report_bad_end(self, position: int, what: str, *, is_cut_short: bool) -> None:
        findings, segment, is_zero = self._log.findings, self._segment, self._is_zero_from(position)
        self._action.note_damage(position, is_readable=is_cut_short or is_zero)
        if self._action.is_in_use and is_zero:
            what = f"{segment.size_bytes - position} bytes were preallocated and not used"
            findings.note(segment.path, what, "they are cut off", Kind.STRUCTURE)
            return
        # A kill may leave an incomplete batch at the end of the active segment. If a whole one
        # follows, it is a batch whose size is damaged.
        later = self._find_batch_after(position) if is_cut_short else None
        if later is not None:
            what += f", among them a whole batch, of offset {later.offset} at byte {later.position}"
        is_torn_by_kill = self._action.is_in_use and is_cut_short and later is None
        if not is_torn_by_kill:
            self._log.note_lost()
        tally = Tally()
        tally.add(what, position=position)
        report = findings.note if is_torn_by_kill else findings.problem
        report(segment.path, tally, str(self._action), Kind.STRUCTURE)

    def _is_zero_from(self, position: int) -> bool:
        return self._log.files.is_zero_from(self._file(), position)

    def _find_batch_after(self, position: int) -> RawBatch | None:
        end, offset = self._segment.size_bytes, self._log.next_offset
        return find_whole_batch(self._log.files, self._file(), position + 1, end, offset)

    def _ends_whole(self) -> bool:
        """Whether there are whole batches from the last entry of the offset index to the end."""
        end, size = self._offsets.last_position, self._segment.size_bytes
        try:
            for position, header in scan_headers(self._log.files, self._file(), end, size):
                end = position + header.size_bytes
        except CorruptBatchError:
            return False
        return end == size

    def _file(self) -> OpenFile:
        return self._log.files.open(self._segment.path, read_only=True)

    def _end(self) -> None:
        for kind, tally in (
            (Kind.CHECKSUM, self._corrupt),
            (Kind.STRUCTURE, self._malformed),
            (Kind.ORDER, self._misplaced),
        ):
            self._log.findings.problem(self._segment.path, tally, str(self._action), kind)
        if self._is_cleaned:
            self._log.gaps.note_cleaned(self._log.next_offset)
        self._offsets.end()
        self._times.end()
        self._transactions.end(self._segment.base_offset, self._log.next_offset)
        if self._records is not None:
            self._records.end()


def _count_inside(message: RawBatch) -> int:
    """The number of records in a message of magic 0 or 1, which may be a compressed set of them."""
    try:
        return sum(1 for _ in message.records())
    except UnreadableError:
        return 1  # RecordCheck reports it
