"""The first half of a round of cleaning: maps every key in the dirty part to its last offset.

Records of aborted transactions and batches that cannot be read are skipped: they replace no older
records. When the map is full, the round ends with the last record that was added; the records after
it stay dirty for the next round.

Kafka: Cleaner.buildOffsetMap.
"""

from collections.abc import Sequence

from odradek.protocol.any_batch import UNKNOWN_COUNT
from odradek.protocol.batch_header import MAGIC_V2, CorruptRecordError, check_crc, read_header
from odradek.protocol.record import payload
from odradek.protocol.schema import DecodeError
from odradek.storage.batch_scan import CorruptBatchError, scan_headers
from odradek.storage.segment import Segment

from .batch_filter import marker_of, old_records
from .cleaned_transactions import CleanedTransactions
from .input import CleanerInput, StoredBatch
from .offset_map import OffsetMap
from .record_spans import record_spans
from .task import CleanerStats, CleaningTask, SegmentToClean

_MANY = 1 << 62
_HEADERS_PER_REPORT = 1000  # a process that reports nothing for long is ended


class OffsetMapBuilder:
    """Fills `offsets` for one task."""

    def __init__(
        self,
        source: CleanerInput,
        task: CleaningTask,
        offsets: OffsetMap,
        transactions: CleanedTransactions,
        stats: CleanerStats,
    ) -> None:
        self._source = source
        self._task = task
        self._offsets = offsets
        self._transactions = transactions
        self._stats = stats

    def build(self) -> int:
        """Fill the map. Returns the offset before which the log will be clean.

        Raises like CleanerInput.batches.
        """
        start, end = self._task.first_dirty_offset, self._task.first_uncleanable_offset
        dirty = _dirty_segments(self._task.segments, start)
        self._offsets.clear(self._max_keys(dirty))
        bounds = [*(segment.base_offset for segment in dirty[1:]), *([end] if dirty else [])]
        for segment, bound in zip(dirty, bounds, strict=True):
            if not self._index(segment, bound):
                break
            self._offsets.latest_offset = bound - 1  # also if there are no records just before it
        self._stats.map_entries = self._offsets.size
        return max(self._offsets.latest_offset + 1, start)

    def _index(self, segment: SegmentToClean, bound: int) -> bool:
        """Add the keys of a segment. Returns False if the map is full."""
        file = self._source.files.open(self._task.path(segment), read_only=True)
        start = self._start_in(segment)
        for stored in self._source.batches(file, start, segment.size_bytes, bound):
            self._stats.map_bytes_read += len(stored.data)
            if not self._put_all(self._keys_of(stored)):
                return False
            if stored.last_offset >= self._task.first_dirty_offset:
                self._offsets.latest_offset = stored.last_offset
        return True

    def _put_all(self, keys: Sequence[tuple[bytes | None, int]]) -> bool:
        first_dirty, put = self._task.first_dirty_offset, self._offsets.put
        for key, offset in keys:
            if key is not None and offset >= first_dirty:
                if not put(key, offset):
                    return False
                self._offsets.latest_offset = offset
        return True

    def _keys_of(self, stored: StoredBatch) -> list[tuple[bytes | None, int]]:
        try:
            if stored.magic < MAGIC_V2:
                return [(each.key, each.offset) for each in old_records(stored.data)[1]]
            return self._keys_of_sound(stored)
        except (CorruptRecordError, DecodeError):
            return []  # the filter will report it

    def _keys_of_sound(self, stored: StoredBatch) -> list[tuple[bytes | None, int]]:
        header = read_header(stored.data)
        check_crc(stored.data, header)
        if header.is_control:
            kind, is_empty = marker_of(stored.data, header)
            if not is_empty:
                self._transactions.on_marker(header, kind)
            return []
        if self._transactions.on_batch(header):
            return []
        spans = record_spans(payload(stored.data, header), header)
        base_offset = header.base_offset
        return [(key, base_offset + delta) for _, _, _, delta, key, _ in spans]

    def _max_keys(self, dirty: Sequence[SegmentToClean]) -> int:
        """The number of records in the headers; _MANY if the map may not have room for them.

        Also if that is not known, because an old format does not have it, or of damage.
        """
        files, total = self._source.files, 0
        for segment in dirty:
            file = files.open(self._task.path(segment), read_only=True)
            headers = scan_headers(files, file, 0, segment.size_bytes)
            try:
                for number, (_, header) in enumerate(headers):
                    if not number % _HEADERS_PER_REPORT:
                        self._source.on_io(0)
                    total += header.record_count
                    if header.record_count == UNKNOWN_COUNT or total > self._offsets.capacity:
                        return _MANY
            except CorruptBatchError:
                return _MANY
        return total

    def _start_in(self, segment: SegmentToClean) -> int:
        """The position to start reading at: a round may end in the middle of a segment."""
        first_dirty = self._task.first_dirty_offset
        if first_dirty <= segment.base_offset:
            return 0
        base_offset, size_bytes = segment
        found = Segment(
            self._source.files,
            self._task.directory,
            base_offset,
            self._task.settings,
            size_bytes=size_bytes,
            created_ms=self._task.now_ms,
        )
        return found.offset_index.lookup(first_dirty).position


def _dirty_segments(segments: Sequence[SegmentToClean], start: int) -> list[SegmentToClean]:
    """The segment that holds `start`, and those after it."""
    later = [each for each in segments if each.base_offset > start]
    return list(segments[max(len(segments) - len(later) - 1, 0) :])
