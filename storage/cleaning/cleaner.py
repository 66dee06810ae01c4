"""The log cleaner: one round of compaction over one log, which keeps the last record of every key.

    1  read the dirty part into the offset map (key -> last offset), to its end or until it is full
    2  group the segments up to there, including the clean ones
    3  rewrite each group as one segment, without the records that a later one replaces

It reads only the files of closed segments, writes only `.cleaned` files, and uses neither the log
nor a clock. So it can run in another process while the log is appended to and read; a round keeps
one CPU busy. The broker swaps the `.cleaned` files in, see segment_swap.py. Tasks and results are
in task.py, the rules for records in batch_filter.py.

Kafka: Cleaner. Known difference: a batch that cannot be read is copied unchanged; in Kafka it ends
the cleaning of its partition.
"""

from collections.abc import Callable, Sequence

from odradek.storage.filenames import FileKind
from odradek.storage.files import Files

from .batch_filter import BatchFilter
from .cleaned_segment import CleanedSegmentWriter, SegmentOverflowError
from .cleaned_transactions import CleanedTransactions
from .input import CleanerInput
from .offset_map import OffsetMap
from .offset_map_build import OffsetMapBuilder
from .segment_groups import group_segments
from .segment_split import split_segment
from .task import (
    CleanedGroup,
    CleanerStats,
    CleaningResult,
    CleaningTask,
    SegmentToClean,
)

__all__ = ["Cleaner", "SegmentOverflowError"]

LOAD_FACTOR = 0.9
IO_BUFFER_BYTES = 512 << 10
_SMALLEST_BUFFER_BYTES = 4096
_MAX_REPORTED = 20  # unreadable batches in one result


class Cleaner:
    """Cleans one log after another. The offset map is new for each and limited by the buffer.

    `on_io` is called with the size of every read and write and may sleep.
    """

    def __init__(
        self,
        files: Files,
        *,
        dedupe_buffer_bytes: int,
        load_factor: float = LOAD_FACTOR,
        io_buffer_bytes: int = IO_BUFFER_BYTES,
        on_io: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Raises ValueError if the buffer is too small for a map."""
        self._files = files
        self._offsets = OffsetMap(dedupe_buffer_bytes, load_factor)
        buffer_bytes = max(io_buffer_bytes, _SMALLEST_BUFFER_BYTES)
        self._source = CleanerInput(files, buffer_bytes, on_io)

    def clean(self, task: CleaningTask, on_group: Callable[[CleanedGroup], None]) -> CleaningResult:
        """Run one round. `on_group` is called with each group when its files are synced.

        Raises SegmentOverflowError (see `split`); CorruptBatchError if the end of a batch cannot be
        found; OSError. Groups that were passed to `on_group` stay valid.
        """
        stats = CleanerStats()
        transactions = CleanedTransactions(task.aborted)
        end_offset = OffsetMapBuilder(
            self._source, task, self._offsets, transactions, stats
        ).build()
        batch_filter = BatchFilter(task, self._offsets, CleanedTransactions(task.aborted), stats)
        groups = self._groups(task, end_offset)
        # Read before the first group is swapped in, which may remove the file with this time.
        old_horizon_ms = self._old_horizon_ms(task)
        for group in groups:
            on_group(self._clean_group(task, group, batch_filter, old_horizon_ms, stats))
        self._offsets.clear(0)
        unreadable = batch_filter.unreadable
        if len(unreadable) > _MAX_REPORTED:
            unreadable = [
                *unreadable[:_MAX_REPORTED],
                f"and {len(unreadable) - _MAX_REPORTED} more",
            ]
        return CleaningResult(end_offset=end_offset, stats=stats, unreadable=tuple(unreadable))

    def split(self, task: CleaningTask, base_offset: int) -> CleanedGroup:
        """Split the segment named by a SegmentOverflowError. Raises like `clean`."""
        segment = next(each for each in task.segments if each.base_offset == base_offset)
        return split_segment(self._source, task.directory, segment, task.settings)

    def _groups(self, task: CleaningTask, end_offset: int) -> list[list[SegmentToClean]]:
        def index_sizes(segment: SegmentToClean) -> tuple[int, int]:
            return (
                self._size_of(task, segment, FileKind.OFFSET_INDEX),
                self._size_of(task, segment, FileKind.TIME_INDEX),
            )

        return group_segments(
            [each for each in task.segments if each.base_offset < end_offset],
            task.first_uncleanable_offset,
            segment_bytes=task.segment_bytes,
            index_bytes=task.settings.index_bytes,
            index_sizes=index_sizes,
        )

    def _size_of(self, task: CleaningTask, segment: SegmentToClean, kind: FileKind) -> int:
        path = task.path(segment, kind)
        return self._files.size(path) if self._files.exists(path) else 0

    def _clean_group(
        self,
        task: CleaningTask,
        group: Sequence[SegmentToClean],
        batch_filter: BatchFilter,
        old_horizon_ms: int,
        stats: CleanerStats,
    ) -> CleanedGroup:
        writer = CleanedSegmentWriter(
            self._source, task.directory, group[0].base_offset, task.settings
        )
        try:
            for segment in group:
                self._clean_into(writer, task, segment, batch_filter, old_horizon_ms)
            modified_ms = self._files.modified_ms(task.path(group[-1]))
            cleaned = writer.finish(batch_filter.take_retained_aborted(), modified_ms)
        except BaseException:
            writer.discard()
            raise
        stats.bytes_written += cleaned.size_bytes
        return CleanedGroup(tuple(each.base_offset for each in group), (cleaned,))

    def _clean_into(
        self,
        writer: CleanedSegmentWriter,
        task: CleaningTask,
        segment: SegmentToClean,
        batch_filter: BatchFilter,
        old_horizon_ms: int,
    ) -> None:
        path = task.path(segment)
        file = self._files.open(path, read_only=True)
        keep_old_tombstones = self._files.modified_ms(path) > old_horizon_ms
        bound = _end_of(task, segment)
        for stored in self._source.batches(file, 0, segment.size_bytes, bound):
            kept = batch_filter.keep(stored, keep_old_tombstones=keep_old_tombstones)
            if kept is not None:
                try:
                    writer.add(kept.data, kept.last_offset, kept.max_timestamp)
                except SegmentOverflowError as error:
                    raise SegmentOverflowError(segment.base_offset, error.last_offset) from None

    def _old_horizon_ms(self, task: CleaningTask) -> int:
        """Segments last written before this time lose tombstones of formats without a horizon."""
        clean = [each for each in task.segments if each.base_offset < task.first_dirty_offset]
        if not clean:
            return 0
        return self._files.modified_ms(task.path(clean[-1])) - task.delete_retention_ms


def _end_of(task: CleaningTask, segment: SegmentToClean) -> int:
    later = (each.base_offset for each in task.segments if each.base_offset > segment.base_offset)
    return next(later, task.first_uncleanable_offset)
