"""Checks one segment of a log: every batch, and the index files of the segment."""

from odradek.storage.filenames import FileKind
from odradek.storage.index_file import MAX_RELATIVE_OFFSET
from odradek.storage.inspect.raw_batch import RawBatch
from odradek.storage.inspect.raw_message import UnreadableError
from odradek.storage.log_reader import SegmentFile
from odradek.storage.topic_names import CLUSTER_METADATA_TOPIC

from .findings import Tally
from .index_check import OffsetIndexCheck, TimeIndexCheck
from .log_state import LogState
from .record_check import RecordCheck, is_internal
from .startup_action import StartupAction
from .transaction_check import TransactionCheck

_CHUNK_BYTES = 1 << 20


class SegmentCheck:
    """One segment; `following` are the log's later segments."""

    def __init__(self, log: LogState, segment: SegmentFile, following: list[SegmentFile]) -> None:
        """Reads the indexes. `run` reads the batches."""
        self._log = log
        self._segment = segment
        base, files, findings, facts = segment.base_offset, log.files, log.findings, log.facts
        self._action = StartupAction(
            segment, following, facts.recovery_point, stopped_cleanly=facts.stopped_cleanly
        )
        in_use = self._action.is_in_use
        path = log.path(base, FileKind.OFFSET_INDEX)
        self._offsets = OffsetIndexCheck(files, path, base, findings, in_use=in_use)
        path = log.path(base, FileKind.TIME_INDEX)
        self._times = TimeIndexCheck(files, path, base, findings, in_use=in_use)
        path = log.path(base, FileKind.TXN_INDEX)
        self._transactions = TransactionCheck(
            files, path, log.transactions, findings, in_use=in_use
        )
        self._records: RecordCheck | None = None
        if facts.deep or is_internal(facts.topic):
            self._records = RecordCheck(facts.topic, segment.path, findings, log.on_record)
        self._corrupt, self._misplaced, self._gaps = Tally(), Tally(), Tally()

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
                log.progress.advance(batch.size_bytes)
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
        fault = batch.fault()
        if fault is not None:
            self._corrupt.add(f"byte {batch.position}, offset {batch.offset}: {fault}")
            self._action.note_damage(batch.position)
            self._offsets.skip_batch(batch.position)
            self._times.stop()
            self._log.transactions.note_damage()
            return
        self._check_offsets(batch)
        self._offsets.add(batch)
        self._times.add(batch)
        if self._log.facts.topic != CLUSTER_METADATA_TOPIC:
            marker = self._log.transactions.add(batch)
            if marker is not None:
                self._transactions.add(marker)
        self._log.epochs.add(batch)
        if self._records is not None:
            self._records.add(batch)

    def _check_offsets(self, batch: RawBatch) -> None:
        expected = self._log.next_offset
        first = batch.last_offset if batch.is_message else batch.offset
        too_far = batch.last_offset - self._segment.base_offset > MAX_RELATIVE_OFFSET
        if first < expected or too_far:
            self._misplaced.add(
                f"byte {batch.position}: offset {batch.offset} where {expected} was expected"
            )
            self._action.note_damage(batch.position)
        elif batch.offset > expected and not batch.is_message:
            self._add_gap(expected, batch)
        self._log.next_offset = max(expected, batch.last_offset + 1)

    def _add_gap(self, expected: int, batch: RawBatch) -> None:
        if self._log.facts.may_have_gaps:
            self._log.transactions.note_gap()
        else:
            self._gaps.add(f"offsets {expected} to {batch.offset - 1} at byte {batch.position}")
            self._log.transactions.note_damage()

    def _report_bad_end(self, position: int, what: str, *, is_cut_short: bool) -> None:
        self._action.note_damage(position)
        findings, segment = self._log.findings, self._segment
        if self._action.is_in_use and self._is_zero_from(position):
            what = f"{segment.size_bytes - position} bytes were preallocated and not used"
            findings.note(segment.path, what, "they are cut off")
            return
        # A kill may leave an incomplete batch at the end of the active segment.
        is_torn_by_kill = self._action.is_in_use and is_cut_short
        if not is_torn_by_kill:
            self._log.transactions.note_damage()
        report = findings.note if is_torn_by_kill else findings.problem
        report(segment.path, f"byte {position}: {what}", str(self._action))

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
                self._log.findings.problem(self._segment.path, str(tally), str(self._action))
        if self._gaps.count:
            what = f"missing: {self._gaps}"
            self._log.findings.problem(self._segment.path, what, "reads continue after the gap")
        self._offsets.end()
        self._times.end()
        self._transactions.end(self._segment.base_offset, self._log.next_offset)
        if self._records is not None:
            self._records.end()
