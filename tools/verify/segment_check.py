"""One segment of a log: every batch, and the indexes that should lead to it."""

from odradek.storage.filenames import FileKind
from odradek.storage.index_file import MAX_RELATIVE_OFFSET
from odradek.storage.log_reader import SegmentFile
from odradek.storage.raw_message import UnreadableError
from odradek.storage.raw_scan import RawBatch

from .findings import Tally
from .index_watch import OffsetIndexWatch, TimeIndexWatch
from .log_state import LogState
from .record_watch import RecordWatch, is_internal
from .segment_fate import SegmentFate
from .transaction_watch import TransactionWatch

_CHUNK_BYTES = 1 << 20


class SegmentCheck:
    """`following` are the segments behind it."""

    def __init__(self, log: LogState, segment: SegmentFile, following: list[SegmentFile]) -> None:
        """Opens the indexes; the batches are walked by `run`."""
        self._log = log
        self._segment = segment
        base, files, findings, facts = segment.base_offset, log.files, log.findings, log.facts
        self._fate = SegmentFate(
            segment, following, facts.recovery_point, stopped_cleanly=facts.stopped_cleanly
        )
        in_use = self._fate.is_in_use
        path = log.path(base, FileKind.OFFSET_INDEX)
        self._offsets = OffsetIndexWatch(files, path, base, findings, in_use=in_use)
        path = log.path(base, FileKind.TIME_INDEX)
        self._times = TimeIndexWatch(files, path, base, findings, in_use=in_use)
        path = log.path(base, FileKind.TXN_INDEX)
        self._transactions = TransactionWatch(files, path, log.open_transactions, findings)
        self._records: RecordWatch | None = None
        if facts.deep or is_internal(facts.topic):
            self._records = RecordWatch(facts.topic, segment.path, findings, log.see_record)
        self._corrupt, self._misplaced, self._gaps = Tally(), Tally(), Tally()

    def run(self) -> None:
        """Raises OSError."""
        log, segment = self._log, self._segment
        log.findings.totals.segments += 1
        log.findings.totals.log_bytes += segment.size_bytes
        log.next_offset = max(log.next_offset, segment.base_offset)
        position = 0
        try:
            for batch in log.reader.raw_batches(segment):
                self._see(batch)
                position = batch.position + batch.size_bytes
                log.findings.totals.batches += 1
                log.progress.advance(batch.size_bytes)
        except UnreadableError as error:
            self._offsets.stop()
            self._times.stop()
            self._tell_of_end(position, str(error), is_cut_short=False)
        else:
            if position < segment.size_bytes:
                what = f"{segment.size_bytes - position} bytes behind the last whole batch"
                self._tell_of_end(position, what, is_cut_short=True)
        self._end()

    def _see(self, batch: RawBatch) -> None:
        why = batch.fault()
        if why is not None:
            self._corrupt.add(f"byte {batch.position}, offset {batch.offset}: {why}")
            self._fate.note_broken(batch.position)
            self._offsets.pass_over(batch.position)
            self._times.stop()
            return
        self._check_place(batch)
        self._offsets.see(batch)
        self._times.see(batch)
        self._transactions.see(batch)
        self._log.epochs.see(batch)
        if self._records is not None:
            self._records.see(batch)

    def _check_place(self, batch: RawBatch) -> None:
        expected = self._log.next_offset
        first = batch.last_offset if batch.is_message else batch.offset
        too_far = batch.last_offset - self._segment.base_offset > MAX_RELATIVE_OFFSET
        if first < expected or too_far:
            self._misplaced.add(
                f"byte {batch.position}: offset {batch.offset} where {expected} was next"
            )
            self._fate.note_broken(batch.position)
        elif batch.offset > expected and not (self._log.facts.may_have_gaps or batch.is_message):
            self._gaps.add(f"offsets {expected} to {batch.offset - 1} at byte {batch.position}")
        self._log.next_offset = max(expected, batch.last_offset + 1)

    def _tell_of_end(self, position: int, what: str, *, is_cut_short: bool) -> None:
        self._fate.note_broken(position)
        findings, segment = self._log.findings, self._segment
        if self._fate.is_in_use and self._is_zero_from(position):
            what = f"{segment.size_bytes - position} bytes were preallocated and not used"
            findings.note(segment.path, what, "they are cut")
            return
        # What a kill leaves at the end of the last segment is nobody's fault.
        is_torn_by_kill = self._fate.is_in_use and is_cut_short
        tell = findings.note if is_torn_by_kill else findings.problem
        tell(segment.path, f"byte {position}: {what}", str(self._fate))

    def _is_zero_from(self, position: int) -> bool:
        files = self._log.files
        file = files.open(self._segment.path, read_only=True)
        while data := files.pread(file, _CHUNK_BYTES, position):
            if data.strip(b"\0"):
                return False
            position += len(data)
        return True

    def _end(self) -> None:
        for tally in (self._corrupt, self._misplaced):
            if tally.count:
                self._log.findings.problem(self._segment.path, str(tally), str(self._fate))
        if self._gaps.count:
            what = f"missing: {self._gaps}"
            self._log.findings.problem(self._segment.path, what, "reads go on behind the gap")
        self._offsets.end()
        self._times.end()
        self._transactions.end(self._segment.base_offset)
        if self._records is not None:
            self._records.end()
