"""The new records of a topic since the last look. If there are many, the older ones are skipped."""

from __future__ import annotations

from typing import NamedTuple

from .cursors import Cursor, Place
from .filters import Filter
from .picking import Picked
from .reading import Range, Reader
from .scanning import Scanner

MAX_RECORDS = 100
_MAX_PENDING_BYTES = 1 << 20  # see Scanner


class News(NamedTuple):
    """New records, how many were skipped, and where the next look begins."""

    records: list[Picked]
    skipped: int
    cursor: Cursor


def at_the_end(ranges: dict[int, Range]) -> Cursor:
    """Where a look begins that wants nothing old."""
    places = [Place(number, each.end, each.end) for number, each in ranges.items()]
    return Cursor(newest=False, searched=0, total=0, places=places)


async def news(
    reader: Reader, wanted: Filter, last: Cursor, ranges: dict[int, Range], cut_bytes: int
) -> News:
    """The records since the last look, at most MAX_RECORDS. What takes long is skipped."""
    places, skipped, total = [], 0, 0
    for place in last.places:
        start, end = ranges[place.partition]
        first = max(place.next, start)
        if wanted.is_empty and end - first > MAX_RECORDS:
            skipped += end - MAX_RECORDS - first
            first = end - MAX_RECORDS
        if first < end:  # else nothing is new, or the topic was created again
            places.append(Place(place.partition, first, end))
            total += end - first
    following = [Place(place.partition, ranges[place.partition].end, 0) for place in last.places]
    cursor = Cursor(newest=False, searched=0, total=0, places=following)
    if not places:
        return News([], skipped, cursor)
    found = Cursor(newest=False, searched=0, total=total, places=places)
    scanner = Scanner(
        reader,
        wanted,
        found,
        MAX_RECORDS * len(places),
        cut_bytes=cut_bytes,
        max_pending_bytes=_MAX_PENDING_BYTES,
    )
    page = await scanner.page()
    skipped += page.total - page.searched + max(0, len(page.records) - MAX_RECORDS)
    return News(page.records[-MAX_RECORDS:], skipped, cursor)
