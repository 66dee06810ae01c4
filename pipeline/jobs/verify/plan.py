"""Lists log directories: the segments to check, and files that do not belong to a broker."""

import heapq
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from odradek.pipeline.reading.partitions import LogDirectories
from odradek.storage.checkpoints import CheckpointError, read_offsets
from odradek.storage.filenames import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSET_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOCK,
    PARTITION_METADATA,
    QUORUM_STATE,
    ROOT_FILES,
    DirectoryState,
    FileKind,
    FileState,
    SegmentFileName,
    is_foreign_directory,
    is_unfinished_snapshot,
    parse_metadata_snapshot_file,
    parse_partition_directory,
    parse_segment_file,
    segment_file,
)
from odradek.storage.files import TEMPORARY_SUFFIX, Files
from odradek.storage.topic_partition import TopicPartition

from .findings import Findings, Kind
from .segment_check import FileVersion, SegmentWork

_PARTITION_FILES = frozenset({LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA, QUORUM_STATE})
_SEGMENT_FILES = (FileKind.LOG, FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TXN_INDEX)
_TASKS_PER_CORE = 4
_SMALLEST_TASK_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class LogRoot:
    """A log directory. `is_running`: a broker holds its lock."""

    path: Path
    is_running: bool
    stopped_cleanly: bool
    partitions: tuple[TopicPartition, ...]


@dataclass(slots=True)
class PartitionListing:
    """The directory of one partition, at the time it was listed."""

    partition: TopicPartition
    directory: Path
    segments: list[SegmentWork]
    findings: Findings = field(default_factory=Findings)


def list_root(files: Files, path: Path, topics: Collection[str] | None = None) -> LogRoot:
    """Return the partitions in a log directory, of all or the given topics. Raises OSError."""
    partitions = [
        partition
        for partition in LogDirectories([path], files).partitions()
        if topics is None or partition.topic in topics
    ]
    is_running = files.is_locked(path / LOCK)
    stopped_cleanly = not is_running and files.exists(path / CLEAN_SHUTDOWN)
    return LogRoot(path, is_running, stopped_cleanly, tuple(partitions))


def note_unknown_files(files: Files, root: Path, findings: Findings) -> None:
    """Note what is in a log directory and is not a broker's. Raises OSError."""
    for name in files.list_directory(root):
        path = root / name
        if not files.is_directory(path):
            if name not in ROOT_FILES and not name.endswith(TEMPORARY_SUFFIX):
                findings.note(Kind.FILE, str(path), "not a file of a broker")
            continue
        try:
            state = parse_partition_directory(name).state
        except ValueError as error:
            if not is_foreign_directory(name):
                findings.problem(Kind.FILE, str(path), str(error))
            continue
        if state is DirectoryState.STRAY:
            findings.note(Kind.FILE, str(path), "a stray log, which belongs to no topic")


def cleaned_offsets(files: Files, root: Path, findings: Findings) -> dict[TopicPartition, int]:
    """Return the cleaner's checkpoint; add a note and return nothing if it cannot be read."""
    path = root / CLEANER_OFFSET_CHECKPOINT
    try:
        return read_offsets(files, path)
    except (CheckpointError, OSError) as error:
        what = f"cannot be read, so gaps are judged by the batches alone: {error}"
        findings.note(Kind.FILE, str(path), what)
        return {}


def list_partition(
    files: Files, root: LogRoot, partition: TopicPartition, *, deep: bool
) -> PartitionListing | None:
    """List a partition's directory; return None if it no longer exists."""
    directory = root.path / str(partition)
    try:
        names = files.list_directory(directory)
    except FileNotFoundError:
        return None
    parsed = [name for name in map(parse_segment_file, names) if name is not None]
    live = [name for name in parsed if name.state is FileState.LIVE]
    bases = sorted(name.offset for name in live if name.kind is FileKind.LOG)
    listing = PartitionListing(partition, directory, [])
    snapshots = sorted(each.offset for each in live if each.kind is FileKind.PRODUCER_SNAPSHOT)
    for base in bases:
        is_last = base == bases[-1]
        versions = tuple(_version(directory / segment_file(base, kind)) for kind in _SEGMENT_FILES)
        if versions[0] is None:
            continue
        work = SegmentWork(
            directory=directory,
            base_offset=base,
            size_bytes=versions[0].size_bytes,
            versions=versions,
            is_active=is_last and not root.stopped_cleanly,
            snapshots=tuple(
                each for each in snapshots if each == base or (is_last and each not in bases)
            ),
            deep=deep,
        )
        listing.segments.append(work)
    if not bases:
        listing.findings.note(Kind.FILE, str(directory), "contains no segment")
    _note_other_files(listing, names, parsed, set(bases), is_running=root.is_running)
    _note_snapshots(listing, snapshots, set(bases))
    return listing


def _version(path: Path) -> FileVersion | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return FileVersion(status.st_ino, status.st_size, status.st_mtime_ns)


def _note_other_files(
    listing: PartitionListing,
    names: Iterable[str],
    parsed: Iterable[SegmentFileName],
    bases: set[int],
    *,
    is_running: bool,
) -> None:
    for each in parsed:
        path = str(listing.directory / segment_file(*each))
        if each.state is FileState.LIVE:
            if each.kind not in (FileKind.LOG, FileKind.PRODUCER_SNAPSHOT) and (
                each.offset not in bases
            ):
                listing.findings.note(Kind.FILE, path, "belongs to no segment")
        elif not is_running:
            listing.findings.note(
                Kind.FILE, path, "unfinished; the next start of the broker removes it"
            )
    for name in names:
        if not _is_known(name):
            path = str(listing.directory / name)
            listing.findings.note(Kind.FILE, path, "not a file of a broker")


def _is_known(name: str) -> bool:
    return (
        name in _PARTITION_FILES
        or name.endswith(TEMPORARY_SUFFIX)
        or parse_segment_file(name) is not None
        or parse_metadata_snapshot_file(name) is not None
        or is_unfinished_snapshot(name)
    )


def _note_snapshots(listing: PartitionListing, snapshots: list[int], bases: set[int]) -> None:
    for offset in snapshots[:-1]:
        if offset not in bases:
            name = segment_file(offset, FileKind.PRODUCER_SNAPSHOT)
            path = str(listing.directory / name)
            listing.findings.note(Kind.FILE, path, "a producer snapshot that belongs to no segment")


def divide_into_tasks(works: Sequence[SegmentWork], parallelism: int) -> list[list[SegmentWork]]:
    """Return tasks of about equal bytes: several per core, or fewer if they would be small."""
    if not works:
        return []
    total = sum(work.size_bytes for work in works)
    max_tasks = max(1, -(-total // _SMALLEST_TASK_BYTES))
    count = min(len(works), parallelism * _TASKS_PER_CORE, max_tasks)
    tasks: list[list[SegmentWork]] = [[] for _ in range(count)]
    loads = [(0, 0, number) for number in range(count)]
    for work in sorted(works, key=lambda each: -each.size_bytes):
        load, segments, number = heapq.heappop(loads)
        tasks[number].append(work)
        heapq.heappush(loads, (load + work.size_bytes, segments + 1, number))
    return tasks
