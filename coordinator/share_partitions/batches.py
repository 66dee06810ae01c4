"""The batches in flight of one share-partition, sorted by first offset. They do not overlap."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from .in_flight import Batch


class Batches:
    """Batches by first offset. A new one is usually the last.

    `first` and `last` raise IndexError if there are none.
    """

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._by_first: dict[int, Batch] = {}

    def __len__(self) -> int:
        return len(self._firsts)

    def __iter__(self) -> Iterator[Batch]:
        return map(self._by_first.__getitem__, self._firsts)

    @property
    def first(self) -> Batch:
        return self._by_first[self._firsts[0]]

    @property
    def last(self) -> Batch:
        return self._by_first[self._firsts[-1]]

    def floor(self, offset: int) -> Batch | None:
        """The last batch that begins at or before an offset."""
        index = bisect_right(self._firsts, offset)
        return self._by_first[self._firsts[index - 1]] if index else None

    def after(self, offset: int) -> Batch | None:
        """The first batch that begins after an offset."""
        index = bisect_right(self._firsts, offset)
        return self._by_first[self._firsts[index]] if index < len(self._firsts) else None

    def between(self, first_offset: int, last_offset: int) -> list[Batch]:
        """The batches that begin in a range, both ends included."""
        low, high = bisect_left(self._firsts, first_offset), bisect_right(self._firsts, last_offset)
        return [self._by_first[first] for first in self._firsts[low:high]]

    def put(self, batch: Batch) -> None:
        """Add a batch, or replace the one that begins at the same offset."""
        first = batch.first_offset
        if first not in self._by_first:
            if not self._firsts or first > self._firsts[-1]:
                self._firsts.append(first)
            else:
                self._firsts.insert(bisect_left(self._firsts, first), first)
        self._by_first[first] = batch

    def remove_before(self, offset: int) -> None:
        """Remove the batches that begin before an offset."""
        count = bisect_left(self._firsts, offset)
        for first in self._firsts[:count]:
            del self._by_first[first]
        del self._firsts[:count]

    def clear(self) -> None:
        self._firsts.clear()
        self._by_first.clear()
