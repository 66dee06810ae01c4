"""An origin that is only numbers, for tests of planning."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from odradek.pipeline.reading.bounds import OffsetBounds
from odradek.pipeline.reading.range_reader import OffsetRange
from odradek.storage.topic_partition import TopicPartition


def tp(text: str) -> TopicPartition:
    """`a-0`."""
    topic, _, partition = text.rpartition("-")
    return TopicPartition(topic, int(partition))


@dataclass
class Numbers:
    """Partitions by name with their first offset and the one after their last.

    A record's timestamp in milliseconds is 1000 + its offset.
    """

    there: dict[str, tuple[int, int]]
    ids: dict[str, bytes] = field(default_factory=dict)
    # Partitions that bounds and offsets_at do not find so many times, although they are listed.
    hidden: dict[str, int] = field(default_factory=dict)
    # Where the logs of these partitions end, if that is after their readable offsets.
    ends: dict[str, int] = field(default_factory=dict)
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)

    def partitions(self) -> list[TopicPartition]:
        return sorted(map(tp, self.there))

    def bounds(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetBounds]:
        return {
            each: OffsetBounds(*self.there[str(each)])
            for each in partitions
            if str(each) in self.there and not self._hides("bounds", each)
        }

    def log_ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        bounds = self.bounds(partitions)
        return {each: self.ends.get(str(each), bounds[each].end) for each in bounds}

    def offsets_at(
        self,
        timestamps_ms: Mapping[TopicPartition, int],
        bounds: Mapping[TopicPartition, OffsetBounds],
    ) -> dict[TopicPartition, int | None]:
        found: dict[TopicPartition, int | None] = {}
        for partition, timestamp_ms in timestamps_ms.items():
            if self._hides("offsets_at", partition):
                continue
            start, end = bounds[partition]
            offset = max(start, timestamp_ms - 1000)
            found[partition] = offset if offset < end else None
        return found

    def topic_ids(self, partitions: Collection[TopicPartition]) -> dict[str, bytes]:
        return {each.topic: self.ids[each.topic] for each in partitions if each.topic in self.ids}

    def parts(self, partition: TopicPartition, start: int, end: int) -> list[OffsetRange]:
        return [OffsetRange(partition, start, end)]

    def _hides(self, question: str, partition: TopicPartition) -> bool:
        self.asked[question, str(partition)] += 1
        return self.asked[question, str(partition)] <= self.hidden.get(str(partition), 0)
