"""A log on its way to another log directory: `TOPIC-PARTITION.UNIQUEID-future` there.

    prepare                     what lies there already is looked at
    next_copy, run, note        until little is left: closed segments first, the oldest before all
    reveal, run, note           what was copied of the active segment gets its own name
    (the metadata names the new directory)
    next_copy, run, note        what has come since
    finish                      the rest and the books, at once; then LogManager.promote renames

The copy is the same to the byte, so the log goes on in it with all that it has in memory. Until the
last moment the old directory is the log, and at any time the new one holds sound segments from the
log's start on: a file that is still being written ends in `.cleaned`, which Apache Kafka too throws
away at its start. So after a crash either one can be the log, and the longer one is (LogManager).

Retention and DeleteRecords go on meanwhile; the cleaner must wait, as in Kafka. A segment that was
cleaned all the same is another object, and is copied again.
"""

from pathlib import Path

from odradek.storage.checkpoints import TopicPartition, write_epochs, write_topic_id
from odradek.storage.directories.data_directory import DataDirectory
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

from .copy_plan import CopiedRange, CopyPlan

COPY_BYTES = 32 << 20  # of one plan: also how much may wait to be synced
FINAL_BYTES = 1 << 20  # at most so much is copied by `finish`, which nobody can interrupt
TAIL_BYTES = 4096  # by which a copy is known again after a restart

_INDEXES = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TXN_INDEX)


class FutureLog:
    """The copy of `log` in `path`, a directory in `home`. Born empty, or with what lies there."""

    def __init__(self, files: Files, log: PartitionLog, home: DataDirectory, path: Path) -> None:
        """Only makes the directory; see `prepare`. Raises OSError."""
        self.log = log
        self.home = home
        self.path = path
        self.is_cancelled = False
        self.gone: list[str] = []  # files in it that are to be deleted once it is the log
        self._files = files
        self._copied: dict[Segment, int] = {}  # bytes of the .log
        self._done: set[Segment] = set()
        self._revealed: set[Segment] = set()  # whose .log has its own name before all is copied
        files.make_directory(path)

    def prepare(self) -> None:
        """Keep the closed segments that lie there and are the log's; remove all else.

        To be called once, before anything is copied, on any thread. Raises OSError.
        """
        self._keep_what_is_sound()
        if self.log.topic_id is not None:
            write_topic_id(self._files, self.path / PARTITION_METADATA, self.log.topic_id)
        self._files.fsync_directory(self.home.path)

    def __repr__(self) -> str:
        return f"FutureLog({self.log.name}, {self.path})"

    # --- what there is

    @property
    def key(self) -> TopicPartition:
        return self.log.key

    @property
    def size_bytes(self) -> int:
        return sum(self._copied.values())

    @property
    def end_offset(self) -> int:
        """Up to where it holds the log, as far as that is known without looking into segments."""
        for segment in self.log.segments:
            if segment not in self._done:
                at_end = self._copied.get(segment, 0) == segment.size_bytes
                is_active = segment is self.log.segments.active
                return self.log.log_end_offset if at_end and is_active else segment.base_offset
        return self.log.log_end_offset

    @property
    def lag(self) -> int:
        """How many offsets are not copied yet."""
        return max(self.log.log_end_offset - self.end_offset, 0)

    # --- after a restart

    def _keep_what_is_sound(self) -> None:
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
        """Whether its files are there, of the same length, and its log ends with the same bytes."""
        for kind in (FileKind.LOG, *_INDEXES):
            source, name = segment.path(kind), segment_file(segment.base_offset, kind)
            if not self._files.exists(source):
                if name in names:
                    return False
            elif name not in names or not self._ends_alike(source, self.path / name):
                return False
        return segment.size_bytes == self._files.size(segment.path(FileKind.LOG))

    def _has_snapshot(self, segment: Segment, names: set[str]) -> bool:
        name = segment_file(segment.base_offset, FileKind.PRODUCER_SNAPSHOT)
        return (
            segment.base_offset in self.log.producers.snapshot_offsets
            and name in names
            and self._ends_alike(self.log.directory / name, self.path / name)
        )

    def _ends_alike(self, one: Path, other: Path) -> bool:
        tails = []
        for path in (one, other):
            file = self._files.open(path, read_only=True)
            size = file.append_position
            start = max(size - TAIL_BYTES, 0)
            tails.append((size, self._files.pread(file, size - start, start)))
        return tails[0] == tails[1]

    # --- copying

    def next_copy(self, most_bytes: int = COPY_BYTES) -> CopyPlan | None:
        """What to copy next; None when so little is left that `finish` may do it.

        `most_bytes`: not more of a .log file than this, but all of its indexes. Raises OSError.
        """
        most_bytes = min(most_bytes, COPY_BYTES)
        for segment in self.log.segments:
            if segment in self._done:
                continue
            copied = self._copied.get(segment, 0)
            left = segment.size_bytes - copied
            is_closed = segment is not self.log.segments.active
            if left > (most_bytes if is_closed else FINAL_BYTES):
                return self._plan(segment, copied + min(left, most_bytes))
            if is_closed:
                return self._plan(segment, segment.size_bytes, is_whole=True)
        return None

    def reveal(self) -> CopyPlan:
        """Copy all there is of the active segment, and give it its own name.

        From then on a broker that finds this directory finds the whole log. Raises OSError.
        """
        active = self.log.segments.active
        return self._plan(active, active.size_bytes, is_revealed=True)

    def note(self, plan: CopyPlan) -> None:
        """The plan was carried out."""
        self._copied[plan.segment] = plan.copied_bytes
        if plan.is_revealed:
            self._revealed.add(plan.segment)
        if plan.is_whole:
            self._done.add(plan.segment)
        for gone in self._copied.keys() - set(self.log.segments):
            del self._copied[gone]
            self._done.discard(gone)

    def read_rest(self) -> None:
        """Read what `finish` will read, and change nothing. Raises OSError."""
        self._plan(self.log.segments.active, 0, is_whole=True)
        self._missing_snapshots()

    def finish(self, *, sync: bool) -> list[Path]:
        """Copy what is left, here and now: the log is the same in both directories then.

        With `sync` nothing of it is lost in a power cut but the small files that are returned,
        whose content is also in the batches. Raises OSError: then nothing has changed.
        """
        active = self.log.segments.active
        self._plan(active, active.size_bytes, is_whole=True).run(sync=sync)
        snapshots = self._missing_snapshots()
        for path, data in snapshots.items():
            self._files.write(path, data, sync=False)
        epochs = self.path / LEADER_EPOCH_CHECKPOINT
        write_epochs(self._files, epochs, self.log.epochs.entries, sync=False)
        self._mark_what_is_gone()
        return [*snapshots, epochs]

    def _plan(
        self,
        segment: Segment,
        copied_bytes: int,
        *,
        is_whole: bool = False,
        is_revealed: bool = False,
    ) -> CopyPlan:
        copied = self._copied.get(segment, 0)
        log_path = self._target(segment, FileKind.LOG, cleaned=segment not in self._revealed)
        ranges = [CopiedRange(segment.file, log_path, copied, copied_bytes - copied)]
        removals = []
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
                (one.target, one.target.with_suffix(""))
                for one in ranges
                if (is_whole or is_revealed) and one.target.suffix == FileState.CLEANED
            ],
            epochs=self.log.epochs.entries if is_whole or is_revealed else (),
            is_whole=is_whole,
            is_revealed=is_revealed,
        )

    def _index_range(self, segment: Segment, kind: FileKind) -> CopiedRange | None:
        """All of an index; None where the segment has none of that kind."""
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

    # --- the books

    def _missing_snapshots(self) -> dict[Path, bytes]:
        """The producer snapshots that did not come with a segment, by where they belong."""
        names = [
            segment_file(offset, FileKind.PRODUCER_SNAPSHOT)
            for offset in self.log.producers.snapshot_offsets
        ]
        return {
            self.path / name: self._files.read(self.log.directory / name)
            for name in names
            if not self._files.exists(self.path / name)
        }

    def _mark_what_is_gone(self) -> None:
        """Files of segments that the log has let go of since they were copied, to be deleted."""
        bases = set(self.log.segments.base_offsets)
        snapshots = set(self.log.producers.snapshot_offsets)
        for name in map(parse_segment_file, self._files.list_directory(self.path)):
            if name is None:
                continue
            is_snapshot = name.kind is FileKind.PRODUCER_SNAPSHOT
            if name.offset not in (snapshots if is_snapshot else bases):
                deleted = segment_file(name.offset, name.kind, FileState.DELETED)
                self._files.rename(self.path / segment_file(*name), self.path / deleted)
                self.gone.append(deleted)
