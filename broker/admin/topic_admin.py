"""Topics made, enlarged and deleted: what spans the metadata log, the logs on disk and the fsync.

Each operation has the same order:

    decide and commit       the records are in the metadata log, and the metadata has replayed them
    act on the logs         they are created, or renamed to be deleted later, by a disk thread
    wait for the fsync
    answer

Up to the fsync one operation runs at a time: what another leaves half done nobody may touch. It is
seen through even if the client goes away. Meanwhile the partitions of a new topic have no leader;
those of a deleted one are gone.

A crash in between is repaired at the next start, where the metadata is the truth: a log that is
missing is created, one that no topic owns is put aside. A log that cannot be created (a full disk)
does not take its topic back: its partition is offline, as it would be if the disk had died later.

Kafka: ReplicationControlManager, ReplicaManager.applyDelta, AutoTopicCreationManager.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from odradek.coordinator.metadata.topic_creation import CreatedTopic
from odradek.coordinator.metadata.topic_settings import automatic_topic
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.directories.log_creation import NewLog
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC, is_internal

if TYPE_CHECKING:
    from odradek.broker.disk.disk_executor import DiskExecutor
    from odradek.broker.disk.log_sync import LogSync
    from odradek.broker.maintenance.cleaning.log_cleaner import LogCleaner
    from odradek.config.broker_config import BrokerConfig
    from odradek.config.topic_config import TopicConfig
    from odradek.coordinator.metadata.controller import Controller
    from odradek.coordinator.metadata.topic_creation import MorePartitions, NewTopic
    from odradek.coordinator.metadata.topic_deletion import DeletedTopic, TopicRef
    from odradek.coordinator.metadata.topics import Partition, Topic
    from odradek.storage.log_manager import LogManager

T = TypeVar("T")

logger = logging.getLogger("odradek.topics")


class TopicAdmin:
    """Makes, enlarges and deletes topics.

    `on_created` and `on_deleted` are called with each topic that has come or gone, logs and all.
    """

    def __init__(  # noqa: PLR0913 # the parts of the broker that it joins
        self,
        *,
        config: BrokerConfig,
        controller: Controller,
        metadata_sync: LogSync,
        log_manager: LogManager,
        log_cleaner: LogCleaner,
        disk: DiskExecutor,
        on_created: Callable[[Topic], object],
        on_deleted: Callable[[Topic], object],
        now_ms: Callable[[], int],
    ) -> None:
        """`disk` makes and renames the files."""
        self._disk = disk
        self._turn = asyncio.Lock()
        self._running: set[asyncio.Task[object]] = set()
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
        results = await self._see_through(self._create(wishes, validate_only=validate_only))
        if not validate_only:
            await self._sync.sync()
        return results

    async def _create(
        self, wishes: Sequence[NewTopic], *, validate_only: bool
    ) -> Mapping[str, CreatedTopic | ApiError]:
        async with self._turn:
            now_ms = self._now_ms()
            results = self._controller.create_topics(wishes, now_ms, validate_only=validate_only)
            made = [result for result in results.values() if isinstance(result, CreatedTopic)]
            if validate_only or not made:
                return results
            topics = [self._metadata.topics[result.name] for result in made]
            await self._create_logs([(topic, list(topic.partitions)) for topic in topics], now_ms)
            for topic in topics:
                self._on_created(topic)
                logger.info("created topic %s with %s", topic.name, count(topic))
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
            async with self._turn:  # it may be being made
                return
        errors = await self.create_automatically([CONSUMER_OFFSETS_TOPIC])
        for error in errors.values():
            raise error

    async def create_partitions(
        self, wishes: Sequence[MorePartitions], *, validate_only: bool = False
    ) -> Mapping[str, ApiError | None]:
        """Give topics more partitions; by name, None or why not. Raises POLICY_VIOLATION."""
        work = self._create_partitions(wishes, validate_only=validate_only)
        results = await self._see_through(work)
        if not validate_only:
            await self._sync.sync()
        return results

    async def _create_partitions(
        self, wishes: Sequence[MorePartitions], *, validate_only: bool
    ) -> Mapping[str, ApiError | None]:
        async with self._turn:
            now_ms, topics = self._now_ms(), self._metadata.topics
            before = {
                wish.name: set(topics[wish.name].partitions)
                for wish in wishes
                if wish.name in topics
            }
            results = self._controller.create_partitions(
                wishes, now_ms, validate_only=validate_only
            )
            if validate_only:
                return results
            enlarged = [topics[name] for name, error in results.items() if error is None]
            added = [(one, sorted(one.partitions.keys() - before[one.name])) for one in enlarged]
            await self._create_logs(added, now_ms)
            for topic in enlarged:
                logger.info("topic %s has %s now", topic.name, count(topic))
            return results

    async def delete(self, wishes: Sequence[TopicRef]) -> Sequence[DeletedTopic]:
        """Delete topics, named by name or id; what became of each wish."""
        results = await self._see_through(self._delete(wishes))
        await self._sync.sync()
        return results

    async def _delete(self, wishes: Sequence[TopicRef]) -> Sequence[DeletedTopic]:
        async with self._turn, self._log_cleaner.paused(self._named(wishes)):
            now_ms = self._now_ms()
            results = self._controller.delete_topics(wishes, now_ms)
            await self._delete_logs([one.topic for one in results if one.topic is not None], now_ms)
            return results

    async def close(self) -> None:
        """Return when what is under way has been seen through, but for the fsync."""
        if self._running:
            await asyncio.wait(self._running)

    async def _see_through(self, work: Coroutine[None, None, T]) -> T:
        """Wait for it; it goes on where the caller is cancelled."""
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

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

    async def _create_logs(
        self, wanted: Iterable[tuple[Topic, Iterable[int]]], now_ms: int
    ) -> None:
        new = [
            self._new_log(topic, topic.partitions[index])
            for topic, indexes in wanted
            for index in indexes
        ]
        creation = self._log_manager.begin_creation(new, now_ms=now_ms)
        await self._disk.run(creation.run)
        creation.finish()
        for one in new:
            try:
                log = self._log_manager.get(*one.key)
            except ApiError as error:
                logger.error("%s-%d is offline: %s", *one.key, error.message)
            else:
                log.update_config(self._config_of(one.topic))  # it may have changed meanwhile

    def _new_log(self, topic: Topic, partition: Partition) -> NewLog:
        return NewLog(
            topic.name,
            partition.index,
            topic.id,
            self._config_of(topic.name),
            partition.leader_epoch,
            partition.directory_of(self._controller.node_id),
        )

    def _config_of(self, topic: str) -> TopicConfig:
        return self._config.stored_topic_config(self._metadata.configs.of_topic(topic))

    async def _delete_logs(self, topics: Sequence[Topic], now_ms: int) -> None:
        partitions = [(topic.name, index) for topic in topics for index in topic.partitions]
        logs = [self._log_manager.find(*partition) for partition in partitions]
        retirement = self._log_manager.begin_deletion(partitions, now_ms=now_ms)
        for log in logs:
            if log is not None:
                log.notify_waiters()
        for topic in topics:
            self._on_deleted(topic)
            logger.info("deleted topic %s with %s", topic.name, count(topic))
        if partitions:
            await self._disk.run(retirement.run)
        try:
            retirement.finish()
        except ApiError as error:
            logger.error("files of a deleted topic stay: %s", error.message)


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
