"""Which process of the node serves a partition.

The broker's own process has the number 0. It serves the internal topics, because their records are
the state of its coordinators. The workers 1 to N serve all other topics: consecutive partitions of
a topic belong to consecutive workers. The owner depends on nothing that changes while the broker
runs, so every process computes the same one, and the disk need not record it.
"""

from typing import NamedTuple

from odradek.storage.topic_names import is_internal


class LogShare(NamedTuple):
    """The partitions of one process, when there are `workers`."""

    process: int = 0
    workers: int = 0

    def owner(self, topic: str, topic_id: bytes | None, partition: int) -> int:
        """The number of the process that serves a partition. An unknown topic id counts as 0."""
        if not self.workers or topic_id is None or is_internal(topic):
            return 0
        return 1 + (int.from_bytes(topic_id[:4], "big") + partition) % self.workers

    def has(self, topic: str, topic_id: bytes | None, partition: int) -> bool:
        """Whether this process serves a partition."""
        return self.owner(topic, topic_id, partition) == self.process


ALL_LOGS = LogShare()
