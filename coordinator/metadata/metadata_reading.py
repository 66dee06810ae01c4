"""Reads the metadata from its directory: the newest snapshot, and the log after it.

The snapshot of offset 0 is not a part of the log. It has what formatting decided: the voters, and
since Kafka 4.4 the log's first records (KIP-1170), which Kafka 4.3 has in `bootstrap.checkpoint`.

Nothing is written, and the log need not be open. So a directory that this node must not lead is
refused before anything in it has changed. Instead of a damaged snapshot the one before it is used,
if the log still has the records between them. A log that ends before its newest snapshot has lost
records that the snapshot has; it continues at the snapshot's end. Kafka:
KafkaRaftLog.recoverSnapshots, truncateToLatestSnapshot, MetadataLoader, BootstrapMetadata,
QuorumMetaLogListener.handleLoadBootstrap.
"""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from odradek.coordinator.runtime.journal import replay_stored, stored_records
from odradek.coordinator.runtime.outcome import JournalRecord, ReplayContext
from odradek.coordinator.runtime.record_codec import CorruptJournalError, MetadataRecordCodec
from odradek.protocol.batch_header import CorruptRecordError
from odradek.protocol.schema import DecodeError
from odradek.storage.batch_scan import CorruptBatchError
from odradek.storage.filenames import (
    BOOTSTRAP_CHECKPOINT,
    MetadataSnapshotName,
    metadata_snapshot_file,
)
from odradek.storage.files import Files
from odradek.storage.log_reader import LogReader

from .cluster_metadata import ClusterMetadata
from .features import bootstrap_records
from .metadata_snapshot import newest_sound_snapshot, read_snapshot
from .quorum import Quorum, QuorumMember, check_sole_voter, find_quorum
from .quorum_state import QuorumState, read_quorum_state
from .servability import check_servable

_logger = logging.getLogger(__name__)


class MetadataReading(Struct, frozen=True, kw_only=True):
    """The content of a metadata directory.

    `first_records` are those that the log begins with; none if it has begun already. The log has
    the offsets from `start_offset` to `end_offset` (excluded). `snapshot` is the one that was read;
    `damaged` are newer ones that could not be read.
    """

    metadata: ClusterMetadata
    first_records: tuple[JournalRecord, ...]
    quorum: Quorum
    state: QuorumState | None
    snapshot: MetadataSnapshotName | None
    damaged: tuple[MetadataSnapshotName, ...]
    start_offset: int
    end_offset: int

    @property
    def last_epoch(self) -> int:
        """The newest epoch in `quorum-state` and the snapshot's name; the log may have a newer."""
        return max(
            self.state.leader_epoch if self.state else 0,
            self.snapshot.epoch if self.snapshot else 0,
        )

    @property
    def next_offset(self) -> int:
        """The offset of the next record."""
        return max(self.end_offset, self.snapshot.end_offset if self.snapshot else 0)


def read_metadata(
    files: Files, directory: Path, cluster_id: str, *, allow_torn_end: bool = False
) -> MetadataReading:
    """Read the metadata. Raises CorruptJournalError, QuorumStateError, OSError.

    `allow_torn_end`: let the log end before its first damaged batch, as it will after recovery.
    """
    reader = LogReader(directory, files)
    segments = reader.segments()
    start_offset = segments[0].base_offset if segments else 0
    name, damaged, snapshot = newest_sound_snapshot(files, directory, start_offset)
    metadata = ClusterMetadata(cluster_id)
    if name is not None and name.end_offset > 0:
        _replay_snapshot(metadata, snapshot, name, directory)
    first = max(start_offset, name.end_offset if name else 0)
    walk = _LogWalk(reader, first, allow_torn_end=allow_torn_end)
    codec = MetadataRecordCodec.of_cluster()
    try:
        stored = stored_records(walk.batches(), codec, directory.name)
        replay_stored(stored, metadata, first, directory.name)
        quorum = find_quorum(snapshot, name.end_offset if name else 0, walk.controls)
        end_offset = walk.end_offset
        first_records = (
            () if metadata.is_bootstrapped else _first_records(files, directory, snapshot)
        )
    except (DecodeError, CorruptRecordError) as error:
        raise CorruptJournalError(f"{directory.name}: {error}") from error
    return MetadataReading(
        metadata=metadata,
        first_records=first_records,
        quorum=quorum,
        state=read_quorum_state(files, directory),
        snapshot=name,
        damaged=damaged,
        start_offset=start_offset,
        end_offset=max(end_offset, start_offset),
    )


def check_reading(reading: MetadataReading, me: QuorumMember) -> None:
    """Raise NotSoleVoterError or UnsupportedMetadataError if this node must not serve it."""
    check_sole_voter(reading.quorum, reading.state, me)
    metadata = reading.metadata
    if reading.first_records:
        metadata = ClusterMetadata(metadata.cluster_id)
        for record in reading.first_records:
            metadata.replay(record, ReplayContext(offset=0, timestamp_ms=0))
    check_servable(metadata, me.node_id)


class _LogWalk:
    """Reads the batches of a log from an offset on, and collects control batches and the end."""

    def __init__(self, reader: LogReader, start_offset: int, *, allow_torn_end: bool) -> None:
        self.controls: list[memoryview] = []
        self._reader = reader
        self._start_offset = start_offset
        self._allow_torn_end = allow_torn_end
        self._end_offset: int | None = None

    @property
    def end_offset(self) -> int:
        """The end of the log. Call it after `batches` has been read."""
        if self._end_offset is None:  # the log ends before the start offset
            self._start_offset = 0
            for _ in self.batches():
                pass
        return self._end_offset or 0

    def batches(self) -> Iterator[memoryview]:
        """Iterate over the batches that have offsets from the start offset on."""
        try:
            for header, data in self._reader.batches(self._start_offset):
                expected = self._end_offset
                if self._allow_torn_end and expected not in (None, header.base_offset):
                    _logger.warning("the metadata log ends early: no records at %d", expected)
                    return
                self._end_offset = header.next_offset
                if header.is_control:
                    self.controls.append(memoryview(bytes(data)))
                yield data
        except CorruptBatchError as error:
            if not self._allow_torn_end:
                raise
            _logger.warning("the metadata log ends early: %s", error)


def _first_records(
    files: Files, directory: Path, snapshot: Sequence[memoryview]
) -> tuple[JournalRecord, ...]:
    """Return the records in the snapshot of offset 0, else those of `bootstrap.checkpoint`.

    Without both they are those of a new directory.
    """
    codec = MetadataRecordCodec.of_cluster()
    path = directory.parent / BOOTSTRAP_CHECKPOINT
    in_snapshot = list(stored_records(snapshot, codec, directory.name))
    if not in_snapshot and not files.exists(path):
        return bootstrap_records()
    stored = in_snapshot or stored_records(read_snapshot(files, path), codec, str(path))
    return tuple(record for record, _ in stored if isinstance(record, JournalRecord))


def _replay_snapshot(
    metadata: ClusterMetadata,
    batches: Sequence[memoryview],
    name: MetadataSnapshotName,
    directory: Path,
) -> None:
    path = f"{directory}/{metadata_snapshot_file(*name)}"
    stored = (
        (record, replace(context, offset=name.end_offset - 1))
        for record, context in stored_records(batches, MetadataRecordCodec.of_cluster(), path)
    )
    try:
        replay_stored(stored, metadata, -1, path)
    except (DecodeError, CorruptRecordError) as error:
        raise CorruptJournalError(f"{path}: {error}") from error
