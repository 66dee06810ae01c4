"""Where offsets and records come from: the files of a log directory, or a broker."""

from collections.abc import Collection, Mapping
from typing import Protocol

from odradek.pipeline.reading.bounds import OffsetBounds
from odradek.pipeline.reading.partitions import TopicPartition
from odradek.pipeline.reading.range_reader import OffsetRange


class Origin(Protocol):
    """What planning asks. What has just been deleted is left out of every answer."""

    def partitions(self) -> list[TopicPartition]:
        """All that are there."""
        ...

    def bounds(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetBounds]:
        """From where to where they can be read now; of committed records, if only these count."""
        ...

    def offsets_at(
        self,
        timestamps_ms: Mapping[TopicPartition, int],
        bounds: Mapping[TopicPartition, OffsetBounds],
    ) -> dict[TopicPartition, int | None]:
        """The first record in the bounds that is not older than that; None where all are."""
        ...

    def topic_ids(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, bytes]:
        """Of the topics they belong to, as far as that is known."""
        ...

    def parts(self, partition: TopicPartition, start: int, end: int) -> list[OffsetRange]:
        """What tasks read to read offsets [start, end), one after the other."""
        ...
