"""Topics made, enlarged and deleted: what spans the metadata log, the logs on disk and the fsync.

Each operation has the same order:

    decide and commit       the records are in the metadata log, and the metadata has replayed them
    act on the logs         they are created, or renamed to be deleted later
    wait for the fsync      the only await: nobody ever sees a topic without its logs
    answer

A crash in between is repaired at the next start, where the metadata is the truth: a log that is
missing is created, one that no topic owns is put aside. A log that cannot be created (a full disk)
does not take its topic back: its partition is offline, as it would be if the disk had died later.

Kafka: ReplicationControlManager, ReplicaManager.applyDelta, AutoTopicCreationManager.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from odradek.coordinator.metadata.topic_creation import CreatedTopic
from odradek.coordinator.metadata.topic_settings import automatic_topic
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC, is_internal

if TYPE_CHECKING:
    from odradek.broker.disk.log_sync import LogSync
    from odradek.broker.maintenance.cleaning.log_cleaner import LogCleaner
    from odradek.config.broker_config import BrokerConfig
    from odradek.coordinator.metadata.controller import Controller
    from odradek.coordinator.metadata.topic_creation import MorePartitions, NewTopic
    from odradek.coordinator.metadata.topic_deletion import DeletedTopic, TopicRef
    from odradek.coordinator.metadata.topics import Partition, Topic
    from odradek.storage.log_manager import LogManager

logger = logging.getLogger("odradek.topics")


class TopicAdmin:
    """Makes, enlarges and deletes topics.

    `on_created` and `on_deleted` are called with each topic that has come or gone, logs and all.
    """

    def __init__(
        self,
        *,
        config: BrokerConfig,
        controller: Controller,
        metadata_sync: LogSync,
        log_manager: LogManager,
        log_cleaner: LogCleaner,
        on_created: Callable[[Topic], object],
        on_deleted: Callable[[Topic], object],
        now_ms: Callable[[], int],
    ) -> None:
        self._config = config
        self._controller = controller
        self._metadata = controller.metadata
        self._sync = metadata_sync
        self._log_manager = log_manager
        self._log_cleaner = log_cleaner
        self._on_created = on_created
        self._on_deleted = on_deleted
        self._now_ms = now_ms

    async def create(
        self, wishes: Sequence[NewTopic], *, validate_only: bool = False
    ) -> Mapping[str, CreatedTopic | ApiError]:
        """Create topics, or only check whether they could be; the result of each by its name.

        Raises POLICY_VIOLATION for a request that is too large as a whole.
        """
        now_ms = self._now_ms()
        results = self._controller.create_topics(wishes, now_ms, validate_only=validate_only)
        if validate_only:
            return results
        for result in results.values():
            if isinstance(result, CreatedTopic):
                topic = self._metadata.topics[result.name]
                self._create_logs(topic, topic.partitions.values(), now_ms)
                self._on_created(topic)
                logger.info("created topic %s with %s", topic.name, count(topic))
        await self._sync.sync()
        return results

    async def create_automatically(self, names: Sequence[str]) -> dict[str, ApiError]:
        """Create topics that somebody named. Those that could not be, and why.

        One that exists, because another client was faster, is no error.
        """
        errors = {name: not_ours(name) for name in names if not may_appear(name)}
        wishes = [automatic_topic(self._config, name) for name in names if may_appear(name)]
        for name, result in (await self.create(wishes)).items():
            exists = ErrorCode.TOPIC_ALREADY_EXISTS
            if isinstance(result, ApiError) and result.code is not exists:
                errors[name] = result
        return errors

    async def ensure_offsets_topic(self) -> None:
        """Have `__consumer_offsets`, with all its partitions. Raises ApiError if it can't be."""
        if CONSUMER_OFFSETS_TOPIC in self._metadata.topics:
            return
        errors = await self.create_automatically([CONSUMER_OFFSETS_TOPIC])
        for error in errors.values():
            raise error

    async def create_partitions(
        self, wishes: Sequence[MorePartitions], *, validate_only: bool = False
    ) -> Mapping[str, ApiError | None]:
        """Give topics more partitions; by name, None or why not. Raises POLICY_VIOLATION."""
        now_ms = self._now_ms()
        topics = self._metadata.topics
        before = {
            wish.name: set(topics[wish.name].partitions) for wish in wishes if wish.name in topics
        }
        results = self._controller.create_partitions(wishes, now_ms, validate_only=validate_only)
        if validate_only:
            return results
        for name, error in results.items():
            if error is None:
                topic = topics[name]
                added = sorted(topic.partitions.keys() - before[name])
                self._create_logs(topic, [topic.partitions[index] for index in added], now_ms)
                logger.info("topic %s has %s now", name, count(topic))
        await self._sync.sync()
        return results

    async def delete(self, wishes: Sequence[TopicRef]) -> Sequence[DeletedTopic]:
        """Delete topics, named by name or id; what became of each wish."""
        async with self._log_cleaner.paused(self._named(wishes)):
            now_ms = self._now_ms()
            results = self._controller.delete_topics(wishes, now_ms)
            for topic in (one.topic for one in results if one.topic is not None):
                self._delete_logs(topic, now_ms)
                self._on_deleted(topic)
                logger.info("deleted topic %s with %s", topic.name, count(topic))
        await self._sync.sync()
        return results

    def _named(self, wishes: Sequence[TopicRef]) -> list[tuple[str, int]]:
        """All partitions of the topics that are meant, as far as they are known."""
        topics = self._metadata.topics
        found = (
            topics.by_id.get(one.topic_id) if one.name is None else topics.get(one.name)
            for one in wishes
        )
        return [(topic.name, index) for topic in found if topic for index in topic.partitions]

    def update_config(self, config: BrokerConfig) -> None:
        """Settings of the broker changed: what topics inherit."""
        self._config = config

    # -- the parts --------------------------------------------------------------------------------

    def _create_logs(self, topic: Topic, partitions: Iterable[Partition], now_ms: int) -> None:
        config = self._config.stored_topic_config(self._metadata.configs.of_topic(topic.name))
        for partition in partitions:
            try:
                self._log_manager.create(
                    topic.name,
                    partition.index,
                    topic.id,
                    config,
                    now_ms=now_ms,
                    leader_epoch=partition.leader_epoch,
                    directory_id=partition.directory_of(self._controller.node_id),
                )
            except ApiError as error:
                logger.error("%s-%d is offline: %s", topic.name, partition.index, error.message)

    def _delete_logs(self, topic: Topic, now_ms: int) -> None:
        partitions = [(topic.name, index) for index in topic.partitions]
        logs = [self._log_manager.find(*partition) for partition in partitions]
        try:
            self._log_manager.delete(partitions, now_ms=now_ms)
        except ApiError as error:
            logger.error("the files of %s stay: %s", topic.name, error.message)
        for log in logs:
            if log is not None:
                log.tell_waiting()


def may_appear(name: str) -> bool:
    """Whether a topic may come into being because somebody named it."""
    return name == CONSUMER_OFFSETS_TOPIC or not is_internal(name)


def not_ours(name: str) -> ApiError:
    """The refusal of an internal topic whose coordinator is not served."""
    return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{name} is made by its coordinator")


def count(topic: Topic) -> str:
    """How many partitions, for log lines."""
    partitions = len(topic.partitions)
    return "1 partition" if partitions == 1 else f"{partitions} partitions"
