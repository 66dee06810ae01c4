"""One log: its segments in their order, and the files beside them."""

from pathlib import Path

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
from odradek.storage.producer_snapshot import CorruptSnapshotError, decode_snapshot

from .epoch_watch import EpochWatch
from .findings import Findings
from .log_state import LogFacts, LogState
from .progress import Progress
from .record_watch import SeeRecord
from .segment_check import SegmentCheck


class LogCheck:
    """One log's directory. `see_record` is shown every record, where records are read."""

    def __init__(
        self,
        files: Files,
        directory: Path,
        facts: LogFacts,
        findings: Findings,
        progress: Progress,
        see_record: SeeRecord | None = None,
    ) -> None:
        self._findings = findings
        self._directory = directory
        self._log = LogState(
            files=files,
            directory=directory,
            facts=facts,
            findings=findings,
            progress=progress,
            epochs=EpochWatch(
                files, directory / LEADER_EPOCH_CHECKPOINT, facts.log_start_offset, findings
            ),
            reader=LogReader(directory, files),
            see_record=see_record,
        )
        self._names = [
            parsed
            for name in files.list_directory(directory)
            if (parsed := parse_segment_file(name)) is not None
        ]

    def run(self) -> int:
        """Look at all of it; returns the log's end offset. Raises OSError."""
        log = self._log
        segments = log.reader.segments()
        if segments:
            log.next_offset = segments[0].base_offset
        for index, segment in enumerate(segments):
            if index:
                self._check_beginning(segment)
            SegmentCheck(log, segment, segments[index + 1 :]).run()
        log.epochs.end(log.next_offset)
        if segments:
            self._check_offsets_known()
        bases = {segment.base_offset for segment in segments}
        self._check_leftovers(bases)
        self._check_snapshots(bases)
        return log.next_offset

    def _check_beginning(self, segment: SegmentFile) -> None:
        base, expected = segment.base_offset, self._log.next_offset
        if base < expected:
            what = f"it begins before the end of the segment before it, {expected}"
            self._findings.problem(segment.path, what, "both are served as they are")
        elif base > expected and not self._log.facts.may_have_gaps:
            what = f"offsets {expected} to {base - 1} are missing before it"
            self._findings.problem(segment.path, what, "reads go on behind the gap")

    # --- what checkpoints say

    def _check_offsets_known(self) -> None:
        start, end = self._log.facts.log_start_offset, self._log.next_offset
        if start > end:
            what = f"by its checkpoint the log starts at {start}, but it ends at {end}"
            fate = f"all is dropped, the log goes on at {start}"
            self._findings.problem(self._directory, what, fate)
        if self._log.facts.recovery_point > end:
            what = f"the recovery point {self._log.facts.recovery_point} lies behind the end {end}"
            self._findings.problem(self._directory, what, "it becomes the end")

    # --- files beside the segments

    def _check_leftovers(self, bases: set[int]) -> None:
        for state, what, fate in (
            (FileState.DELETED, "about to be deleted", "removed"),
            (FileState.CLEANED, "of a cleaning that was not finished", "removed"),
            (FileState.SWAP, "of a cleaning that was finished", "put in place of what it replaces"),
        ):
            names = [name for name in self._names if name.state is state]
            self._note_files(names, what, fate)
        orphans = [name for name in self._names if _is_orphan(name, bases)]
        self._note_files(orphans, "of no segment", "removed")

    def _note_files(self, names: list[SegmentFileName], what: str, fate: str) -> None:
        if len(names) == 1:
            path = self._directory / segment_file(*names[0])
            self._findings.note(path, f"a file {what}", f"it is {fate}")
        elif names:
            first = segment_file(*names[0])
            shown = f"{len(names)} files {what}, {first} first"
            self._findings.note(self._directory, shown, f"they are {fate}")

    def _check_snapshots(self, bases: set[int]) -> None:
        snapshots = [
            name.offset
            for name in self._names
            if name.kind is FileKind.PRODUCER_SNAPSHOT and name.state is FileState.LIVE
        ]
        for offset in snapshots:
            path = self._log.path(offset, FileKind.PRODUCER_SNAPSHOT)
            try:
                decode_snapshot(self._log.files.read(path))
            except (CorruptSnapshotError, OSError) as error:
                what = f"the producer snapshot cannot be read: {error}"
                fate = "it is removed; an older one, or the log, serves"
                self._findings.problem(path, what, fate)
            if offset > self._log.next_offset:
                what = f"a producer snapshot behind the log's end, {self._log.next_offset}"
                self._findings.problem(path, what, "it is removed")
            elif offset not in bases and offset != max(snapshots):
                self._findings.note(path, "a producer snapshot of no segment", "it is removed")


def _is_orphan(name: SegmentFileName, bases: set[int]) -> bool:
    belongs_to_itself = name.kind in (FileKind.LOG, FileKind.PRODUCER_SNAPSHOT)
    return name.state is FileState.LIVE and not belongs_to_itself and name.offset not in bases
