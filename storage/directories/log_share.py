"""Which process of the node serves a partition.

The broker's own process has the number 0. It serves the internal topics, because their records are
the state of its coordinators. The workers 1 to N serve all other topics: consecutive partitions of
a topic belong to consecutive workers. The owner depends on the name only, so every process computes
the same one, the disk need not record it, and a topic that is created again keeps its owners.
"""

from typing import NamedTuple
from zlib import crc32

from odradek.storage.topic_names import is_internal


class LogShare(NamedTuple):
    """The partitions of one process, when there are `workers`."""

    process: int = 0
    workers: int = 0

    def owner(self, topic: str, partition: int) -> int:
        """The number of the process that serves a partition."""
        if not self.workers or is_internal(topic):
            return 0
        return 1 + (crc32(topic.encode()) + partition) % self.workers

    def has(self, topic: str, partition: int) -> bool:
        """Whether this process serves a partition."""
        return self.owner(topic, partition) == self.process


ALL_LOGS = LogShare()
