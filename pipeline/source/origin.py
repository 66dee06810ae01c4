"""Where offsets and records come from: the files of a log directory, or a broker."""

from collections.abc import Collection, Mapping
from typing import Protocol

from odradek.pipeline.reading.bounds import OffsetBounds
from odradek.pipeline.reading.range_reader import OffsetRange
from odradek.storage.topic_partition import TopicPartition


class Origin(Protocol):
    """What planning needs to know. A partition that was just deleted is left out of each result."""

    def partitions(self) -> list[TopicPartition]:
        """Return all partitions."""

    def bounds(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetBounds]:
        """Return the readable offsets; with read_committed, up to the last stable offset."""

    def log_ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where the logs end. The readable offsets may end before.

        They do if a transaction is open, or if only the files say what is committed.
        """

    def offsets_at(
        self,
        timestamps_ms: Mapping[TopicPartition, int],
        bounds: Mapping[TopicPartition, OffsetBounds],
    ) -> dict[TopicPartition, int | None]:
        """Return the first offset in the bounds that is not older; None if all are older."""

    def topic_ids(self, partitions: Collection[TopicPartition]) -> dict[str, bytes]:
        """Return the ids of the partitions' topics, if known. A topic made again has another id."""

    def parts(self, partition: TopicPartition, start: int, end: int) -> list[OffsetRange]:
        """Return the consecutive ranges that tasks read for the offsets [start, end)."""
