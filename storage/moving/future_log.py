"""The copy of a log that is being moved: `TOPIC-PARTITION.UNIQUEID-future` in the new directory.

    prepare                     check the files that an interrupted move left there
    next_copy, run, note        until little is left: closed segments first, the oldest before all
    name_active, run, note      the copy of the active segment gets its final name
    (the metadata records the new directory)
    next_copy, run, note        what was appended since
    finish                      the rest, epochs, snapshots, in one step; LogMoves.promote renames

The copy is identical to the byte, so the log continues in it with its state in memory. Until
`promote` the old directory is the log. At any time the new one holds valid segments from the log's
start on: a file that is still being written ends in `.cleaned`, which Apache Kafka also deletes at
its start. So after a crash either directory can be the log, and the longer one is (LogMoves).

Retention and DeleteRecords continue during a move; the cleaner must wait, as in Kafka. A segment
that was cleaned after it was copied is a new object, and is copied again.
"""

from pathlib import Path

from odradek.storage.checkpoints import write_epochs, write_topic_id
from odradek.storage.data_directory import DataDirectory
from odradek.storage.filenames import (
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    FileKind,
    FileState,
    parse_segment_file,
    segment_file,
)
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.segment import Segment
from odradek.storage.topic_partition import TopicPartition

from .copy_plan import CopiedRange, CopyPlan

COPY_BYTES = 32 << 20  # of one plan: also how much may wait to be synced
FINAL_BYTES = 1 << 20  # the most that `finish` copies, which blocks the event loop
TAIL_BYTES = 4096  # compared after a restart to recognize a complete copy

_INDEXES = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TXN_INDEX)


class FutureLog:
    """The copy of `log` at `path`, a directory in `home`. `path` may hold an interrupted copy."""

    def __init__(self, files: Files, log: PartitionLog, home: DataDirectory, path: Path) -> None:
        """Create the directory only; see `prepare`. Raises OSError."""
        self.log = log
        self.home = home
        self.path = path
        self.is_cancelled = False
        self.deleted_files: list[str] = []  # files to delete once the copy is the log
        self._files = files
        self._copied: dict[Segment, int] = {}  # bytes of the .log
        self._done: set[Segment] = set()
        self._renamed: set[Segment] = set()  # whose .log has its final name already
        files.make_directory(path)

    def prepare(self) -> None:
        """Keep the closed segments that are complete copies; remove all other files.

        Call it once, before anything is copied, on any thread. Raises OSError.
        """
        self._keep_complete_segments()
        if self.log.topic_id is not None:
            write_topic_id(self._files, self.path / PARTITION_METADATA, self.log.topic_id)
        self._files.fsync_directory(self.home.path)

    def __repr__(self) -> str:
        return f"FutureLog({self.log.name}, {self.path})"

    # --- progress

    @property
    def key(self) -> TopicPartition:
        return self.log.key

    @property
    def size_bytes(self) -> int:
        return sum(self._copied.values())

    @property
    def end_offset(self) -> int:
        """The offset before which the copy is complete, as known without reading segments."""
        for segment in self.log.segments:
            if segment not in self._done:
                at_end = self._copied.get(segment, 0) == segment.size_bytes
                is_active = segment is self.log.segments.active
                return self.log.log_end_offset if at_end and is_active else segment.base_offset
        return self.log.log_end_offset

    @property
    def lag(self) -> int:
        """The number of offsets that are not copied yet."""
        return max(self.log.log_end_offset - self.end_offset, 0)

    # --- after a restart

    def _keep_complete_segments(self) -> None:
        names = set(self._files.list_directory(self.path))
        kept = {PARTITION_METADATA, LEADER_EPOCH_CHECKPOINT}
        for segment in list(self.log.segments)[:-1]:
            if not self._is_copied(segment, names):
                break
            self._copied[segment] = segment.size_bytes
            self._done.add(segment)
            kept |= {segment_file(segment.base_offset, kind) for kind in (FileKind.LOG, *_INDEXES)}
            if self._has_snapshot(segment, names):
                kept.add(segment_file(segment.base_offset, FileKind.PRODUCER_SNAPSHOT))
        for name in names - kept:
            self._files.remove(self.path / name)

    def _is_copied(self, segment: Segment, names: set[str]) -> bool:
        """Whether each file of the segment has a copy of equal length that ends in equal bytes."""
        for kind in (FileKind.LOG, *_INDEXES):
            source, name = segment.path(kind), segment_file(segment.base_offset, kind)
            if not self._files.exists(source):
                if name in names:
                    return False
            elif name not in names or not self._has_same_end(source, self.path / name):
                return False
        return segment.size_bytes == self._files.size(segment.path(FileKind.LOG))

    def _has_snapshot(self, segment: Segment, names: set[str]) -> bool:
        name = segment_file(segment.base_offset, FileKind.PRODUCER_SNAPSHOT)
        return (
            segment.base_offset in self.log.producers.snapshot_offsets
            and name in names
            and self._has_same_end(self.log.directory / name, self.path / name)
        )

    def _has_same_end(self, source: Path, target: Path) -> bool:
        tails = []
        for path in (source, target):
            file = self._files.open(path, read_only=True)
            size = file.append_position
            start = max(size - TAIL_BYTES, 0)
            tails.append((size, self._files.pread(file, size - start, start)))
        return tails[0] == tails[1]

    # --- copying

    def next_copy(self, max_bytes: int = COPY_BYTES) -> CopyPlan | None:
        """Plan the next step; returns None when `finish` may copy the rest.

        `max_bytes` limits what is copied of a .log file; indexes are copied whole. Raises OSError.
        """
        max_bytes = min(max_bytes, COPY_BYTES)
        for segment in self.log.segments:
            if segment in self._done:
                continue
            copied = self._copied.get(segment, 0)
            left = segment.size_bytes - copied
            is_closed = segment is not self.log.segments.active
            if left > (max_bytes if is_closed else FINAL_BYTES):
                return self._plan(segment, copied + min(left, max_bytes))
            if is_closed:
                return self._plan(segment, segment.size_bytes, is_whole=True)
        return None

    def name_active(self) -> CopyPlan | None:
        """Plan to copy the rest of the active segment and give it its final name.

        After that a broker that finds this directory finds the whole log. Returns None if the log
        has rolled since `next_copy`: a segment before is not complete. Raises OSError.
        """
        *closed, active = self.log.segments
        if not self._done.issuperset(closed):
            return None
        return self._plan(active, active.size_bytes, is_renamed=True)

    def note(self, plan: CopyPlan) -> None:
        """Record that the plan has been carried out."""
        self._copied[plan.segment] = plan.copied_bytes
        if plan.is_renamed:
            self._renamed.add(plan.segment)
        if plan.is_whole:
            self._done.add(plan.segment)
        for removed in self._copied.keys() - set(self.log.segments):
            del self._copied[removed]
            self._done.discard(removed)

    def read_rest(self) -> None:
        """Read what `finish` will read, so that it finds it in the page cache. Raises OSError."""
        self._plan(self.log.segments.active, 0, is_whole=True)  # opens files; it is not carried out
        self._missing_snapshots()

    def finish(self, *, sync: bool) -> list[Path]:
        """Copy what is left. Afterwards both directories hold the same log.

        Returns the small files that are never synced here: their content can be rebuilt from the
        batches. With `sync` all other files are. Raises OSError; then nothing has changed.
        """
        active = self.log.segments.active
        self.log.producers.finish_snapshot()
        self._plan(active, active.size_bytes, is_whole=True).run(sync=sync)
        snapshots = self._missing_snapshots()
        for path, data in snapshots.items():
            self._files.write(path, data, sync=False)
        epochs = self.path / LEADER_EPOCH_CHECKPOINT
        write_epochs(self._files, epochs, self.log.epochs.entries, sync=False)
        self._mark_deleted_files()
        return [*snapshots, epochs]

    def _plan(
        self,
        segment: Segment,
        copied_bytes: int,
        *,
        is_whole: bool = False,
        is_renamed: bool = False,
    ) -> CopyPlan:
        copied = self._copied.get(segment, 0)
        log_path = self._target(segment, FileKind.LOG, cleaned=segment not in self._renamed)
        ranges = [CopiedRange(segment.file, log_path, copied, copied_bytes - copied)]
        removals = []
        if is_renamed:
            # Before the log: Apache Kafka would take it without its aborted transactions.
            entries = self._index_range(segment, FileKind.TXN_INDEX)
            if entries is not None:
                ranges.insert(0, entries)
        if is_whole:
            for kind in _INDEXES:
                entries = self._index_range(segment, kind)
                if entries is None:
                    removals.append(self._target(segment, kind))
                else:
                    ranges.append(entries)
            if segment.base_offset in self.log.producers.snapshot_offsets:
                ranges.append(self._whole(segment, FileKind.PRODUCER_SNAPSHOT))
        return CopyPlan(
            files=self._files,
            directory=self.path,
            segment=segment,
            copied_bytes=copied_bytes,
            ranges=ranges,
            removals=removals,
            renames=[
                (each.target, each.target.with_suffix(""))
                for each in ranges
                if (is_whole or is_renamed) and each.target.suffix == FileState.CLEANED
            ],
            epochs=self.log.epochs.entries if is_whole or is_renamed else (),
            is_whole=is_whole,
            is_renamed=is_renamed,
        )

    def _index_range(self, segment: Segment, kind: FileKind) -> CopiedRange | None:
        """The whole index, or None if the segment has no file of that kind."""
        if kind is not FileKind.TXN_INDEX:
            target = self._target(segment, kind, cleaned=True)
            index = segment.offset_index if kind is FileKind.OFFSET_INDEX else segment.time_index
            return CopiedRange(index.write_out(), target, 0, index.size_bytes, index.file_bytes)
        return self._whole(segment, kind) if self._files.exists(segment.path(kind)) else None

    def _whole(self, segment: Segment, kind: FileKind) -> CopiedRange:
        file = self._files.open(segment.path(kind), read_only=True)
        target = self._target(segment, kind, cleaned=True)
        return CopiedRange(file, target, 0, file.append_position)

    def _target(self, segment: Segment, kind: FileKind, *, cleaned: bool = False) -> Path:
        state = FileState.CLEANED if cleaned else FileState.LIVE
        return self.path / segment_file(segment.base_offset, kind, state)

    # --- snapshots and deleted segments

    def _missing_snapshots(self) -> dict[Path, bytes]:
        """The producer snapshots that were not copied with a segment, by target path."""
        names = [
            segment_file(offset, FileKind.PRODUCER_SNAPSHOT)
            for offset in self.log.producers.snapshot_offsets
        ]
        return {
            self.path / name: self._files.read(self.log.directory / name)
            for name in names
            if not self._files.exists(self.path / name)
        }

    def _mark_deleted_files(self) -> None:
        """Rename to `.deleted` the files of segments that the log has deleted since the copy."""
        bases = set(self.log.segments.base_offsets)
        snapshots = set(self.log.producers.snapshot_offsets)
        for name in map(parse_segment_file, self._files.list_directory(self.path)):
            if name is None:
                continue
            is_snapshot = name.kind is FileKind.PRODUCER_SNAPSHOT
            if name.offset not in (snapshots if is_snapshot else bases):
                deleted = segment_file(name.offset, name.kind, FileState.DELETED)
                self._files.rename(self.path / segment_file(*name), self.path / deleted)
                self.deleted_files.append(deleted)
