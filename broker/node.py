"""What a broker serves partitions with: configuration, logs, metadata, disk, limits of clients.

broker.py has the rest, the controller and the coordinators. Its constructor is a list of steps. It
opens the data directories, `__init__` creates what reads and syncs them, it finds the metadata,
`_load` opens the logs, it leads the partitions, and `_complete` creates the rest of this part.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from odradek.broker.common.background_tasks import BackgroundTasks
from odradek.broker.common.clock import Clock
from odradek.broker.common.effective_config import EffectiveConfig
from odradek.broker.common.nodes import Nodes, Ports
from odradek.broker.common.traffic import Traffic
from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.broker.disk.disk_space import DiskSpace
from odradek.broker.disk.log_sync import Due, LogSyncs
from odradek.broker.fetching.fetch_sessions import FetchSessions
from odradek.broker.fetching.fetching import Fetching
from odradek.broker.maintenance.cleaning.cleaner_pool import CleanerPool
from odradek.broker.maintenance.cleaning.log_cleaner import LogCleaner
from odradek.broker.maintenance.log_maintenance import LogMaintenance
from odradek.broker.maintenance.log_mover import LogMover
from odradek.broker.maintenance.log_recovery import LogRecovery
from odradek.broker.maintenance.retention_check import RetentionCheck
from odradek.broker.processes.record_walks import RecordWalks
from odradek.broker.quotas.host_addresses import HostAddresses
from odradek.broker.quotas.quotas import Quotas
from odradek.broker.security.sasl.login_listeners import LoginListeners
from odradek.broker.security.sasl.scram_credentials import credential_of
from odradek.broker.security.security import Security
from odradek.broker.startup.startup import lead_log, load_logs, open_tls, settle_moves
from odradek.broker.turns.slices import Surroundings
from odradek.broker.turns.turns import Turns
from odradek.config.broker_config import BrokerConfig
from odradek.config.topic_config import TopicConfig
from odradek.coordinator.metadata.cluster_metadata import ClusterMetadata
from odradek.coordinator.metadata.topic_settings import stored_config
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.primitives import uuid_text
from odradek.storage.cleaning.cleaner_checkpoints import CleanerCheckpoints
from odradek.storage.data_directory import DataDirectory
from odradek.storage.files import NonBlockingReads
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager
from odradek.storage.moving.log_moves import LogMoves
from odradek.storage.topic_partition import TopicPartition


class BrokerNode:
    """The base of Broker, without what decides."""

    def __init__(
        self,
        config: BrokerConfig,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        log_manager: LogManager,
        ports: Ports,
    ) -> None:
        """`ports` are those of its listeners."""
        self.config = config
        self.loop = loop
        self.clock = clock
        self.background = BackgroundTasks(loop)
        self.log_manager = log_manager
        self.disk = DiskExecutor(loop)
        # Those of `fetching` are others, so that clients that read never hold up those that write.
        self.record_walks = RecordWalks(lambda: self.config.queued_bytes_limit)
        self.fetching = Fetching(
            loop=loop,
            files=log_manager.files,
            disk=self.disk,
            sessions=FetchSessions(
                config.max_incremental_fetch_session_cache_slots,
                new_id=lambda: random.randrange(1, 2**31),
                partition_count=lambda: self.metadata.topics.partition_count(),
                find_topic_name=self.find_topic_name,
            ),
            max_waiting_bytes=lambda: self.config.queued_bytes_limit,
        )
        self.log_syncs = LogSyncs(log_manager, self.disk, clock.timer_ms)
        self.disk_space = DiskSpace(
            log_manager,
            log_manager.files,
            self.disk,
            min_free_bytes=lambda: self.config.odradek_min_free_bytes,
            on_room=self._retry_logs,
        )
        log_manager.on_roll = lambda log: self.background.start(self.log_syncs.flush_closed(log))
        log_manager.on_flush_due = self.log_syncs.flush_due
        log_manager.on_full = lambda directory: loop.call_soon_threadsafe(
            self.disk_space.note_full, directory
        )
        self.nodes = Nodes(config, ports)

    # -- the steps of the constructor -------------------------------------------------------------

    def _create_logins(self, config: BrokerConfig, clock: Clock) -> LoginListeners:
        """Create what authenticates clients; it may refuse the configuration."""
        return LoginListeners(
            config,
            lambda mechanism, name, is_token: credential_of(
                self.metadata, self.security.token_credentials, mechanism, name, is_token
            ),
            lambda mechanism, number: self.metadata.scram_credentials.decoy_iterations(
                mechanism, number
            ),
            clock.now,
        )

    def _load(
        self, metadata: ClusterMetadata, logins: LoginListeners, *, large_may_wait: bool
    ) -> None:
        """Apply the settings that the metadata has, open the partition logs, and settle moves.

        `large_may_wait`: see `load_logs`.
        """
        self.metadata = metadata
        config = self.config
        self.effective_config = EffectiveConfig(config, metadata.configs, config.node_id)
        self.effective_config.on_change.append(self._config_changed)
        self._config_changed(self.effective_config.current)
        tls = open_tls(self.effective_config, self.disk, self.clock.now_ms)
        self.security = Security.of(config, metadata, logins, tls, self.clock.now_ms)
        now_ms = self.clock.now_ms()
        load_logs(
            self.config,
            self._topic_config,
            self.log_manager,
            metadata,
            now_ms,
            large_may_wait=large_may_wait,
        )
        moves = LogMoves(self.log_manager, self.log_manager.files)
        settle_moves(self.config, self._topic_config, moves, metadata, now_ms)

    def _complete(
        self,
        assign: Callable[[TopicPartition, bytes], object],
        assigned: Callable[[], Awaitable[None]],
    ) -> None:
        """Create what requests share, and what works on the logs beside them.

        `assign` and `assigned` record where a log has moved, see LogMover.
        """
        self.traffic: Traffic | None = None
        if self.config.http_listener is not None:
            self.traffic = Traffic(self.metadata.topics)
            self.log_syncs.on_synced = self.traffic.syncs.add
        self.quotas = Quotas(
            self.config, self.metadata.quotas, HostAddresses(), self.clock.timer_ms
        )
        self.turns = Turns(self.loop, Surroundings(self._begin_slice, self._end_slice))
        self._create_maintenance(assign, assigned)
        logins, cleaner = self.security.logins, self.maintenance.cleaner
        logins.update_config(self.config)
        self.effective_config.checks.append(logins.check_settings)
        self.effective_config.on_change += [cleaner.update_config, logins.update_config]

    def _create_maintenance(
        self,
        assign: Callable[[TopicPartition, bytes], object],
        assigned: Callable[[], Awaitable[None]],
    ) -> None:
        """Create the recovery, cleaning and moves of logs; whatever serves clients starts them."""
        manager, disk, cold_reads = self.log_manager, self.disk, self.fetching.cold_reads
        recovery = LogRecovery(
            manager,
            disk,
            topic_config=self._topic_config,
            on_ready=self._log_recovered,
            now_ms=self.clock.now_ms,
        )
        cleaner = LogCleaner(
            manager=manager,
            retention=RetentionCheck(manager, cold_reads, disk, self.clock.now_ms),
            checkpoints=CleanerCheckpoints(manager, manager.files),
            pool=CleanerPool(lambda: self.config),
            disk=disk,
            slices=self.turns.slices,
            config=lambda: self.config,
            now_ms=self.clock.now_ms,
            timer_ms=self.clock.timer_ms,
        )
        mover = LogMover(
            moves=LogMoves(manager, manager.files),
            in_force=self.effective_config,
            topics=self.metadata.topics,
            assign=assign,
            assigned=assigned,
            log_syncs=self.log_syncs,
            log_cleaner=cleaner,
            disk=disk,
            cold_reads=cold_reads,
            in_background=self.background.start,
        )
        self.maintenance = LogMaintenance(recovery, cleaner, mover)

    # -- stopping ---------------------------------------------------------------------------------

    def answer_parked_requests(self) -> None:
        """Answer all waiting requests, with the available data or an error, because of a stop."""
        self.fetching.release_all()
        self.record_walks.release_all()

    async def _end_background_work(self) -> None:
        """End what works on the logs beside requests, so that they can be closed."""
        await self.maintenance.close()
        for walks in (self.record_walks, self.fetching.walks):
            await walks.close()
        await self.background.close()

    # -- what handlers ask ------------------------------------------------------------------------

    def topic_name(self, topic_id: bytes) -> str:
        """The name of the topic with an id. Raises UNKNOWN_TOPIC_ID."""
        name = self.find_topic_name(topic_id)
        if name is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has id {uuid_text(topic_id)}")
        return name

    def find_topic_name(self, topic_id: bytes) -> str | None:
        """The name of the topic with an id; None if there is none."""
        topic = self.metadata.topics.by_id.get(topic_id)
        return None if topic is None else topic.name

    def check_leader_epoch(self, log: PartitionLog, leader_epoch: int) -> None:
        """Check the leader epoch that a client knows (KIP-320); -1 skips the check.

        Raises FENCED_LEADER_EPOCH if it is older than the log's, UNKNOWN_LEADER_EPOCH if newer.
        """
        if leader_epoch in (-1, log.leader_epoch):
            return
        is_older = leader_epoch < log.leader_epoch
        code = ErrorCode.FENCED_LEADER_EPOCH if is_older else ErrorCode.UNKNOWN_LEADER_EPOCH
        text = f"the request has leader epoch {leader_epoch}, the leader has {log.leader_epoch}"
        raise ApiError(code, text)

    # -- slices of requests -----------------------------------------------------------------------

    def _begin_slice(self, state: tuple[Due, NonBlockingReads | None] | None) -> None:
        """Set what the code of a request finds in the broker: its fsyncs, and its attempt."""
        self.log_syncs.due, self.log_manager.files.nonblocking = state or ({}, None)

    def _end_slice(self) -> tuple[Due, NonBlockingReads | None]:
        """Take away what `_begin_slice` sets, because another request runs next."""
        attempt, self.log_manager.files.nonblocking = self.log_manager.files.nonblocking, None
        return self.log_syncs.take_due(), attempt

    # -- reactions to changed settings and logs ---------------------------------------------------

    def _config_changed(self, config: BrokerConfig) -> None:
        self.config = config
        self.log_manager.update_config(config)

    def _log_recovered(self, log: PartitionLog) -> None:
        self.maintenance.cleaner.log_recovered(log)
        self._lead(log.topic, log.partition, log.config)

    async def _retry_logs(self, directory: DataDirectory, at_most: int) -> None:
        """Recover and create logs that were postponed for lack of space or descriptors."""
        to_recover, not_created = self.log_manager.take_postponed(directory, at_most)
        self.maintenance.recovery.begin(self.config.num_recovery_threads_per_data_dir, to_recover)
        for name, index in not_created:
            self._lead(name, index, self._topic_config(name))
            await asyncio.sleep(0)  # one in each turn: there may be thousands

    def _lead(self, name: str, index: int, config: TopicConfig) -> PartitionLog | None:
        """Lead a partition whose log was missing when the broker started. Returns its log."""
        topic = self.metadata.topics.get(name)
        partition = topic.partitions.get(index) if topic is not None else None
        if topic is None or partition is None:
            return None  # it has just been deleted, and its logs will be
        lead_log(self.config, self.log_manager, topic, partition, config, self.clock.now_ms())
        return self.log_manager.find(name, index)

    def _topic_config(self, topic: str) -> TopicConfig:
        return stored_config(self.config, self.metadata.configs, topic)
