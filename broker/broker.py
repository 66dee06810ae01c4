"""The one object that holds all of a broker's state, and the place where it is wired together.

Nothing else in odradek has state at module level. Start: take the ports, lock the data
directories, read the metadata log, open the partition logs, load the groups, then listen: once a
client can connect, everything is there. Stop is the same in reverse, and ends with the mark of a
clean shutdown.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING

from odradek.coordinator.consumer_groups.group_configs import ConsumerGroupConfigs
from odradek.coordinator.consumer_groups.topics_view import ClusterTopics
from odradek.coordinator.group_coordinator import GroupCoordinator, NewIds
from odradek.coordinator.group_settings import ConsumerGroupSettings, GroupSettings
from odradek.coordinator.metadata.broker_registration import Endpoint
from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.coordinator.metadata.controller import Controller
from odradek.coordinator.metadata.features import GROUP_VERSION
from odradek.coordinator.metadata.snapshot_keeping import SnapshotKeeper, SnapshotRules
from odradek.coordinator.metadata.topic_settings import topic_rules
from odradek.coordinator.timers import Now
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.primitives import random_uuid, random_uuid_with_dashes, uuid_text
from odradek.storage.cleaning.cleaner_checkpoints import CleanerCheckpoints
from odradek.storage.files import Files
from odradek.storage.log_manager import LogManager
from odradek.storage.moving.log_moves import LogMoves
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC

from .admin.config_admin import ConfigAdmin
from .admin.config_in_force import ConfigInForce
from .admin.topic_admin import TopicAdmin
from .disk.cold_reads import ColdReads
from .disk.disk_executor import DiskExecutor
from .disk.disk_space import DiskSpace
from .disk.log_sync import LogSync, LogSyncs
from .lifecycle.preflight import Survey
from .lifecycle.startup import (
    directories_of,
    had_clean_shutdown,
    lead_log,
    lead_logs,
    load_logs,
    open_metadata,
    settle_moves,
)
from .maintenance.cleaning.cleaner_pool import CleanerPool
from .maintenance.cleaning.log_cleaner import LogCleaner
from .maintenance.log_mover import LogMover
from .maintenance.log_recovery import LogRecovery
from .maintenance.metadata_snapshots import MetadataSnapshots
from .maintenance.retention_check import RetentionCheck
from .maintenance.workers.record_walks import RecordWalks
from .network.group_turns import GroupTurns
from .requests.down_conversion import DownConverter
from .requests.fetch_sessions import FetchSessions
from .requests.fetch_waiters import FetchWaiters
from .security.authorizer import Authorizer

if TYPE_CHECKING:
    from odradek.config.broker_config import BrokerConfig
    from odradek.config.listeners import Listener
    from odradek.config.topic_config import TopicConfig
    from odradek.coordinator.metadata.metadata_reading import MetadataReading
    from odradek.coordinator.metadata.topics import Topic
    from odradek.storage.directories.data_directory import DataDirectory
    from odradek.storage.log import PartitionLog

logger = logging.getLogger("odradek")


def wall_clock_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Broker:
    """A broker with its data open. `start` makes one that serves; `stop` ends it."""

    def __init__(
        self,
        config: BrokerConfig,
        loop: asyncio.AbstractEventLoop,
        ports: Mapping[str, int],
        *,
        now_ms: Callable[[], int] = wall_clock_ms,
        files: Files | None = None,
    ) -> None:
        """Open the data directories; nothing listens yet. `ports`: of each listener, by its name.

        Raises DirectoryError, RefusedToStartError.
        """
        self.config = config
        self.loop = loop
        self.now_ms = now_ms
        self.node_id = config.node_id
        self.files = files or Files()
        self.failure: asyncio.Future[str] = loop.create_future()  # why it cannot go on
        self.disk = DiskExecutor(loop)
        self.cold_reads = ColdReads(self.files, self.disk)
        self._ports = ports
        self._background: set[asyncio.Task[None]] = set()
        self.is_closing = False
        survey = Survey(config, self.files)
        self.log_manager = LogManager.open(config, files=self.files, inspect=survey.look)
        self.log_moves = LogMoves(self.log_manager, self.files)
        self.log_syncs = LogSyncs(self.log_manager, self.disk, now_ms)
        self.log_manager.on_roll = self._flush_after_roll
        self.log_manager.on_flush_due = self.log_syncs.flush_due
        self.disk_space = DiskSpace(
            self.log_manager, self.files, self.disk, lambda: self.config.odradek_min_free_bytes
        )
        self.log_manager.on_full = lambda directory: loop.call_soon_threadsafe(
            self.disk_space.note_full, directory
        )
        self.cluster_id = self.log_manager.cluster_id
        self._open_metadata(survey.reading)
        self.config_in_force = ConfigInForce(config, self.metadata.configs, self.node_id)
        self.config_in_force.on_change.append(self._config_changed)
        self._config_changed(self.config_in_force.current)
        self.registered_directories = self._open_logs()
        self.log_recovery = LogRecovery(
            self.log_manager,
            topic_config=self._topic_config,
            on_ready=self._log_recovered,
            now_ms=now_ms,
        )
        self.fetch_sessions = FetchSessions(
            config.max_incremental_fetch_session_cache_slots, lambda: random.randrange(1, 2**31)
        )
        self.fetch_waiters = FetchWaiters(loop)
        self.record_walks = RecordWalks(lambda: self.config.queued_bytes_limit)
        self.down_converter = DownConverter(self.files, self.disk, self.record_walks)
        self.authorizer = Authorizer()
        self.log_cleaner = LogCleaner(
            manager=self.log_manager,
            retention=RetentionCheck(self.log_manager, self.cold_reads, self.disk, now_ms),
            checkpoints=CleanerCheckpoints(self.log_manager, self.files),
            pool=CleanerPool(lambda: self.config),
            disk=self.disk,
            config=lambda: self.config,
            now_ms=now_ms,
        )
        self.config_in_force.on_change.append(self.log_cleaner.update_config)
        self.topic_admin = TopicAdmin(
            config=self.config,
            controller=self.controller,
            metadata_sync=self.metadata_sync,
            log_manager=self.log_manager,
            log_cleaner=self.log_cleaner,
            disk=self.disk,
            on_created=self._topic_created,
            on_deleted=self._topic_deleted,
            now_ms=now_ms,
        )
        self.config_in_force.on_change.append(self.topic_admin.update_config)
        self.config_admin = ConfigAdmin(
            in_force=self.config_in_force,
            controller=self.controller,
            metadata_sync=self.metadata_sync,
            log_manager=self.log_manager,
            now_ms=now_ms,
        )
        self.log_mover = LogMover(
            moves=self.log_moves,
            in_force=self.config_in_force,
            controller=self.controller,
            log_syncs=self.log_syncs,
            log_cleaner=self.log_cleaner,
            disk=self.disk,
            cold_reads=self.cold_reads,
            in_background=self.in_background,
            now_ms=now_ms,
        )
        self.consumer_group_configs = ConsumerGroupConfigs(
            ConsumerGroupSettings.of(self.config),
            partial(self.metadata.configs.of, ConfigResourceType.GROUP),
        )
        for line in self.consumer_group_configs.warnings(
            self.metadata.configs.names(ConfigResourceType.GROUP)
        ):
            logger.warning("%s", line)
        self.group_turns = GroupTurns(loop)
        self.groups = GroupCoordinator(
            GroupSettings.of(config),
            loop=loop,
            clock=lambda: Now(now_ms(), time.monotonic_ns() // 1_000_000),
            after_arrivals=self.group_turns.after_arrivals,
            new_ids=NewIds(random_uuid_with_dashes, lambda: uuid_text(random_uuid())),
            ensure_offsets_topic=self.topic_admin.ensure_offsets_topic,
            topics=ClusterTopics(self.metadata),
            consumer_configs=self.consumer_group_configs,
        )
        if CONSUMER_OFFSETS_TOPIC in self.metadata.topics:
            self._open_offsets_topic(self.metadata.topics[CONSUMER_OFFSETS_TOPIC])
            self.groups.delete_offsets_of_missing_topics(self.metadata.topics.by_id)
        self.log_mover.resume()
        self.config_in_force.on_change.append(self._cordon)
        self.disk_space.on_space = self._space_again
        self.config_in_force.on_change.append(self._group_settings_changed)

    def _open_metadata(self, reading: MetadataReading | None) -> None:
        now_ms = self.now_ms()
        kraft_log = open_metadata(self.config, self.log_manager, self.files, now_ms, reading)
        self.metadata = kraft_log.metadata
        self.controller = Controller(
            kraft_log,
            lambda: topic_rules(
                self.config,
                self.node_id,
                [directory.directory_id for directory in self.log_manager.data_directories],
                self._cordoned(),
            ),
        )
        self.metadata_log = self.controller.log
        self.producer_ids = self.controller.producer_ids
        self.metadata_sync = LogSync(self.metadata_log, self.log_syncs.flush)
        keeper = SnapshotKeeper(
            self.metadata_log,
            self.files,
            self.log_manager.deletions,
            SnapshotRules.of(self.config),
            now_ms=now_ms,
        )
        self.metadata_snapshots = MetadataSnapshots(
            self.controller, keeper, self.metadata_sync, self.disk, self.cold_reads, self.now_ms
        )

    def _open_logs(self) -> list[DataDirectory]:
        """Returns the directories that the broker has registered with."""
        now_ms = self.now_ms()
        # Other processes know nothing of files that are not the system's own (tests have such).
        may_wait = type(self.files) is Files
        load_logs(
            self._topic_config, self.log_manager, self.metadata, now_ms, large_may_wait=may_wait
        )
        settle_moves(self.config, self._topic_config, self.log_moves, self.metadata, now_ms)
        registered = self.log_manager.data_directories
        self.broker_epoch = self.controller.register_broker(
            incarnation_id=random_uuid(),
            endpoints=self._endpoints(),
            directories=[directory.directory_id for directory in registered],
            cordoned=self._cordoned(),
            rack=self.config.broker_rack,
            now_ms=now_ms,
        )
        self.controller.take_over(
            clean_shutdown=had_clean_shutdown(registered),
            directory_of=directories_of(self.log_manager),
            any_offline=bool(self.log_manager.offline),
            now_ms=now_ms,
        )
        lead_logs(self.config, self.log_manager, self.metadata, now_ms)
        self.controller.assign_directories(directories_of(self.log_manager), now_ms)
        self.metadata_log.flush(now_ms)
        return registered

    # -- life -------------------------------------------------------------------------------------

    def in_background(self, work: Coroutine[None, None, None]) -> None:
        """Run something nobody waits for; `close` waits for it."""
        task = self.loop.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _flush_after_roll(self, log: PartitionLog) -> None:
        """Sync the segment that a roll has closed, in the background. Kafka: the flush-log task."""
        self.in_background(self.log_syncs.flush_or_log(log, log.segments.active.base_offset))

    def answer_parked_requests(self) -> None:
        """Answer the requests that wait, with what there is or a refusal: the broker stops."""
        self.fetch_waiters.release_all()
        self.record_walks.release_all()
        self.groups.close()

    async def close(self) -> None:
        """Flush and close everything, and mark the stop as clean."""
        await self.topic_admin.close()
        self.log_mover.close()
        await self.log_recovery.close()
        await self.log_cleaner.close()
        await self.record_walks.close()
        if self._background:
            await asyncio.wait(self._background)
        self.is_closing = True
        now_ms = self.now_ms()
        try:
            self.controller.fence_broker(now_ms)
        except ApiError as error:
            logger.error("the metadata log does not say that the broker has gone: %s", error)
        await self.disk.run(self.log_manager.close, now_ms=now_ms, broker_epoch=self.broker_epoch)
        self.disk.close()

    # -- what handlers ask ------------------------------------------------------------------------

    def advertised(self, listener: Listener, local_host: str) -> tuple[str, int]:
        """Host and port that a client of the listener is told to connect to.

        Where nothing is configured and the listener is every interface, that is the address by
        which the client has reached us.
        """
        told = self.config.advertised[listener.name]
        return told.host or local_host, told.port or self._ports[listener.name]

    def topic_name(self, topic_id: bytes) -> str:
        """The name of the topic with an id. Raises UNKNOWN_TOPIC_ID."""
        topic = self.metadata.topics.by_id.get(topic_id)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has id {uuid_text(topic_id)}")
        return topic.name

    def check_leader_epoch(self, log: PartitionLog, leader_epoch: int) -> None:
        """Refuse a client that knows an older or newer leader than there is (KIP-320); -1: any."""
        if leader_epoch in (-1, log.leader_epoch):
            return
        is_older = leader_epoch < log.leader_epoch
        code = ErrorCode.FENCED_LEADER_EPOCH if is_older else ErrorCode.UNKNOWN_LEADER_EPOCH
        raise ApiError(code, f"leader epoch {leader_epoch}, where it is {log.leader_epoch}")

    def is_served(self, topic: str, partition: int) -> bool:
        """Whether the partition has a leader: its log, or its log directory, may have failed."""
        log = self.log_manager.find(topic, partition)
        return log is not None and log.is_online

    @property
    def serves_consumer_groups(self) -> bool:
        """Whether the consumer protocol (KIP-848) is on: in the settings, and in the metadata."""
        enabled = self.consumer_group_configs.broker.is_enabled
        return enabled and self.metadata.features.level(GROUP_VERSION) > 0

    # -- what follows from a change of topics, or of settings -------------------------------------

    def _config_changed(self, config: BrokerConfig) -> None:
        self.config = config
        self.log_manager.update_config(config)

    def _group_settings_changed(self, config: BrokerConfig) -> None:
        self.consumer_group_configs.update(ConsumerGroupSettings.of(config))

    def _cordoned(self) -> list[bytes]:
        """Of the directories that are online, those that get no new partitions."""
        cordoned = self.config.cordoned_directories
        return [
            one.directory_id for one in self.log_manager.data_directories if one.path in cordoned
        ]

    def _cordon(self, _config: BrokerConfig) -> None:
        try:
            self.controller.cordon_directories(self._cordoned(), self.now_ms())
        except ApiError as error:
            logger.error("the metadata log does not name the cordoned directories: %s", error)

    def _topic_created(self, topic: Topic) -> None:
        if topic.name == CONSUMER_OFFSETS_TOPIC:
            self._open_offsets_topic(topic)

    def _topic_deleted(self, topic: Topic) -> None:
        self.groups.on_topics_deleted([(topic.name, topic.id)])

    def _open_offsets_topic(self, topic: Topic) -> None:
        logs = (self.log_manager.find(topic.name, index) for index in topic.partitions)
        online = [log for log in logs if log is not None and log.is_online]
        self.groups.open_topic(online, len(topic.partitions))

    def coordinator_lost(self, log: PartitionLog) -> None:
        """A coordinator's log is offline, or what it has been told is not on the disk."""
        if log.topic == CONSUMER_OFFSETS_TOPIC:
            self.groups.partition_offline(log.partition)

    def _topic_config(self, topic: str) -> TopicConfig:
        return self.config.stored_topic_config(self.metadata.configs.of_topic(topic))

    def _log_recovered(self, log: PartitionLog) -> None:
        self.log_cleaner.log_recovered(log)
        topic = self.metadata.topics[log.topic]
        partition = topic.partitions[log.partition]
        lead_log(self.config, self.log_manager, topic, partition, log.config, self.now_ms())
        if log.topic == CONSUMER_OFFSETS_TOPIC:
            self.groups.partition_online(log, self.metadata.topics.by_id)

    def _space_again(self, directory: DataDirectory) -> None:
        """Go on with the logs that a full disk has kept from being recovered, or made."""
        found, unmade = self.log_manager.space_again(directory)
        self.log_recovery.begin(self.config.num_recovery_threads_per_data_dir, found)
        for name, index in unmade:
            topic = self.metadata.topics[name]
            partition, config = topic.partitions[index], self._topic_config(name)
            lead_log(self.config, self.log_manager, topic, partition, config, self.now_ms())
            log = self.log_manager.find(name, index)
            if log is not None and name == CONSUMER_OFFSETS_TOPIC:
                self.groups.partition_online(log, self.metadata.topics.by_id)

    def _endpoints(self) -> list[Endpoint]:
        """The listeners, as the metadata log describes them to others."""
        return [
            Endpoint(
                name=listener.name,
                host=self.advertised(listener, "localhost")[0],
                port=self.advertised(listener, "localhost")[1],
            )
            for listener in self.config.open_listeners
        ]
