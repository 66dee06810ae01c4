"""Offsets by timestamp, over the segments of one log. Kafka: UnifiedLog.fetchOffsetByTimestamp.

Inside an attempt (NonBlockingReads) the records of at most one small batch are read at once. For
all others WouldWaitError is raised with a search that another process makes (time_search.py). Its
result is among the attempt's results when the lookup is repeated. Outside of an attempt everything
is read at once.
"""

from collections.abc import Callable, Iterator
from functools import partial

from odradek.protocol.batch_header import NO_TIMESTAMP, BatchHeader, TooManyRecordsError
from odradek.protocol.message_set import MAGIC_V0

from .files import Walk, WouldWaitError
from .reading_ahead import read_each
from .record_walk import AT_ONCE, LONG
from .segment import Segment
from .segment_list import SegmentList
from .time_search import OffsetAtTime, search_batches

NEWEST, OLDEST = -1, -2
SEARCHED_BYTES = 1 << 20  # in another process, if the first batch did not have the record

# Returns positions and headers, from the batch that holds an offset or an earlier one on.
Headers = Callable[[int], Iterator[tuple[int, BatchHeader]]]


def find_timestamp(
    segments: SegmentList, timestamp_ms: int, start_offset: int
) -> OffsetAtTime | None:
    """The first record from `start_offset` on that is not older than `timestamp_ms`.

    For a segment whose records have no timestamps (magic 0), the modification time of its file is
    used. If that is new enough, the search ends and nothing is found, as in Kafka.

    Kafka also ends the search at the first segment that is new enough, if all its matching records
    are before `start_offset`, or if it is empty. (A power cut may leave an empty segment whose
    records were deleted before they were synced.) Here the search continues in the next segment.

    Raises WouldWaitError inside an attempt, and ApiError with CORRUPT_MESSAGE.
    """
    search = _Search(segments, timestamp_ms, start_offset)
    for segment, newest_ms in read_each(list(segments), Segment.largest_timestamp_ms):
        if newest_ms >= timestamp_ms:
            found = search.find_in(segment, partial(segment.headers_from_time, timestamp_ms))
            if found is not None:
                return found
            if segment.size_bytes and segment.newest.timestamp_ms == NO_TIMESTAMP:
                return None
    return None


def newest_record(segments: SegmentList) -> OffsetAtTime | None:
    """The first record that has the largest timestamp of the log; None if it is of magic 0.

    Raises as `find_timestamp`.
    """
    each_newest = read_each(list(segments), Segment.look_up_newest)
    segment, newest = max(each_newest, key=lambda item: item[1].timestamp_ms)
    for _, header in segment.headers_from(newest.offset):
        if header.max_timestamp == newest.timestamp_ms:
            if header.magic == MAGIC_V0:
                return None
            break
    search = _Search(segments, newest.timestamp_ms, segment.base_offset)
    return search.find_in(segment, lambda offset: segment.headers_from(max(offset, newest.offset)))


class _Search:
    """Looks for the first record from `start_offset` on that is not older than `timestamp_ms`."""

    def __init__(self, segments: SegmentList, timestamp_ms: int, start_offset: int) -> None:
        self._segments = segments
        self._timestamp_ms = timestamp_ms
        self._start_offset = start_offset
        self._may_read = True  # the records of a small batch

    def find_in(self, segment: Segment, headers: Headers) -> OffsetAtTime | None:
        """That record, if the segment has it. Raises as `find_timestamp`."""
        attempt = segment.files.nonblocking
        key = (self._segments, segment.base_offset, self._timestamp_ms, self._start_offset)
        known = None if attempt is None else attempt.results.get(key)
        if isinstance(known, Exception):
            raise known
        if isinstance(known, OffsetAtTime):
            return known
        start = known if isinstance(known, int) else self._start_offset
        search = partial(search_batches, timestamp_ms=self._timestamp_ms, start_offset=start)
        for position, header in headers(start):
            if header.max_timestamp < self._timestamp_ms or header.last_offset < start:
                continue
            size = header.size_bytes
            if attempt is None:
                data = segment.files.pread_exact(segment.file, size, position)
                found: object = search(data, limits=LONG)
            elif (found := self._search_small(segment, position, size, search)) is None:
                if isinstance(known, int):
                    size = max(size, min(SEARCHED_BYTES, segment.size_bytes - position))
                raise WouldWaitError({}, {key: Walk(segment.file, size, position, search)})
            if isinstance(found, OffsetAtTime):
                return found
        return None

    def _search_small(
        self,
        segment: Segment,
        position: int,
        size: int,
        search: Callable[..., OffsetAtTime | int],
    ) -> OffsetAtTime | int | None:
        """Search one batch at once; None if that would take long, or was done before."""
        if not self._may_read or size > AT_ONCE.unpacked_bytes:
            return None
        data = segment.files.pread_exact(segment.file, size, position)
        self._may_read = False
        try:
            return search(data, limits=AT_ONCE)
        except TooManyRecordsError:
            return None


def offsets_written_before(
    segments: SegmentList, timestamp_ms: int, start_offset: int, end_offset: int, now_ms: int
) -> list[int]:
    """Base offsets of segments last written at or before a time, and `end_offset`, in descending
    order. `timestamp_ms` -1 (NEWEST) selects all, -2 (OLDEST) only the first segment.

    Kafka 3: UnifiedLog.legacyFetchOffsetsBefore.
    """
    starts = [
        (min(max(segment.base_offset, start_offset), end_offset), modified_ms)
        for segment, modified_ms in read_each(list(segments), Segment.modified_ms)
    ]
    if segments.active.size_bytes:
        starts.append((end_offset, now_ms))
    if timestamp_ms == OLDEST:
        return [starts[0][0]]
    while starts and timestamp_ms != NEWEST and starts[-1][1] > timestamp_ms:
        starts.pop()
    return sorted((offset for offset, _ in starts), reverse=True)
