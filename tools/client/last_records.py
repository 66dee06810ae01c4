"""Finds where the last N records of a partition begin.

Offsets do not say it: markers of transactions, aborted records and what compaction removed have
offsets, too, and are not shown. So the records are counted, backwards in windows that grow: the
last N offsets first, then four times as many before them, and so on. Only offsets are kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from confluent_kafka import Consumer, TopicPartition

from .polling import polled

GROWTH = 4


@dataclass(slots=True)
class _Search:
    """The search in one partition: records from `counted_from` on are counted."""

    first: int
    counted_from: int
    missing: int
    window_start: int = 0
    offsets: deque[int] = field(default_factory=deque)

    def begin(self, size: int) -> None:
        """Choose the next window."""
        self.window_start = max(self.first, self.counted_from - size)
        self.offsets = deque(maxlen=min(self.missing, self.counted_from - self.window_start))

    def end(self) -> int | None:
        """Count the records of the window; the result, if it is found."""
        self.missing -= len(self.offsets)
        self.counted_from = self.window_start
        if not self.missing:
            return self.offsets[0]
        return self.first if self.window_start == self.first else None


def find_last(
    consumer: Consumer, topic: str, starts: Mapping[int, int], ends: Mapping[int, int], count: int
) -> dict[int, int]:
    """The offsets from which on each partition has `count` records, or all from its start.

    Records from the end of a partition on are not counted. Raises CommandError, KafkaException.
    """
    if not count:
        return dict(ends)
    found = {}
    searches = {index: _Search(starts[index], end, count) for index, end in ends.items()}
    size = count
    while searches:
        for search in searches.values():
            search.begin(size)
        _read_windows(consumer, topic, searches)
        for index, search in list(searches.items()):
            start = search.end()
            if start is not None:
                found[index] = start
                del searches[index]
        size *= GROWTH
    return found


def _read_windows(consumer: Consumer, topic: str, searches: Mapping[int, _Search]) -> None:
    """Note the offsets of the records in each window."""
    unread = {index for index, each in searches.items() if each.window_start < each.counted_from}
    consumer.assign(
        [TopicPartition(topic, index, searches[index].window_start) for index in sorted(unread)]
    )
    while unread:
        for index, message in polled(consumer, topic):
            if index not in unread:
                continue
            offset = None if message is None else message.offset()
            end = searches[index].counted_from
            if offset is not None and offset < end:
                searches[index].offsets.append(offset)
            if offset is None or offset + 1 >= end:
                unread.remove(index)
                consumer.incremental_unassign([TopicPartition(topic, index)])
