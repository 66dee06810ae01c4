"""Reading the metadata from its directory: the newest snapshot, and the log behind it.

Nothing is written here, and no log need be open: so a directory that this node must not lead is
refused before anything in it has changed. A snapshot that is damaged is passed over for the one
before it, as long as the log still has what lies between; a log that ends before its newest
snapshot lost what the snapshot says, and goes on behind it. Kafka: KafkaRaftLog.recoverSnapshots,
truncateToLatestSnapshot, MetadataLoader.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from odradek.coordinator.journal import CorruptJournalError, replay_stored, stored_records
from odradek.coordinator.record_codec import MetadataRecordCodec
from odradek.protocol.record_batch import CorruptRecordError
from odradek.protocol.schema import DecodeError
from odradek.storage.batch_scan import CorruptBatchError
from odradek.storage.filenames import MetadataSnapshotName, metadata_snapshot_file
from odradek.storage.files import Files
from odradek.storage.log_reader import LogReader

from .cluster_metadata import ClusterMetadata
from .metadata_snapshot import read_snapshot, snapshots_in
from .quorum import Quorum, QuorumMember, check_alone, find_quorum
from .quorum_state import QuorumState, read_quorum_state
from .servability import check_servable

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataReading:
    """What a metadata directory says. The log has the offsets from `start_offset` to `end_offset`.

    `snapshot` is the one it began with; `damaged` are newer ones that could not be read.
    """

    metadata: ClusterMetadata
    quorum: Quorum
    state: QuorumState | None
    snapshot: MetadataSnapshotName | None
    damaged: tuple[MetadataSnapshotName, ...]
    start_offset: int
    end_offset: int

    @property
    def last_epoch(self) -> int:
        """The newest epoch of the quorum that its files name; the log may know a newer one."""
        known = (self.state.leader_epoch if self.state else 0, self.snapshot or (0, 0))
        return max(known[0], known[1][1])

    @property
    def goes_on_at(self) -> int:
        """The offset of the next record."""
        return max(self.end_offset, self.snapshot.end_offset if self.snapshot else 0)


def read_metadata(
    files: Files, directory: Path, cluster_id: str, *, torn_end_is_fine: bool = False
) -> MetadataReading:
    """Read all there is. Raises CorruptJournalError, QuorumStateError, OSError.

    With `torn_end_is_fine` the log ends before the first batch that is not sound, as it will once
    it has been recovered.
    """
    reader = LogReader(directory, files)
    segments = reader.segments()
    start_offset = segments[0].base_offset if segments else 0
    name, damaged, snapshot = _best_snapshot(files, directory, start_offset)
    metadata = ClusterMetadata(cluster_id)
    if name is not None:
        _replay_snapshot(metadata, snapshot, name, directory)
    first = max(start_offset, name.end_offset if name else 0)
    walk = _Walk(reader, first, torn_end_is_fine=torn_end_is_fine)
    codec = MetadataRecordCodec.of_cluster()
    try:
        stored = stored_records(walk.batches(), codec, directory.name)
        replay_stored(stored, metadata, first, directory.name)
        quorum = find_quorum(snapshot, name.end_offset if name else 0, walk.controls)
        end_offset = walk.end_offset
    except (DecodeError, CorruptRecordError) as error:
        raise CorruptJournalError(f"{directory.name}: {error}") from error
    return MetadataReading(
        metadata=metadata,
        quorum=quorum,
        state=read_quorum_state(files, directory),
        snapshot=name,
        damaged=damaged,
        start_offset=start_offset,
        end_offset=max(end_offset, start_offset),
    )


def check_reading(reading: MetadataReading, me: QuorumMember) -> None:
    """Raise NotAloneError or UnservableMetadataError unless this node may lead and serve it."""
    check_alone(reading.quorum, reading.state, me)
    check_servable(reading.metadata, me.node_id)


class _Walk:
    """One walk through the log from an offset on; then it knows the end, and control batches."""

    def __init__(self, reader: LogReader, start_offset: int, *, torn_end_is_fine: bool) -> None:
        self.controls: list[memoryview] = []
        self._reader = reader
        self._start_offset = start_offset
        self._torn_end_is_fine = torn_end_is_fine
        self._end_offset: int | None = None

    @property
    def end_offset(self) -> int:
        """Where the log ends, once the batches have been walked."""
        if self._end_offset is None:  # it lies before the start
            self._start_offset = 0
            for _ in self.batches():
                pass
        return self._end_offset or 0

    def batches(self) -> Iterator[memoryview]:
        """Every batch that ends behind the start."""
        try:
            for header, data in self._reader.batches(self._start_offset):
                self._end_offset = header.next_offset
                if header.is_control:
                    self.controls.append(memoryview(bytes(data)))
                yield data
        except CorruptBatchError as error:
            if not self._torn_end_is_fine:
                raise
            _logger.warning("the metadata log ends early: %s", error)


def _best_snapshot(
    files: Files, directory: Path, start_offset: int
) -> tuple[MetadataSnapshotName | None, tuple[MetadataSnapshotName, ...], list[memoryview]]:
    """The newest snapshot that is sound, those newer, and its batches."""
    names = snapshots_in(files, directory)
    damaged: list[MetadataSnapshotName] = []
    first_error: CorruptJournalError | None = None
    for name in reversed(names):
        if name.end_offset < start_offset:
            break
        try:
            batches = read_snapshot(files, directory / metadata_snapshot_file(*name))
        except CorruptJournalError as error:
            first_error = first_error or error
            damaged.append(name)
        else:
            return name, tuple(damaged), batches
    # Without any the log must have it all. That of offset 0 names voters who are not in the log.
    if start_offset == 0 and not any(name.end_offset == 0 for name in damaged):
        return None, tuple(damaged), []
    if first_error is not None:
        raise first_error
    raise CorruptJournalError(
        f"{directory}: the log begins at offset {start_offset}, and no snapshot tells what was "
        f"before (the newest: {names[-1] if names else 'none'})"
    )


def _replay_snapshot(
    metadata: ClusterMetadata,
    batches: Sequence[memoryview],
    name: MetadataSnapshotName,
    directory: Path,
) -> None:
    place = f"{directory}/{metadata_snapshot_file(*name)}"
    stored = (
        (record, replace(context, offset=name.end_offset - 1))
        for record, context in stored_records(batches, MetadataRecordCodec.of_cluster(), place)
    )
    try:
        replay_stored(stored, metadata, -1, place)
    except (DecodeError, CorruptRecordError) as error:
        raise CorruptJournalError(f"{place}: {error}") from error
