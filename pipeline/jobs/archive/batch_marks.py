"""Identifies the batches at the ends of archived ranges, to find out whether a log has changed.

A log has diverged from its archive if it has lost records that were archived. A power cut can take
records that were not synced; the broker then gives their offsets to other records. So the log has
diverged if it ends before an archived offset, or if the batch there has another leader epoch or
checksum.

The log cleaner also changes batches, and that is no divergence. A batch was cleaned if it lacks
some of its records, or has a delete horizon (KIP-534). Its checksum may differ: only its leader
epoch is compared. If a batch is missing and the log goes on after it, the cleaner has removed it,
and there is nothing to compare.
"""

from bisect import bisect_right
from typing import NamedTuple

from odradek.pipeline.jobs.archive.table.state import BatchMark, PartitionState
from odradek.pipeline.reading.index_lookup import position_before
from odradek.pipeline.reading.partitions import LogDirectories
from odradek.protocol.batch_header import BatchHeader, CorruptRecordError
from odradek.storage.log_reader import LogReader
from odradek.storage.topic_partition import TopicPartition


class _Place(NamedTuple):
    """The batch of a log that has an offset; None if there is none.

    `is_after_end`: the log ends at or before the offset.
    """

    batch: BatchHeader | None
    is_after_end: bool = False

    @property
    def is_cleaned(self) -> bool:
        """Whether the cleaner has changed or removed the batch."""
        if self.batch is None:
            return not self.is_after_end
        has_fewer = self.batch.record_count <= self.batch.last_offset_delta
        return self.batch.has_delete_horizon or has_fewer


def mark_before(
    directories: LogDirectories, partition: TopicPartition, end: int
) -> BatchMark | None:
    """Return the mark of the batch that has offset `end` - 1.

    None if no batch has it, or if the log cannot be read there.
    """
    try:
        batch = _place(directories, partition, end - 1).batch
    except (OSError, CorruptRecordError):
        return None  # the reader of the range reports it
    if batch is None:
        return None
    return BatchMark(end=end, leader_epoch=batch.partition_leader_epoch, crc=batch.crc)


def has_diverged(
    directories: LogDirectories,
    partition: TopicPartition,
    archived: PartitionState,
    log_start: int,
) -> bool:
    """Whether the log has lost archived records. Raises CorruptRecordError, OSError.

    Records before `log_start`, which retention or a user has deleted, are not lost in this sense.
    """
    if archived.end <= log_start:
        return False
    if _place(directories, partition, archived.end - 1).is_after_end:
        return True
    newest = archived.marks[-1] if archived.marks else None
    if newest is None or newest.end <= log_start:
        return False
    return not matches_mark(directories, partition, newest)


def matches_mark(directories: LogDirectories, partition: TopicPartition, mark: BatchMark) -> bool:
    """Whether the log has the batch of a mark, or the cleaner has changed or removed it.

    Raises CorruptRecordError, OSError.
    """
    place = _place(directories, partition, mark.end - 1)
    if place.batch is None:
        return place.is_cleaned
    same_epoch = place.batch.partition_leader_epoch == mark.leader_epoch
    return same_epoch and (place.batch.crc == mark.crc or place.is_cleaned)


def is_cleaned(directories: LogDirectories, partition: TopicPartition, offset: int) -> bool:
    """Whether the cleaner has changed or removed the batch of an offset.

    Raises CorruptRecordError, OSError.
    """
    return _place(directories, partition, offset).is_cleaned


def _place(directories: LogDirectories, partition: TopicPartition, offset: int) -> _Place:
    return directories.retry(partition, lambda reader: _find(reader, offset))


def _find(reader: LogReader, offset: int) -> _Place:
    segments = reader.segments()
    # The index of the first segment that begins after the offset. The one before it may contain it.
    following = bisect_right(segments, offset, key=lambda segment: segment.base_offset)
    if following:
        segment = reader.open(segments[following - 1])
        for _, batch in segment.headers(position_before(segment, offset)):
            if batch.last_offset >= offset:
                return _Place(batch if batch.base_offset <= offset else None)
    return _Place(None, is_after_end=following == len(segments))
