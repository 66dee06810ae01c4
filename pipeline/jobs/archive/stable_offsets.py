"""Remembers which transactions are open, so that no run reads a growing segment from its start.

Only producer snapshots say so on disk, and a broker writes them when a segment is full. What is
remembered of a log holds as long as the log has the last batch that was read.
"""

from typing import NamedTuple

from odradek.pipeline.jobs.archive.table.state import BatchMark, PartitionKey
from odradek.pipeline.reading.isolation import open_transactions
from odradek.pipeline.reading.open_transactions import NONE_OPEN, OpenTransactions
from odradek.pipeline.reading.partitions import LogDirectories
from odradek.storage.topic_partition import TopicPartition

from .batch_marks import mark_before, matches_mark


class _Known(NamedTuple):
    transactions: OpenTransactions
    mark: BatchMark | None


class StableOffsets:
    """Finds the last stable offsets of growing logs. The result is that of `isolation`."""

    def __init__(self) -> None:
        self._known: dict[PartitionKey, _Known] = {}

    def of(
        self, directories: LogDirectories, partition: TopicPartition, key: PartitionKey, end: int
    ) -> int:
        """Return where the oldest transaction begins that is open at `end`; `end` if none is.

        Raises FileNotFoundError, CorruptRecordError.
        """
        known = NONE_OPEN
        before = self._known.pop(key, None)
        if (
            before is not None
            and before.mark is not None
            and before.transactions.offset <= end
            and matches_mark(directories, partition, before.mark)
        ):
            known = before.transactions
        found = open_transactions(directories, partition, end, known)
        self._known[key] = _Known(found, mark_before(directories, partition, end))
        return found.last_stable_offset
