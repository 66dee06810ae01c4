"""The logs of topics: created and deleted as the metadata, which has replayed the change, says.

A disk thread creates the files, or renames them to be deleted later. If a log cannot be created (a
full disk), the partition is offline, as if the disk had failed later. Kafka:
ReplicaManager.applyDelta.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.config.topic_config import TopicConfig
from odradek.coordinator.metadata.topics import Partition, Topic
from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.protocol.errors import ApiError
from odradek.storage.directories.log_creation import NewLog
from odradek.storage.log_manager import LogManager
from odradek.storage.topic_partition import TopicPartition

logger = logging.getLogger("odradek.topics")


class TopicLogs:
    """Creates and deletes the logs of topics.

    `on_deleted` is called with deleted topics when their logs are no longer served.
    """

    def __init__(
        self,
        *,
        log_manager: LogManager,
        disk: DiskExecutor,
        node_id: int,
        config_of: Callable[[str], TopicConfig],
        on_deleted: Callable[[Sequence[Topic]], object],
    ) -> None:
        """`node_id` is that in the metadata log.

        `config_of` is called with a topic's name. It parses the topic's overrides, so it is called
        once for all partitions.
        """
        self._log_manager = log_manager
        self._disk = disk
        self._node_id = node_id
        self._config_of = config_of
        self._on_deleted = on_deleted

    async def create(
        self,
        wanted: Iterable[tuple[Topic, Iterable[int]]],
        now_ms: int,
        step: Step = no_step,
    ) -> None:
        """Create the logs of partitions. An error is logged."""
        new: list[NewLog] = []
        configs: dict[str, TopicConfig] = {}
        for topic, indexes in wanted:
            config = configs[topic.name] = self._config_of(topic.name)
            new += (
                self._new_log(topic, topic.partitions[index], config)
                for index in stepping(indexes, step)
            )
        creation = self._log_manager.begin_creation(stepping(new, step), now_ms=now_ms)
        await self._disk.run(creation.run)
        creation.finish(partial(stepping, step=step))
        self._log_offline(stepping(new, step))
        for name, before in stepping(configs.items(), step):
            self._update_config(name, before)

    def _log_offline(self, new: Iterable[NewLog]) -> None:
        """Log the partitions that have no log: one line for each topic, with the first reason."""
        first: dict[str, tuple[int, str]] = {}
        counts: Counter[str] = Counter()
        for new_log in new:
            topic, partition = new_log.key
            try:
                self._log_manager.get(topic, partition)
            except ApiError as error:
                first.setdefault(topic, (partition, error.message))
                counts[topic] += 1
        for topic, (partition, reason) in first.items():
            others = counts[topic] - 1
            name = f"{topic}-{partition}" + (f" and {others} more partitions" if others else "")
            logger.error("%s: offline: %s", name, reason)

    def _update_config(self, name: str, before: TopicConfig) -> None:
        """Set the config of a topic's new logs, if it has changed while they were created."""
        config = self._config_of(name)
        if config != before:
            for log in self._log_manager.of_topic(name).values():
                log.update_config(config)

    def _new_log(self, topic: Topic, partition: Partition, config: TopicConfig) -> NewLog:
        return NewLog(
            topic.name,
            partition.index,
            topic.id,
            config,
            partition.leader_epoch,
            partition.directory_of(self._node_id),
        )

    async def delete(self, topics: Sequence[Topic], step: Step = no_step) -> None:
        """Delete the logs of topics. An error is logged."""
        partitions = [
            TopicPartition(topic.name, index)
            for topic in topics
            for index in stepping(topic.partitions, step)
        ]
        logs = [self._log_manager.find(*partition) for partition in stepping(partitions, step)]
        deletion = self._log_manager.begin_deletion(stepping(partitions, step))
        for _ in stepping(range(len(logs)), step):
            log = logs.pop()
            if log is not None:
                log.notify_waiters()
        if topics:
            self._on_deleted(topics)
        if partitions:
            await self._disk.run(deletion.run)
        try:
            deletion.finish(partial(stepping, step=step))
        except ApiError as error:
            logger.error("files of a deleted topic stay: %s", error.message)
