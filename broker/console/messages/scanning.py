"""A page of records of several partitions, newest or oldest first by their timestamps.

Each partition is searched in its own order, in windows of offsets. The partition whose frontier is
the newest (or the oldest) is read next, so records come in the order of their timestamps as far as
timestamps rise within a partition. When the request's budget is used up, what was found so far is
the page. Whatever was searched is in the page or does not match, so each request gets on.

How to read backwards: there is no such Fetch. A window of offsets before the ones that are known is
read forwards. If it turns out to have too many bytes, a smaller one is read instead; a window of
one offset is read whatever its size. A window without records is followed by one twice as large,
because compaction and markers leave gaps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from odradek.protocol.batch_header import MAGIC_V2
from odradek.protocol.errors import ApiError, ErrorCode

from .cursors import Cursor, Place
from .filters import Filter
from .picking import MOST_HEADERS, Picked, Picks, Want
from .reading import FETCH_BYTES, FIRST_FETCH_BYTES, Reader, StoredBatch

# Of a filtered search, the first window of offsets.
_FIRST_WINDOW = 256
_LARGEST_WINDOW = 1 << 20
_SMALLEST_WINDOW = 5
# Windows grow while they have fewer bytes.
_ENOUGH_BYTES = FETCH_BYTES // 2
_KEPT_BYTES = 8 << 20
_SMALLEST_KEPT_BYTES = 128 << 10


class Page(NamedTuple):
    """The records of a page, and where the next one begins; None: everything was searched."""

    records: list[Picked]
    cursor: Cursor | None
    searched: int
    total: int


class Scan:
    """The search of one partition, from `next` to `bound`. See cursors.Place."""

    def __init__(self, place: Place, *, newest: bool, window: int) -> None:
        self.partition = place.partition
        self.began = self.next = place.next
        self.bound = place.bound
        self.newest = newest
        self.pending: deque[Picked] = deque()  # found, and not in the page yet; in its order
        self.window = window
        self._frontier_ms: int | None = None  # of the last record that was looked at

    @property
    def is_searched(self) -> bool:
        """Whether nothing is left to be read."""
        return self.next <= self.bound if self.newest else self.next >= self.bound

    @property
    def turn(self) -> tuple[bool, int]:
        """The scan with the lowest turn is next."""
        if self.pending:
            frontier_ms = self.pending[0].timestamp_ms
        elif self._frontier_ms is None:
            return False, 0  # nothing is known yet
        else:
            frontier_ms = self._frontier_ms
        return True, -frontier_ms if self.newest else frontier_ms

    @property
    def reached(self) -> int:
        """Up to where all is in the page or does not match."""
        if not self.pending:
            return self.next
        offset = self.pending[0].offset
        return offset + 1 if self.newest else offset

    def place(self) -> Place | None:
        """Where to go on; None if all is searched and in the page."""
        reached = self.reached
        if reached == self.bound or (self.is_searched and not self.pending):
            return None
        return Place(self.partition, reached, self.bound)

    def passed(self, frontier_ms: int | None, reached: int) -> None:
        """Note what was searched."""
        self.next = reached
        if frontier_ms is not None:
            self._frontier_ms = frontier_ms


class Scanner:
    """Makes one page."""

    def __init__(
        self,
        reader: Reader,
        wanted: Filter,
        cursor: Cursor,
        limit: int,
        *,
        cut_bytes: int,
        kept_bytes: int = _KEPT_BYTES,
        most_headers: int = MOST_HEADERS,
    ) -> None:
        self._reader = reader
        self._filter = wanted
        self._cursor = cursor
        self._limit = limit
        self._cut_bytes = cut_bytes
        self._most_headers = most_headers
        count = max(len(cursor.places), 1)
        self._kept_bytes = max(kept_bytes // count, _SMALLEST_KEPT_BYTES)
        share = max(-(-limit // count), _SMALLEST_WINDOW)
        window = min(share, limit) if wanted.is_empty else _FIRST_WINDOW
        self._scans = [Scan(place, newest=cursor.newest, window=window) for place in cursor.places]

    async def page(self) -> Page:
        """Search until the page is full, all is searched, or the budget is used up."""
        records: list[Picked] = []
        kept_bytes = 0
        while len(records) < self._limit and kept_bytes < _KEPT_BYTES:
            scan = self._next_scan(self._scans)
            if scan is None:
                break
            if scan.pending:
                records.append(scan.pending.popleft())
                kept_bytes += records[-1].kept_bytes
                continue
            await self._search(scan, self._limit - len(records))
        return self._page_of(records)

    def _next_scan(self, scans: Iterable[Scan]) -> Scan | None:
        is_over = self._reader.budget.is_over and any(
            scan.reached != scan.began or scan.next != scan.began for scan in self._scans
        )
        usable = (
            scan
            for scan in self._reader.call.sliced(iter(scans))
            if scan.pending or not (scan.is_searched or is_over)
        )
        return min(usable, key=lambda scan: scan.turn, default=None)

    def _page_of(self, records: list[Picked]) -> Page:
        cursor = self._cursor
        searched = cursor.searched + sum(abs(scan.reached - scan.began) for scan in self._scans)
        places = [place for scan in self._scans if (place := scan.place()) is not None]
        if not places:
            return Page(records, None, cursor.total, cursor.total)
        rest = Cursor(cursor.newest, searched, cursor.total, places)
        return Page(records, rest, searched, cursor.total)

    async def _search(self, scan: Scan, most: int) -> None:
        """Read on in a partition. Records that retention has deleted meanwhile are passed by."""
        try:
            if scan.newest:
                await self._search_backwards(scan, most)
            else:
                await self._search_forwards(scan, most)
        except ApiError as error:
            if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            ranges = await self._reader.ranges([scan.partition])
            start, end = ranges[scan.partition]
            if scan.newest:
                scan.bound = min(max(scan.bound, start), scan.next)
                scan.next = max(min(scan.next, end), scan.bound)
            else:
                scan.bound = min(scan.bound, end)
                scan.next = min(max(scan.next, start), scan.bound)

    def _picks(self, scan: Scan, first: int, end: int, most: int) -> Picks:
        want = Want(
            partition=scan.partition,
            first=first,
            end=end,
            filter=self._filter,
            most=most,
            most_bytes=self._kept_bytes,
            cut_bytes=self._cut_bytes,
            most_headers=self._most_headers,
            newest=scan.newest,
        )
        return Picks(want)

    async def _batches(
        self, partition: int, offset: int, end: int, max_bytes: int
    ) -> list[StoredBatch]:
        """As Reader.batches. After a damaged header nothing is found: all before `end` is noted."""
        try:
            return await self._reader.batches(partition, offset, max_bytes)
        except ApiError as error:
            if error.code is not ErrorCode.CORRUPT_MESSAGE:
                raise
            self._reader.leave_out(partition, offset, end - 1, error)
            return []

    # -- oldest first -----------------------------------------------------------------------------

    async def _search_forwards(self, scan: Scan, most: int) -> None:
        max_bytes = FIRST_FETCH_BYTES if self._filter.is_empty else FETCH_BYTES
        batches = await self._batches(scan.partition, scan.next, scan.bound, max_bytes)
        picks = self._picks(scan, scan.next, scan.bound, most)
        reached = scan.next
        for batch in batches:
            await self._reader.pick(batch, picks)
            if picks.is_complete:
                reached = picks.records[-1].offset + 1
                break
            reached = max(reached, batch.header.next_offset)
            if reached >= scan.bound or self._reader.budget.is_over:
                break
        if not batches:
            reached = scan.bound  # the end of the log was compacted away, or is not visible
        scan.pending.extend(picks.records)
        scan.passed(picks.newest_ms, min(reached, scan.bound))

    # -- newest first -----------------------------------------------------------------------------

    async def _search_backwards(self, scan: Scan, most: int) -> None:
        end = scan.next
        first = max(scan.bound, end - scan.window)
        batches, reached, size_bytes = await self._window(scan.partition, first, end)
        if reached < end:
            scan.window = max(1, min(scan.window // 4, (reached - first) // 2))
            return
        if batches and batches[0].header.magic == MAGIC_V2:
            # All of the first batch, so that it is not unpacked again for the next window.
            first = max(scan.bound, min(first, batches[0].header.base_offset))
        picks = self._picks(scan, first, end, most)
        for batch in batches:
            await self._reader.pick(batch, picks)
        oldest_ms = picks.oldest_ms
        if picks.is_full:
            first, oldest_ms = picks.records[0].offset, picks.records[0].timestamp_ms
        elif size_bytes < _ENOUGH_BYTES and not (self._filter.is_empty and picks.records):
            scan.window = min(scan.window * 2, _LARGEST_WINDOW)
        scan.pending.extend(reversed(picks.records))
        scan.passed(oldest_ms, first)

    async def _window(
        self, partition: int, first: int, end: int
    ) -> tuple[list[StoredBatch], int, int]:
        """The batches with offsets from `first` on and before `end`.

        Also the offset up to which they were read, and their size. They were not read to the end
        if they have more than FETCH_BYTES and the window has more than one offset.
        """
        batches: list[StoredBatch] = []
        offset, size_bytes, max_bytes = first, 0, FIRST_FETCH_BYTES
        while offset < end:
            if size_bytes > FETCH_BYTES and end - first > 1:
                return batches, offset, size_bytes
            found = await self._batches(partition, offset, end, max_bytes)
            if not found:
                break
            for batch in found:
                if batch.header.base_offset < end or batch.header.magic < MAGIC_V2:
                    batches.append(batch)
                    size_bytes += len(batch.data)
            offset = max(offset + 1, found[-1].header.next_offset)
            max_bytes = min(max_bytes * 4, FETCH_BYTES)
        return batches, end, size_bytes
