"""A page of records of several partitions, newest or oldest first by their timestamps.

Each partition is searched by offset. Its frontier is the timestamp of the last record that was
looked at. The partition with the newest (or the oldest) frontier is read next, so the records of
the page are in the order of their timestamps as far as timestamps rise within a partition. When the
request's budget is used up, the page has what was found so far, and the next page begins where this
one stopped. So each request makes progress.

Kafka's Fetch only reads forwards. To search backwards, the window of offsets just before the part
that was searched is read forwards. If it has too many bytes, a smaller window is read instead; a
window of one offset is read whatever its size. After a window with few bytes the next one is twice
as large: compaction and markers leave gaps, and a filter may match little.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from odradek.protocol.batch_header import MAGIC_V2
from odradek.protocol.errors import ApiError, ErrorCode

from .cursors import Cursor, Place
from .filters import Filter
from .picking import MAX_HEADERS, Picked, Picks, Want
from .reading import FETCH_BYTES, FIRST_FETCH_BYTES, Reader, StoredBatch

# Windows, in offsets. The first one of a search without a filter is what the page has room for in
# each partition, but no smaller than this.
_MIN_UNFILTERED_WINDOW = 5
_FIRST_FILTERED_WINDOW = 256
_MAX_WINDOW = 1 << 20
# Windows grow while they have fewer bytes.
_ENOUGH_BYTES = FETCH_BYTES // 2
# What records hold in memory: those of a page, which then ends; and of one partition, those that
# are found at once and wait for their place in the page.
_MAX_PAGE_BYTES = 8 << 20
_MIN_PENDING_BYTES = 128 << 10


class Page(NamedTuple):
    """The records of a page, and where the next one begins; None: everything was searched.

    `searched` and `total` count offsets, of this page and those before it, and of all partitions.
    """

    records: list[Picked]
    cursor: Cursor | None
    searched: int
    total: int


class Scan:
    """The search of one partition. Still to search: [next, bound), or newest first [bound, next).

    `window` is the number of offsets that a search backwards reads next.
    """

    def __init__(self, place: Place, *, newest_first: bool, window: int) -> None:
        self.partition = place.partition
        self.began = self.next = place.next
        self.bound = place.bound
        self.newest_first = newest_first
        self.pending: deque[Picked] = deque()  # found, and not in the page yet; in its order
        self.window = window
        self._frontier_ms: int | None = None  # of the last record that was looked at

    @property
    def is_searched(self) -> bool:
        """Whether nothing is left to be read."""
        return self.next <= self.bound if self.newest_first else self.next >= self.bound

    @property
    def turn(self) -> tuple[bool, int]:
        """The scan with the lowest turn is next."""
        if self.pending:
            frontier_ms = self.pending[0].timestamp_ms
        elif self._frontier_ms is None:
            return False, 0  # nothing is known yet
        else:
            frontier_ms = self._frontier_ms
        return True, -frontier_ms if self.newest_first else frontier_ms

    @property
    def reached(self) -> int:
        """The offset up to which every matching record is in the page."""
        if not self.pending:
            return self.next
        offset = self.pending[0].offset
        return offset + 1 if self.newest_first else offset

    def place(self) -> Place | None:
        """Where the next page begins; None if every matching record is in the page."""
        reached = self.reached
        if reached == self.bound or (self.is_searched and not self.pending):
            return None
        return Place(self.partition, reached, self.bound)

    def note_searched(self, frontier_ms: int | None, reached: int) -> None:
        """Note that all offsets up to `reached` were searched."""
        self.next = reached
        if frontier_ms is not None:
            self._frontier_ms = frontier_ms


class Scanner:
    """Makes one page of at most `max_records`.

    `cut_bytes` and `max_headers` say what is kept of a record, see picking.Want. Records that are
    found before they have their place in the page hold about `max_pending_bytes` in memory.
    """

    def __init__(
        self,
        reader: Reader,
        wanted: Filter,
        cursor: Cursor,
        max_records: int,
        *,
        cut_bytes: int,
        max_pending_bytes: int = _MAX_PAGE_BYTES,
        max_headers: int = MAX_HEADERS,
    ) -> None:
        self._reader = reader
        self._filter = wanted
        self._cursor = cursor
        self._max_records = max_records
        self._cut_bytes = cut_bytes
        self._max_headers = max_headers
        count = max(len(cursor.places), 1)
        self._max_pending_bytes = max(max_pending_bytes // count, _MIN_PENDING_BYTES)
        share = max(-(-max_records // count), _MIN_UNFILTERED_WINDOW)
        window = min(share, max_records) if wanted.is_empty else _FIRST_FILTERED_WINDOW
        self._scans = [
            Scan(place, newest_first=cursor.newest, window=window) for place in cursor.places
        ]

    async def page(self) -> Page:
        """Search until the page is full, all is searched, or the budget is used up."""
        records: list[Picked] = []
        page_bytes = 0
        while len(records) < self._max_records and page_bytes < _MAX_PAGE_BYTES:
            scan = self._next_scan()
            if scan is None:
                break
            if scan.pending:
                records.append(scan.pending.popleft())
                page_bytes += records[-1].kept_bytes
                continue
            await self._search(scan, self._max_records - len(records))
        return self._page_of(records)

    def _next_scan(self) -> Scan | None:
        # A page makes progress, even if the budget is used up before anything was searched.
        is_over = self._reader.budget.is_over and any(
            scan.next != scan.began for scan in self._scans
        )
        usable = (
            scan
            for scan in self._reader.call.sliced(iter(self._scans))
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

    async def _search(self, scan: Scan, max_records: int) -> None:
        """Search the next part of a partition.

        If retention has deleted that part meanwhile, the search goes on with the offsets that are
        left.
        """
        try:
            if scan.newest_first:
                await self._search_backwards(scan, max_records)
            else:
                await self._search_forwards(scan, max_records)
        except ApiError as error:
            if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            ranges = await self._reader.ranges([scan.partition])
            start, end = ranges[scan.partition]
            if scan.newest_first:
                scan.bound = min(max(scan.bound, start), scan.next)
                scan.next = max(min(scan.next, end), scan.bound)
            else:
                scan.bound = min(scan.bound, end)
                scan.next = min(max(scan.next, start), scan.bound)

    def _picks(self, scan: Scan, first: int, end: int, max_records: int) -> Picks:
        want = Want(
            partition=scan.partition,
            first=first,
            end=end,
            filter=self._filter,
            max_records=max_records,
            max_kept_bytes=self._max_pending_bytes,
            cut_bytes=self._cut_bytes,
            max_headers=self._max_headers,
            newest=scan.newest_first,
        )
        return Picks(want)

    async def _batches(
        self, partition: int, offset: int, end: int, max_bytes: int
    ) -> list[StoredBatch]:
        """Return what Reader.batches does.

        If the header of the first batch is damaged, [offset, end) is reported as unreadable, and
        nothing is returned.
        """
        try:
            return await self._reader.batches(partition, offset, max_bytes)
        except ApiError as error:
            if error.code is not ErrorCode.CORRUPT_MESSAGE:
                raise
            self._reader.leave_out(partition, offset, end - 1, error)
            return []

    # -- oldest first -----------------------------------------------------------------------------

    async def _search_forwards(self, scan: Scan, max_records: int) -> None:
        max_bytes = FIRST_FETCH_BYTES if self._filter.is_empty else FETCH_BYTES
        batches = await self._batches(scan.partition, scan.next, scan.bound, max_bytes)
        picks = self._picks(scan, scan.next, scan.bound, max_records)
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
        scan.note_searched(picks.newest_ms, min(reached, scan.bound))

    # -- newest first -----------------------------------------------------------------------------

    async def _search_backwards(self, scan: Scan, max_records: int) -> None:
        end = scan.next
        first = max(scan.bound, end - scan.window)
        batches, reached, size_bytes = await self._window(scan.partition, first, end)
        if reached < end:  # too many bytes; half of the offsets that were read have few enough
            scan.window = max(1, min(scan.window // 4, (reached - first) // 2))
            return
        if batches and batches[0].header.magic == MAGIC_V2:
            # Search all of the first batch, so that it is not unpacked again for the next window.
            first = max(scan.bound, min(first, batches[0].header.base_offset))
        picks = self._picks(scan, first, end, max_records)
        for batch in batches:
            await self._reader.pick(batch, picks)
        oldest_ms = picks.oldest_ms
        if picks.is_full:
            first, oldest_ms = picks.records[0].offset, picks.records[0].timestamp_ms
        elif size_bytes < _ENOUGH_BYTES and not (self._filter.is_empty and picks.records):
            # Without a filter, a window with records was chosen for the room in the page.
            scan.window = min(scan.window * 2, _MAX_WINDOW)
        scan.pending.extend(reversed(picks.records))
        scan.note_searched(oldest_ms, first)

    async def _window(
        self, partition: int, first: int, end: int
    ) -> tuple[list[StoredBatch], int, int]:
        """Read the batches with offsets in [first, end).

        Returns them, the offset up to which they were read, and their size. That offset is before
        `end` if they have more than FETCH_BYTES and the window has more than one offset.
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
                # A compressed message of an old format has the offset of its last record.
                if batch.header.base_offset < end or batch.header.magic < MAGIC_V2:
                    batches.append(batch)
                    size_bytes += len(batch.data)
            offset = max(offset + 1, found[-1].header.next_offset)
            max_bytes = min(max_bytes * 4, FETCH_BYTES)  # small at first: most windows are small
        return batches, end, size_bytes
