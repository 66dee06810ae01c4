"""The segments of one log, in the order of their base offsets. Kafka: LogSegments."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter

from .segment import Segment

_base_offset: Callable[[Segment], int] = attrgetter("base_offset")


class SegmentList:
    """Sorted segments; the last one is active. Offsets are found by bisection."""

    __slots__ = ("_base_offsets", "_segments", "active")

    active: Segment  # the one that is appended to; a plain attribute, because every append asks

    def __init__(self, segments: Iterable[Segment] = ()) -> None:
        self._segments = sorted(segments, key=_base_offset)
        self._base_offsets = list(map(_base_offset, self._segments))
        self._update_active()

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        """Iterate over a copy, so that segments may be removed meanwhile."""
        return iter(self._segments.copy())

    def __getitem__(self, index: int) -> Segment:
        return self._segments[index]

    @property
    def inactive(self) -> list[Segment]:
        """All but the active one."""
        return self._segments[:-1]

    @property
    def base_offsets(self) -> list[int]:
        return self._base_offsets.copy()

    @property
    def size_bytes(self) -> int:
        if len(self._segments) == 1:  # most logs of many
            return self._segments[0].size_bytes
        return sum([segment.size_bytes for segment in self._segments])

    def add(self, segment: Segment) -> None:
        """Insert a segment, or replace the one with the same base offset."""
        index = bisect_left(self._base_offsets, segment.base_offset)
        if self.holds(segment.base_offset):
            self._segments[index] = segment
        else:
            self._segments.insert(index, segment)
            self._base_offsets.insert(index, segment.base_offset)
        self._update_active()

    def remove(self, segment: Segment) -> None:
        """Remove a segment. Raises ValueError if it is not in the list."""
        index = bisect_left(self._base_offsets, segment.base_offset)
        if index == len(self._segments) or self._segments[index] is not segment:
            raise ValueError(f"{segment} is not in the list")
        del self._segments[index], self._base_offsets[index]
        self._update_active()

    def replace(self, old: Iterable[Segment], new: Iterable[Segment]) -> None:
        """Put `new` segments in the place of `old` ones."""
        gone = set(old)
        kept = [segment for segment in self._segments if segment not in gone]
        self._segments = sorted([*kept, *new], key=_base_offset)
        self._base_offsets = list(map(_base_offset, self._segments))
        self._update_active()

    def _update_active(self) -> None:
        if self._segments:
            self.active = self._segments[-1]

    def holds(self, base_offset: int) -> bool:
        """Whether a segment begins exactly there."""
        index = bisect_left(self._base_offsets, base_offset)
        return index < len(self._base_offsets) and self._base_offsets[index] == base_offset

    def floor_index(self, offset: int) -> int:
        """The index of the last segment that begins at or before `offset`; -1 if none does."""
        return bisect_right(self._base_offsets, offset) - 1

    def between(self, start_offset: int, end_offset: int | None = None) -> list[Segment]:
        """The segment that holds `start_offset`, and later ones that begin before `end_offset`."""
        first = max(0, self.floor_index(start_offset))
        end = (
            len(self._segments)
            if end_offset is None
            else bisect_left(self._base_offsets, end_offset)
        )
        return self._segments[first:end]
