"""Creates, enlarges and deletes topics, in the metadata log and on disk.

Each operation has the same steps:

    decide and commit       the records are in the metadata log, and the metadata has replayed them
    change the logs         a disk thread creates them, or renames them to be deleted later
    wait for the fsync      of the metadata log
    answer

Up to the fsync only one operation runs at a time, so that none sees the half-done work of another.
An operation runs in slices, and to its end even if the client disconnects. Meanwhile the partitions
of a new topic have no leader, and those of a deleted topic are gone.

After a crash in between, the next start makes the logs agree with the metadata: a missing log is
created, and a log that belongs to no topic is renamed to `-stray`. If a log cannot be created (a
full disk), its topic stays. The partition is offline, as if the disk had failed later.

Kafka: ReplicationControlManager, AutoTopicCreationManager.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from odradek.broker.disk.log_sync import LogSync
from odradek.broker.maintenance.cleaning.log_cleaner import LogCleaner
from odradek.broker.turns.slices import Slices
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.controller import Controller
from odradek.coordinator.metadata.topic_creation import (
    CreatedTopic,
    MorePartitions,
    NewTopic,
    Permits,
    unlimited,
)
from odradek.coordinator.metadata.topic_deletion import TopicDeletionResult, TopicRef
from odradek.coordinator.metadata.topic_settings import automatic_topic
from odradek.coordinator.metadata.topics import Topic
from odradek.coordinator.runtime.steps import Step, free, no_step, stepping
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.topic_partition import TopicPartition

from .operations import Operations
from .recent_deletions import RecentDeletions
from .topic_logs import TopicLogs

logger = logging.getLogger("odradek.topics")


class TopicAdmin:
    """Creates, enlarges and deletes topics.

    `permits` limit what a client creates and deletes. `on_created` is called with each new topic
    when its logs exist.
    """

    def __init__(  # noqa: PLR0913 # the one place that wires it
        self,
        *,
        config: BrokerConfig,
        operations: Operations,
        controller: Controller,
        metadata_sync: LogSync,
        topic_logs: TopicLogs,
        log_cleaner: LogCleaner,
        on_created: Callable[[Topic], object],
        on_enlarged: Callable[[Topic, Iterable[int]], object],
        now_ms: Callable[[], int],
        timer_ms: Callable[[], int],
    ) -> None:
        """`on_enlarged` gets a topic and its new partitions.

        `now_ms` is the wall clock, `timer_ms` a monotonic one.
        """
        self._lock = asyncio.Lock()
        self._operations = operations
        self._config = config
        self._controller = controller
        self._metadata = controller.metadata
        self._sync = metadata_sync
        self._topic_logs = topic_logs
        self._log_cleaner = log_cleaner
        self._on_created = on_created
        self._on_enlarged = on_enlarged
        self._now_ms = now_ms
        self.recent_deletions = RecentDeletions(timer_ms)
        # Called with each topic that was created or enlarged, and what was asked for.
        self.on_placed: Callable[[Topic, NewTopic | MorePartitions], object] | None = None
        # Called with each of them when its logs are there.
        self.on_served: Callable[[Topic], object] | None = None

    async def create(
        self,
        new_topics: Sequence[NewTopic],
        *,
        validate_only: bool = False,
        permits: Permits = unlimited,
    ) -> dict[str, CreatedTopic | ApiError]:
        """Create topics, or only check whether they can be created. Returns results by name.

        Raises POLICY_VIOLATION for a request that is too large as a whole.
        """
        results = await self._operations.run(
            lambda slices: self._create(
                slices, new_topics, validate_only=validate_only, permits=permits
            )
        )
        if not validate_only:
            await self._sync.sync()
        return results

    async def _create(
        self,
        slices: Slices,
        new_topics: Sequence[NewTopic],
        *,
        validate_only: bool,
        permits: Permits,
    ) -> dict[str, CreatedTopic | ApiError]:
        async with self._lock:
            now_ms = self._now_ms()
            async with self._operations.decision_lock:
                results = self._controller.create_topics(
                    new_topics,
                    now_ms,
                    validate_only=validate_only,
                    permits=permits,
                    step=slices.step,
                )
            created = [
                result for result in slices.of(results.values()) if isinstance(result, CreatedTopic)
            ]
            if validate_only or not created:
                return results
            topics = [self._metadata.topics[result.name] for result in slices.of(created)]
            self._note_placed(new_topics, results)
            wanted = [(topic, list(topic.partitions)) for topic in slices.of(topics)]
            await self._topic_logs.create(wanted, now_ms, slices.step)
            for topic in slices.of(topics):
                self._on_created(topic)
                if self.on_served is not None:
                    self.on_served(topic)
                logger.info("created topic %s with %s", topic.name, count(topic))
            return results

    async def create_automatically(
        self, names: Sequence[str], permits: Permits = unlimited, step: Step = no_step
    ) -> dict[str, ApiError]:
        """Create topics that requests have named. Returns the errors by name.

        A topic that exists by now, because another client was faster, is no error. If the names are
        too many for one operation, each has that error.
        """
        errors: dict[str, ApiError] = {}
        new = [automatic_topic(self._config, name) for name in stepping(names, step)]
        try:
            results = await self.create(new, permits=permits)
        except ApiError as error:
            return dict.fromkeys(stepping(names, step), error)
        finally:
            free(step, new)
        for name, result in stepping(iter(results.items()), step):
            exists = ErrorCode.TOPIC_ALREADY_EXISTS
            if isinstance(result, ApiError) and result.code is not exists:
                errors[name] = result
        return errors

    async def create_for_client(
        self, names: Sequence[str], permits: Permits, step: Step = no_step
    ) -> dict[str, ApiError]:
        """Like `create_automatically`, except for topics that were deleted a moment ago."""
        async with self._lock:
            pass  # a deletion may have been running
        deleted: list[str] = []
        wanted: list[str] = []
        for name in stepping(names, step):
            (deleted if name in self.recent_deletions else wanted).append(name)
        errors = await self.create_automatically(wanted, permits, step) if wanted else {}
        text = "the topic was deleted a moment ago"
        error = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        errors.update(dict.fromkeys(stepping(deleted, step), error))
        return errors

    async def ensure_internal_topic(self, name: str) -> None:
        """Create an internal topic if it does not exist. Raises ApiError if that fails."""
        if name in self._metadata.topics:
            async with self._lock:  # another operation may be creating its logs
                return
        errors = await self.create_automatically([name])
        for error in errors.values():
            raise error

    async def create_partitions(
        self,
        additions: Sequence[MorePartitions],
        *,
        validate_only: bool = False,
        permits: Permits = unlimited,
    ) -> dict[str, ApiError | None]:
        """Add partitions to topics. Returns the error, or None, by topic name.

        Raises POLICY_VIOLATION for a request that is too large as a whole.
        """
        results = await self._operations.run(
            lambda slices: self._create_partitions(
                slices, additions, validate_only=validate_only, permits=permits
            )
        )
        if not validate_only:
            await self._sync.sync()
        return results

    async def _create_partitions(
        self,
        slices: Slices,
        additions: Sequence[MorePartitions],
        *,
        validate_only: bool,
        permits: Permits,
    ) -> dict[str, ApiError | None]:
        async with self._lock:
            now_ms, topics = self._now_ms(), self._metadata.topics
            named = (topics.get(item.name) for item in slices.of(additions))
            before = {topic.name: len(topic.partitions) for topic in named if topic}
            async with self._operations.decision_lock:
                results = self._controller.create_partitions(
                    additions,
                    now_ms,
                    validate_only=validate_only,
                    permits=permits,
                    step=slices.step,
                )
            if validate_only:
                return results
            enlarged = [topics[name] for name, error in slices.of(results.items()) if error is None]
            self._note_placed(additions, results)
            added = [
                (topic, range(before[topic.name], len(topic.partitions)))
                for topic in slices.of(enlarged)
            ]
            await self._topic_logs.create(added, now_ms, slices.step)
            for topic, partitions in slices.of(added):
                self._on_enlarged(topic, partitions)
                if self.on_served is not None:
                    self.on_served(topic)
                logger.info("topic %s has now %s", topic.name, count(topic))
            return results

    def _note_placed(
        self, requests: Iterable[NewTopic | MorePartitions], results: Mapping[str, object]
    ) -> None:
        if self.on_placed is None:
            return
        for request in requests:
            if not isinstance(results[request.name], ApiError):
                self.on_placed(self._metadata.topics[request.name], request)

    async def delete(
        self, refs: Sequence[TopicRef], *, permits: Permits = unlimited
    ) -> list[TopicDeletionResult]:
        """Delete topics by name or id. Returns one result per entry of `refs`."""
        results = await self._operations.run(lambda slices: self._delete(slices, refs, permits))
        await self._sync.sync()
        self.recent_deletions.answered(result.topic.name for result in results if result.topic)
        return results

    async def _delete(
        self, slices: Slices, refs: Sequence[TopicRef], permits: Permits
    ) -> list[TopicDeletionResult]:
        async with self._lock:
            now_ms = self._now_ms()
            async with self._operations.decision_lock:
                results = self._controller.delete_topics(
                    refs, now_ms, permits=permits, step=slices.step
                )
            deleted = [result.topic for result in results if result.topic]
            self.recent_deletions.begin(topic.name for topic in deleted)
            # Only now, because a deletion that is refused must not end a round of cleaning.
            partitions = [
                TopicPartition(topic.name, index)
                for topic in deleted
                for index in slices.of(topic.partitions)
            ]
            async with self._log_cleaner.paused(partitions, slices.step):
                await self._topic_logs.delete(deleted, slices.step)
            for topic in slices.of(deleted):
                logger.info("deleted topic %s with %s", topic.name, count(topic))
            return results

    def update_config(self, config: BrokerConfig) -> None:
        """Take over changed settings of the broker; topics inherit them."""
        self._config = config


def count(topic: Topic) -> str:
    """The number of partitions, for log lines."""
    partitions = len(topic.partitions)
    return "1 partition" if partitions == 1 else f"{partitions} partitions"
