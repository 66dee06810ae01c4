"""Tells the coordinators when logs of their internal topics come online and go offline.

A log may come later than the broker's start (it was still recovered, or its disk was full), and it
may be lost (its directory failed, or a sync). What it holds is served only while it is online.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from odradek.coordinator.metadata.topics import Topic, Topics
from odradek.coordinator.runtime.shards import CoordinatorShards
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager


class Coordinator(Protocol):
    """A coordinator, as the logs of its internal topic see it."""

    shards: CoordinatorShards[Any]

    def open_topic(self, logs: Iterable[PartitionLog], partition_count: int) -> None:
        """Load the topic's partitions: at start, and when the topic is created.

        A partition whose log is not among `logs` is not served.
        """

    def partition_online(self, log: PartitionLog) -> None:
        """Load a partition of the open topic, and serve it then."""

    def partition_offline(self, partition: int) -> None:
        """Stop serving a partition: its log is offline, or its last records did not sync."""

    def close(self) -> None:
        """Stop serving all partitions: the topic was deleted, or the broker stops."""


class CoordinatorLogs:
    """The coordinators by internal topic. Logs of other topics are ignored."""

    def __init__(
        self, coordinators: Iterable[Coordinator], log_manager: LogManager, topics: Topics
    ) -> None:
        self._coordinators = {coordinator.shards.topic: coordinator for coordinator in coordinators}
        self._log_manager = log_manager
        self._topics = topics

    def load(self) -> None:
        """Replay the logs that are online."""
        for name in self._coordinators:
            topic = self._topics.get(name)
            if topic is not None:
                self.topic_created(topic)

    def topic_created(self, topic: Topic) -> None:
        """Open every partition whose log is online."""
        coordinator = self._coordinators.get(topic.name)
        if coordinator is not None:
            logs = (self._log_manager.find(topic.name, index) for index in topic.partitions)
            online = [log for log in logs if log is not None and log.is_online]
            coordinator.open_topic(online, len(topic.partitions))

    def partitions_created(self, topic: Topic, partitions: Iterable[int]) -> None:
        """Open the partitions that a topic got later, if their logs are online."""
        if topic.name not in self._coordinators:
            return
        for index in partitions:
            log = self._log_manager.find(topic.name, index)
            if log is not None and log.is_online:
                self.log_found(log)

    def topic_deleted(self, topic: Topic) -> None:
        """Close the coordinator of a topic that has been deleted."""
        coordinator = self._coordinators.get(topic.name)
        if coordinator is not None:
            coordinator.close()

    def log_found(self, log: PartitionLog) -> None:
        """Open the partition of a log that has come online."""
        coordinator = self._coordinators.get(log.topic)
        if coordinator is not None:
            coordinator.partition_online(log)

    def retry_loads(self) -> None:
        """Load the logs again for which space or descriptors were lacking.

        What such a log could not sync is synced, as after an unclean stop.
        """
        for coordinator in self._coordinators.values():
            for log in coordinator.shards.take_postponed():
                if log.is_online:
                    log.sync_recovered()
                    coordinator.partition_online(log)

    def log_lost(self, log: PartitionLog) -> None:
        """Close the partition of a log that is offline, or whose last records did not sync.

        A log that is online after a failed sync lacked space or descriptors: it comes back.
        """
        coordinator = self._coordinators.get(log.topic)
        if coordinator is not None:
            coordinator.partition_offline(log.partition)
            if log.is_online:
                coordinator.shards.postpone(log)

    def log_moved(self, log: PartitionLog, *, is_led: bool) -> None:
        """Load a partition again that another node leads now, or close it: none leads it."""
        coordinator = self._coordinators.get(log.topic)
        if coordinator is not None:
            coordinator.partition_offline(log.partition)
            if is_led:
                coordinator.partition_online(log)

    def close(self) -> None:
        """Close all coordinators: the broker stops."""
        for coordinator in self._coordinators.values():
            coordinator.close()
