"""Checks one log: its segments in order, and the other files of its directory."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from odradek.protocol.primitives import INT64_MAX
from odradek.storage.filenames import (
    LEADER_EPOCH_CHECKPOINT,
    FileKind,
    FileState,
    SegmentFileName,
    parse_segment_file,
    segment_file,
)
from odradek.storage.files import Files
from odradek.storage.log_reader import LogReader, SegmentFile
from odradek.storage.producer_entry import ProducerEntry
from odradek.storage.producer_snapshot import CorruptSnapshotError, decode_snapshot

from .epoch_check import EpochCheck
from .findings import Findings, Kind
from .gap_check import GapCheck
from .log_state import LogFacts, LogState
from .log_transactions import LogTransactions
from .producer_check import ProducerCheck
from .record_check import OnRecord
from .segment_check import SegmentCheck


class LogCheck:
    """The directory of one log. `on_record` is called for every record, if records are read."""

    def __init__(
        self,
        files: Files,
        directory: Path,
        facts: LogFacts,
        findings: Findings,
        on_record: OnRecord | None = None,
    ) -> None:
        self._findings = findings
        self._directory = directory
        reader = LogReader(directory, files)
        self._segments = reader.segments()
        first = self._segments[0].base_offset if self._segments else 0
        at_gap = "reads continue after the gap"
        if facts.is_metadata and not facts.stopped_cleanly:
            at_gap = f"odradek drops what is after the gap. Apache Kafka: {at_gap}"
        gaps = GapCheck(facts.cleaner_offset, findings, at_gap, is_compacted=facts.is_compacted)
        self._log = LogState(
            files=files,
            directory=directory,
            facts=facts,
            findings=findings,
            epochs=EpochCheck(
                files,
                directory / LEADER_EPOCH_CHECKPOINT,
                facts.log_start_offset,
                INT64_MAX if facts.stopped_cleanly else facts.recovery_point,
                findings,
            ),
            gaps=gaps,
            producers=ProducerCheck(gaps, findings),
            reader=reader,
            transactions=LogTransactions(directory, max(first, facts.log_start_offset), findings),
            on_record=on_record,
            next_offset=first,
        )
        self._names = [
            parsed
            for name in files.list_directory(directory)
            if (parsed := parse_segment_file(name)) is not None
        ]

    def run(self) -> LogState:
        """Check the whole log; returns its state at the end. Raises OSError."""
        log, segments = self._log, self._segments
        snapshots = self._read_snapshots()
        for index, segment in enumerate(segments):
            if index:
                self._check_beginning(segment)
            self._compare_transactions(snapshots, segment.base_offset, is_end=False)
            SegmentCheck(log, segment, segments[index + 1 :]).run()
        self._compare_transactions(snapshots, log.next_offset, is_end=True)
        self._findings.totals.open_transactions += len(list(log.transactions.open))
        log.gaps.end()
        log.producers.end()
        log.transactions.end()
        log.epochs.end(log.next_offset)
        if segments:
            self._check_checkpoint_offsets()
        else:
            self._findings.note(self._directory, "it has no segment", "an empty one is created")
        bases = {segment.base_offset for segment in segments}
        self._check_leftovers(bases)
        self._check_snapshots(snapshots, bases)
        return log

    def _check_beginning(self, segment: SegmentFile) -> None:
        base, expected = segment.base_offset, self._log.next_offset
        if base < expected:
            what = f"it begins before the end of the previous segment, {expected}"
            self._findings.problem(segment.path, what, "both are served as they are", Kind.ORDER)
        elif base > expected:
            self._log.note_gap(segment, base, position=0)

    # --- offsets in checkpoints

    def _check_checkpoint_offsets(self) -> None:
        start, end = self._log.facts.log_start_offset, self._log.next_offset
        if start > end:
            what = f"by the checkpoint the log starts at {start}, and it ends at {end}"
            at_start = f"all records are dropped, the log continues at {start}"
            self._findings.problem(self._directory, what, at_start)
        if self._log.facts.recovery_point > end:
            what = f"the recovery point {self._log.facts.recovery_point} is after the end {end}"
            self._findings.problem(self._directory, what, "it is set to the end")

    # --- files beside the segments

    def _check_leftovers(self, bases: set[int]) -> None:
        for state, what, at_start in (
            (FileState.DELETED, "about to be deleted", "removed"),
            (FileState.CLEANED, "of a log cleaning that was not finished", "removed"),
            (FileState.SWAP, "of a finished log cleaning", "put in place of what it replaces"),
        ):
            names = [name for name in self._names if name.state is state]
            self._note_files(names, what, at_start)
        orphans = [name for name in self._names if _is_orphan(name, bases)]
        self._note_files(orphans, "of no segment", "removed")

    def _note_files(self, names: list[SegmentFileName], what: str, at_start: str) -> None:
        if len(names) == 1:
            path = self._directory / segment_file(*names[0])
            self._findings.note(path, f"a file {what}", f"it is {at_start}")
        elif names:
            first = segment_file(*names[0])
            shown = f"{len(names)} files {what}, the first is {first}"
            self._findings.note(self._directory, shown, f"they are {at_start}")

    def _read_snapshots(self) -> dict[int, list[ProducerEntry] | None]:
        """The producers in each snapshot, by its offset; None: it cannot be read."""
        snapshots: dict[int, list[ProducerEntry] | None] = {}
        for name in self._names:
            if name.kind is not FileKind.PRODUCER_SNAPSHOT or name.state is not FileState.LIVE:
                continue
            path = self._log.path(name.offset, FileKind.PRODUCER_SNAPSHOT)
            try:
                snapshots[name.offset] = decode_snapshot(self._log.files.read(path))
            except (CorruptSnapshotError, OSError) as error:
                snapshots[name.offset] = None
                what = f"the producer snapshot cannot be read: {error}"
                at_start = "it is removed; an older snapshot or the log is read instead"
                self._findings.problem(path, what, at_start, Kind.SNAPSHOT)
        return snapshots

    def _compare_transactions(
        self, snapshots: Mapping[int, list[ProducerEntry] | None], offset: int, *, is_end: bool
    ) -> None:
        entries = snapshots.get(offset)
        if entries is not None:
            path = self._log.path(offset, FileKind.PRODUCER_SNAPSHOT)
            self._log.transactions.compare(path, entries, offset, is_end=is_end)

    def _check_snapshots(self, snapshots: Iterable[int], bases: set[int]) -> None:
        newest = max(snapshots, default=0)
        for offset in snapshots:
            path = self._log.path(offset, FileKind.PRODUCER_SNAPSHOT)
            if offset > self._log.next_offset:
                what = f"a producer snapshot after the log's end, {self._log.next_offset}"
                self._findings.problem(path, what, "it is removed", Kind.SNAPSHOT)
            elif offset not in bases and offset != newest:
                what = "a producer snapshot of no segment"
                self._findings.note(path, what, "it is removed", Kind.SNAPSHOT)


def _is_orphan(name: SegmentFileName, bases: set[int]) -> bool:
    needs_a_segment = name.kind not in (FileKind.LOG, FileKind.PRODUCER_SNAPSHOT)
    return name.state is FileState.LIVE and needs_a_segment and name.offset not in bases
