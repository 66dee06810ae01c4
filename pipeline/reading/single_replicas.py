"""Finds the partitions that have a single replica, in a broker's copy of `__cluster_metadata`.

A PartitionRecord has the replicas of a partition, and a PartitionChangeRecord replaces them. Both
name the topic by its id. The log is read from its newest snapshot on, and what is appended later is
read at the next call.

A partition that had several replicas once counts as replicated until the records that say so are
replaced by a snapshot: the broker may not have applied the newest records yet.
"""

from itertools import zip_longest
from pathlib import Path

from odradek.protocol.records.cluster_metadata import (
    RECORD_TYPES,
    PartitionChangeRecord,
    PartitionRecord,
)
from odradek.protocol.records.metadata_frame import read_frame
from odradek.protocol.schema import DecodeError
from odradek.storage.batch_scan import read_batches
from odradek.storage.filenames import metadata_snapshot_file, parse_metadata_snapshot_file
from odradek.storage.files import Files
from odradek.storage.log_reader import LogReader, OpenSegment, StoredBatch

from .index_lookup import position_before
from .missing_files import read_until_found

_NOTHING_READ = -1


class SingleReplicas:
    """Reads the metadata log in `directory`, which a broker may be writing."""

    def __init__(self, files: Files, directory: Path) -> None:
        self._log = LogReader(directory, files)
        self._next_offset = _NOTHING_READ
        self._is_single: dict[tuple[bytes, int], bool] = {}  # by topic id and partition

    def contain(self, topic_id: bytes, partition: int) -> bool:
        """Whether the partition is known to have a single replica.

        Raises CorruptRecordError, DecodeError, OSError.
        """
        files, directory = self._log.files, self._log.directory
        read_until_found(self._read_on, lambda: files.is_directory(directory))
        return self._is_single.get((topic_id, partition), False)

    def _read_on(self) -> None:
        self._read_snapshot()
        self._read_log()

    def _read_snapshot(self) -> None:
        """Read the newest snapshot, unless the log was read as far as that."""
        files, directory = self._log.files, self._log.directory
        names = map(parse_metadata_snapshot_file, files.list_directory(directory))
        newest = max(filter(None, names), default=None)
        if newest is None or newest.end_offset <= self._next_offset:
            return
        file = files.open(directory / metadata_snapshot_file(*newest), read_only=True)
        for header, data in read_batches(files, file, 0, file.append_position):
            self._add(StoredBatch(header, data))
        self._next_offset = newest.end_offset

    def _read_log(self) -> None:
        segments = self._log.segments()
        for segment, following in zip_longest(segments, segments[1:]):
            if following is None or following.base_offset > self._next_offset:
                self._read_segment(self._log.open(segment))

    def _read_segment(self, segment: OpenSegment) -> None:
        for batch in segment.batches(position_before(segment, self._next_offset)):
            if batch.header.last_offset >= self._next_offset:
                self._add(batch)
                self._next_offset = batch.header.next_offset

    def _add(self, batch: StoredBatch) -> None:
        if batch.header.is_control:
            return
        for record in batch.records():
            assignment = _assignment(record.value or b"")
            if assignment is not None and assignment.replicas is not None:
                key = assignment.topic_id, assignment.partition_id
                is_single = len(assignment.replicas) == 1
                self._is_single[key] = is_single and self._is_single.get(key, True)


def _assignment(value: bytes) -> PartitionRecord | PartitionChangeRecord | None:
    """Decode a record that has the replicas of a partition. Raises DecodeError."""
    number, version, position = read_frame(value)
    kind = RECORD_TYPES.get(number)
    if kind not in (PartitionRecord, PartitionChangeRecord):
        return None
    if version not in kind.SPEC.versions:
        raise DecodeError(f"version {version} of {kind.__name__} is not known")
    message = kind.decode(value, version, position)
    assert isinstance(message, PartitionRecord | PartitionChangeRecord)
    return message
