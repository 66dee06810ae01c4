"""The one object that holds all of a broker's state, and the place where its parts are joined.

There is no state at module level. The constructor locks the data directories, replays the metadata
log, opens the partition logs and loads the groups. lifecycle/running.py then opens the listeners,
so a client that connects finds everything loaded, except logs that take long to recover. `close`
goes the other way and ends with the mark of a clean shutdown.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from odradek.broker.admin.admin import Admin
from odradek.broker.admin.applied_config import AppliedConfig
from odradek.broker.admin.config_admin import ConfigAdmin
from odradek.broker.admin.operations import Operations
from odradek.broker.admin.quota_admin import QuotaAdmin
from odradek.broker.admin.subscriptions import Subscriptions
from odradek.broker.admin.topic_admin import TopicAdmin
from odradek.broker.admin.topic_logs import TopicLogs
from odradek.broker.common.background_tasks import BackgroundTasks
from odradek.broker.common.clock import Clock, timer_clock_ms, wall_clock_ms
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
from odradek.broker.maintenance.metadata_log import MetadataLog
from odradek.broker.maintenance.retention_check import RetentionCheck
from odradek.broker.processes.record_walks import RecordWalks
from odradek.broker.quotas.host_addresses import HostAddresses
from odradek.broker.quotas.quotas import Quotas
from odradek.broker.security.sasl.login_listeners import LoginListeners
from odradek.broker.security.sasl.scram_credentials import credential_of
from odradek.broker.security.security import Security
from odradek.broker.security.session import Session
from odradek.broker.shares.shares import Shares
from odradek.broker.shares.waiting import SlicedRead, WaitingRead
from odradek.broker.startup.coordinator_logs import CoordinatorLogs
from odradek.broker.startup.coordinators import (
    create_group_coordinator,
    create_marker_writer,
    create_share_coordinator,
    create_transaction_coordinator,
    load_group_configs,
)
from odradek.broker.startup.preflight import Preflight
from odradek.broker.startup.startup import (
    cordoned_ids,
    lead_log,
    load_logs,
    open_metadata,
    open_tls,
    register_broker,
    settle_moves,
)
from odradek.broker.telemetry.client_series import ClientSeries
from odradek.broker.telemetry.client_telemetry import ClientTelemetry
from odradek.broker.telemetry.payloads import Payloads
from odradek.broker.telemetry.pushed_records import PushedRecords, check_topic
from odradek.broker.transactions.partition_transactions import PartitionTransactions
from odradek.broker.transactions.verification import CoordinatorVerifier
from odradek.broker.turns.group_slices import GroupSlices
from odradek.broker.turns.slices import Surroundings
from odradek.broker.turns.turns import Turns
from odradek.config.broker_config import BrokerConfig
from odradek.config.listeners import Listener
from odradek.config.topic_config import TopicConfig
from odradek.coordinator.groups.group_coordinator import ModernGroupParts
from odradek.coordinator.metadata.broker_registration import Endpoint
from odradek.coordinator.metadata.controller import Controller
from odradek.coordinator.metadata.features import GROUP_VERSION, SHARE_VERSION, STREAMS_VERSION
from odradek.coordinator.metadata.metadata_reading import MetadataReading
from odradek.coordinator.metadata.snapshot_keeping import SnapshotKeeper, SnapshotRules
from odradek.coordinator.metadata.topic_settings import topic_rules
from odradek.coordinator.metadata.topics import NO_LEADER, Topic
from odradek.coordinator.modern_groups.topics_view import ClusterTopics
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.primitives import uuid_text
from odradek.storage.cleaning.cleaner_checkpoints import CleanerCheckpoints
from odradek.storage.directories.data_directory import DataDirectory
from odradek.storage.files import Files, NonBlockingReads
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager
from odradek.storage.moving.log_moves import LogMoves
from odradek.storage.topic_names import SHARE_GROUP_STATE_TOPIC
from odradek.storage.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.broker.processes.remote_markers import (
        RemoteMarkers,  # imported only if there are workers
    )

logger = logging.getLogger("odradek")


class Broker:
    """A broker with its data open. lifecycle/running.py makes it serve; `close` ends it.

    The constructor is a list of steps. Each step uses only what the steps before it have made.
    """

    def __init__(
        self,
        config: BrokerConfig,
        loop: asyncio.AbstractEventLoop,
        ports: Ports,
        *,
        worker_ports: Sequence[Ports] = (),
        now_ms: Callable[[], int] = wall_clock_ms,
        timer_ms: Callable[[], int] = timer_clock_ms,
        files: Files | None = None,
    ) -> None:
        """Open the data directories; nothing listens yet.

        `ports` are those of this process, `worker_ports` those of its workers.
        `now_ms` is the wall clock. `timer_ms` is the clock of the coordinators' deadlines.
        Raises DirectoryError, RefusedToStartError, ConfigError.
        """
        self.config = config
        self.loop = loop
        self.clock = Clock(now_ms, timer_ms)
        files = files or Files()
        self.failure: asyncio.Future[str] = loop.create_future()  # why the broker cannot go on
        self.background = BackgroundTasks(loop)
        self._check_topic_of_telemetry()
        logins = self._create_logins()
        reading = self._open_directories(files)
        self._create_disk_services()
        self.nodes = Nodes(config, self.log_manager.share, [ports, *worker_ports])
        self._open_metadata(reading)
        self._apply_stored_settings()
        self.security = Security.of(
            config,
            self.metadata,
            logins,
            open_tls(self.effective_config, self.disk, self.clock.now_ms),
            self.clock.now_ms,
        )
        self._open_logs()
        self._register()
        self._create_request_services()
        self._create_telemetry()
        self._create_maintenance()
        self._follow_settings()
        self._create_control()

    # -- the steps of the constructor -------------------------------------------------------------

    def _check_topic_of_telemetry(self) -> None:
        """Refuse the configuration if what clients push may not be written to the topic."""
        if self.config.odradek_telemetry_topic is not None:
            check_topic(self.config.odradek_telemetry_topic)

    def _create_logins(self) -> LoginListeners:
        """Create what authenticates clients; it may refuse the configuration."""
        return LoginListeners(
            self.config,
            lambda mechanism, name, is_token: credential_of(
                self.metadata,
                self.security.token_credentials,
                mechanism,
                name,
                is_token,
            ),
            lambda mechanism, number: self.metadata.scram_credentials.iterations_like_a_user(
                mechanism, number
            ),
            self.clock.now,
        )

    def _open_directories(self, files: Files) -> MetadataReading | None:
        """Lock, check and open the data directories.

        Returns the content of the metadata log, or None if there is no log yet.
        """
        preflight = Preflight(self.config, files)
        self.log_manager = LogManager.open(
            self.config,
            files=files,
            timer_ms=self.clock.timer_ms,
            inspect=preflight.check,
            workers=self.config.odradek_workers,
        )
        return preflight.reading

    def _create_disk_services(self) -> None:
        """Create what reads and syncs the logs beside the event loop."""
        self.disk = DiskExecutor(self.loop)
        # Those of `fetching` are others, so that clients that read never hold up those that write.
        self.record_walks = RecordWalks(lambda: self.config.queued_bytes_limit)
        self.fetching = Fetching(
            loop=self.loop,
            files=self.log_manager.files,
            disk=self.disk,
            sessions=FetchSessions(
                self.config.max_incremental_fetch_session_cache_slots,
                new_id=lambda: random.randrange(1, 2**31),
                partition_count=lambda: self.metadata.topics.partition_count(),
                find_topic_name=self.find_topic_name,
            ),
            max_waiting_bytes=lambda: self.config.queued_bytes_limit,
        )
        self.log_syncs = LogSyncs(self.log_manager, self.disk, self.clock.timer_ms)
        self.disk_space = DiskSpace(
            self.log_manager,
            self.log_manager.files,
            self.disk,
            min_free_bytes=lambda: self.config.odradek_min_free_bytes,
            on_space=self._space_is_free,
        )
        self.log_manager.on_roll = lambda log: self.background.start(
            self.log_syncs.flush_closed(log)
        )
        self.log_manager.on_flush_due = self.log_syncs.flush_due
        self.log_manager.on_full = lambda directory: self.loop.call_soon_threadsafe(
            self.disk_space.note_full, directory
        )

    def _open_metadata(self, reading: MetadataReading | None) -> None:
        """Replay the metadata log; the first start creates it."""
        now_ms = self.clock.now_ms()
        kraft_log = open_metadata(
            self.config, self.log_manager, self.log_manager.files, now_ms, reading
        )
        self.metadata = kraft_log.metadata
        self.controller = Controller(
            kraft_log,
            lambda: topic_rules(
                self.config,
                self.nodes.own_id,
                [directory.directory_id for directory in self.log_manager.data_directories],
                cordoned_ids(self.config, self.log_manager),
            ),
        )
        keeper = SnapshotKeeper(
            self.controller.log,
            self.log_manager.files,
            self.log_manager.deletions,
            SnapshotRules.of(self.config),
            now_ms=self.clock.timer_ms(),
        )
        self.metadata_log = MetadataLog(
            self.controller,
            keeper,
            log_syncs=self.log_syncs,
            disk=self.disk,
            cold_reads=self.fetching.cold_reads,
            workers=self.config.odradek_workers,
            clock=self.clock.now,
        )

    def _apply_stored_settings(self) -> None:
        """Apply the broker settings of the metadata log, now and whenever they change."""
        self.effective_config = EffectiveConfig(
            self.config, self.metadata.configs, self.config.node_id
        )
        self.effective_config.on_change.append(self._config_changed)
        self._config_changed(self.effective_config.current)

    def _open_logs(self) -> None:
        """Open the partition logs, and decide on interrupted moves between directories."""
        now_ms = self.clock.now_ms()
        load_logs(
            self._topic_config,
            self.log_manager,
            self.metadata,
            now_ms,
            large_may_wait=self._other_processes_read_logs,
        )
        settle_moves(
            self.config,
            self._topic_config,
            LogMoves(self.log_manager, self.log_manager.files),
            self.metadata,
            now_ms,
        )

    @property
    def _other_processes_read_logs(self) -> bool:
        """Other processes know no files but the system's own. Some tests have others."""
        return type(self.log_manager.files) is Files

    def _register(self) -> None:
        """Register the broker in the metadata log, and lead its partitions."""
        self.registered_directories = self.log_manager.data_directories
        register_broker(
            self.config,
            self.controller,
            self.log_manager,
            [self._endpoint(listener) for listener in self.config.open_listeners],
            self.registered_directories,
            self.clock.now_ms(),
        )

    def _create_request_services(self) -> None:
        """Create what requests share while they are served."""
        self.traffic: Traffic | None = None
        if self.config.http_listener is not None:
            self.traffic = Traffic(self.metadata.topics)
            self.log_syncs.on_synced = self.traffic.syncs.add
        self.quotas = Quotas(
            self.config, self.metadata.quotas, HostAddresses(), self.clock.timer_ms
        )
        self.waiting_share_fetches: set[WaitingRead | SlicedRead] = set()
        self.turns = Turns(self.loop, Surroundings(self._begin_slice, self._end_slice))

    def _begin_slice(self, state: tuple[Due, NonBlockingReads | None] | None) -> None:
        """Set what the code of a request finds in the broker: its fsyncs, and its attempt."""
        self.log_syncs.due, self.log_manager.files.nonblocking = state or ({}, None)

    def _end_slice(self) -> tuple[Due, NonBlockingReads | None]:
        """Take away what `_begin_slice` sets, because another request runs next."""
        attempt, self.log_manager.files.nonblocking = self.log_manager.files.nonblocking, None
        return self.log_syncs.take_due(), attempt

    def _create_telemetry(self) -> None:
        """Create what takes the metrics of clients. They are shown if there is an HTTP listener."""
        config, shows = self.config, self.traffic is not None
        self.telemetry = ClientTelemetry(
            subscriptions=Subscriptions(self.metadata.configs),
            series=ClientSeries(
                config.odradek_telemetry_max_series if shows else 0,
                config.odradek_telemetry_max_client_series,
            ),
            payloads=Payloads(self.disk, config.telemetry_max_bytes),
            background=self.background,
            max_bytes=config.telemetry_max_bytes,
            timer_ms=self.clock.timer_ms,
        )

    def _create_maintenance(self) -> None:
        """Create the recovery and cleaning of logs; lifecycle/running.py starts them."""
        recovery = LogRecovery(
            self.log_manager,
            topic_config=self._topic_config,
            on_ready=self._log_recovered,
            now_ms=self.clock.now_ms,
        )
        cleaner = LogCleaner(
            manager=self.log_manager,
            retention=RetentionCheck(
                self.log_manager, self.fetching.cold_reads, self.disk, self.clock.now_ms
            ),
            checkpoints=CleanerCheckpoints(self.log_manager, self.log_manager.files),
            pool=CleanerPool(lambda: self.config),
            disk=self.disk,
            config=lambda: self.config,
            now_ms=self.clock.now_ms,
            timer_ms=self.clock.timer_ms,
        )
        mover = LogMover(
            moves=LogMoves(self.log_manager, self.log_manager.files),
            in_force=self.effective_config,
            topics=self.metadata.topics,
            assign=self._assign_directory,
            assigned=self._directory_assigned,
            log_syncs=self.log_syncs,
            log_cleaner=cleaner,
            disk=self.disk,
            cold_reads=self.fetching.cold_reads,
            in_background=self.background.start,
        )
        self.maintenance = LogMaintenance(recovery, cleaner, mover)
        self.topic_logs = TopicLogs(
            log_manager=self.log_manager,
            disk=self.disk,
            node_id=self.config.node_id,
            config_of=self._topic_config,
            on_deleted=self._topics_deleted,
        )

    def _create_control(self) -> None:
        """Create what decides on changes of metadata, groups and transactions."""
        self._create_admin()
        self._load_coordinators()
        self._create_pushed_records()
        self.maintenance.mover.resume()
        self.effective_config.on_change += [
            self.admin.topics.update_config,
            self._cordon,
            self.group_configs.update,
        ]

    def _assign_directory(self, partition: TopicPartition, directory_id: bytes) -> None:
        """Record in the metadata that a replica is in a directory. Raises ApiError."""
        self.controller.assign_directory(*partition, directory_id, self.clock.now_ms())

    async def _directory_assigned(self, partition: TopicPartition) -> None:  # noqa: ARG002 # of all
        """Return when that is on the disk. Raises ApiError."""
        await self.log_syncs.flush(self.controller.log)

    def _create_admin(self) -> None:
        """Create what changes topics, quotas and configurations."""
        operations = Operations(self.loop, self.turns.slices)
        topics = TopicAdmin(
            config=self.config,
            operations=operations,
            controller=self.controller,
            metadata_sync=self.metadata_log.log_sync,
            topic_logs=self.topic_logs,
            log_cleaner=self.maintenance.cleaner,
            on_created=lambda topic: self.coordinator_logs.topic_created(topic),
            on_enlarged=lambda *added: self.coordinator_logs.partitions_created(*added),
            now_ms=self.clock.now_ms,
            timer_ms=self.clock.timer_ms,
        )
        quotas = QuotaAdmin(
            operations=operations,
            controller=self.controller,
            metadata_sync=self.metadata_log.log_sync,
            quotas=self.quotas,
            addresses=self.quotas.addresses,
            now_ms=self.clock.now_ms,
        )
        applied_config = AppliedConfig(
            self.effective_config,
            self.metadata.configs,
            self.log_manager,
            self.telemetry.subscriptions,
        )
        configs = ConfigAdmin(
            applied_config=applied_config,
            effective_config=self.effective_config,
            operations=operations,
            controller=self.controller,
            metadata_sync=self.metadata_log.log_sync,
            worker_ids=self.nodes.worker_ids,
            now_ms=self.clock.now_ms,
        )
        self.admin = Admin(
            operations=operations,
            topics=topics,
            quotas=quotas,
            configs=configs,
            applied_config=applied_config,
        )

    def _create_pushed_records(self) -> None:
        """Create what writes the metrics of clients to a topic, if one is named."""
        topic = self.config.odradek_telemetry_topic
        if topic is None:
            return
        self.telemetry.records = PushedRecords(
            topic,
            topics=self.metadata.topics,
            topic_admin=self.admin.topics,
            log_manager=self.log_manager,
            disk=self.disk,
            disk_space=self.disk_space,
            cold_reads=self.fetching.cold_reads,
            now_ms=self.clock.now_ms,
        )

    def _load_coordinators(self) -> None:
        """Create the coordinators, and replay their internal topics into them."""
        self.group_configs = load_group_configs(self.config, self.metadata.configs)
        topics = ClusterTopics(self.metadata)
        self.share_coordinator = create_share_coordinator(
            self.config, self.loop, self.clock.now, turns=self.turns.group, topics=topics
        )
        self.groups = create_group_coordinator(
            self.config,
            self.loop,
            self.clock.now,
            turns=self.turns.group,
            metadata=self.metadata,
            topics=topics,
            modern=ModernGroupParts(
                self.group_configs,
                GroupSlices(self.turns.slices),
                self.share_coordinator,
                self._when_share_states_exist,
            ),
        )
        self.remote_markers = self._create_remote_markers()
        markers = create_marker_writer(
            self.metadata, self.log_manager, self.groups, self.remote_markers
        )
        self.transactions = create_transaction_coordinator(
            self.config,
            self.loop,
            self.clock.now,
            turns=self.turns.group,
            controller=self.controller,
            metadata_sync=self.metadata_log.log_sync,
            markers=markers,
        )
        if self.remote_markers is not None:
            self.remote_markers.on_written = self.transactions.marker_written
        self.shares = Shares(
            loop=self.loop,
            clock=self.clock.now,
            after_arrivals=self.turns.group.after_arrivals,
            states=self.share_coordinator,
            configs=self.group_configs.share,
            find_log=lambda topic_id, partition: self.log_manager.get(
                self.topic_name(topic_id), partition
            ),
            slices=self.turns.slices,
        )
        # The groups first: transactions that are completed at start write markers to their logs.
        self.coordinator_logs = CoordinatorLogs(
            [self.groups, self.transactions, self.share_coordinator],
            self.log_manager,
            self.metadata.topics,
        )
        verifier = CoordinatorVerifier(
            lambda: self.config,
            self.clock.timer_ms,
            self.transactions,
            self.log_syncs,
            self.coordinator_logs.log_lost,
        )
        self.partition_transactions = PartitionTransactions(verifier, markers)
        self.coordinator_logs.load()

    def _create_remote_markers(self) -> RemoteMarkers | None:
        if not self.config.odradek_workers:
            return None
        # Imported here, because most brokers have no workers.
        from odradek.broker.processes.remote_markers import RemoteMarkers

        return RemoteMarkers(self.log_manager)

    def _follow_settings(self) -> None:
        """Pass changes of the broker's settings on; the log manager gets them first."""
        self.security.logins.update_config(self.config)
        self.effective_config.on_change += [
            self.maintenance.cleaner.update_config,
            self.security.logins.update_config,
        ]

    # -- stopping ---------------------------------------------------------------------------------

    def answer_parked_requests(self) -> None:
        """Answer all waiting requests, with the available data or an error, because of a stop."""
        self.fetching.release_all()
        self._release_share_fetches()
        self.record_walks.release_all()
        self.coordinator_logs.close()

    def _release_share_fetches(self) -> None:
        """Answer the waiting requests of share groups."""
        for waiting in tuple(self.waiting_share_fetches):
            waiting.release()

    async def close(self) -> None:
        """Flush and close everything, and mark the stop as clean."""
        await self.admin.operations.wait()
        self.shares.close()
        await self._end_background_work()
        try:
            self.controller.fence_broker(self.clock.now_ms())
        except ApiError as error:
            logger.error("the metadata log does not record that the broker stopped: %s", error)
        await self.disk.run(
            self.log_manager.close,
            now_ms=self.clock.timer_ms(),
            broker_epoch=self.metadata.brokers[self.config.node_id].broker_epoch,
        )
        self.disk.close()

    async def _end_background_work(self) -> None:
        """End what works on the logs beside requests, so that they can be closed."""
        await self.maintenance.close()
        for walks in (self.record_walks, self.fetching.walks):
            await walks.close()
        await self.background.close()

    # -- what handlers ask ------------------------------------------------------------------------

    def advertised(self, listener: Listener, local_host: str) -> tuple[str, int]:
        """Host and port at which clients of the listener are to connect. See Nodes.address."""
        return self.nodes.address(listener, local_host, self.log_manager.share.process)

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

    def is_served(self, topic: str, partition: int) -> bool:
        """Whether the partition has a leader. It has none if its log or log directory failed."""
        log = self.log_manager.find(topic, partition)
        if log is None and self.log_manager.is_elsewhere(topic, partition):
            return self._is_served_by_worker(topic, partition)
        return log is not None and log.is_online

    def _is_served_by_worker(self, topic: str, partition: int) -> bool:
        process = self.log_manager.share.owner(topic, partition)
        known = self.metadata.topics.get(topic)
        has_leader = known is not None and known.partitions[partition].leader != NO_LEADER
        return has_leader and self.metadata_log.worker_progress.is_serving(process)

    @property
    def metadata_end_offset(self) -> int:
        """The end of the metadata log."""
        return self.controller.log.log_end_offset

    @property
    def kraft_version(self) -> int:
        """The kraft.version of the metadata quorum."""
        return self.controller.quorum.kraft_version

    @property
    def serves_consumer_groups(self) -> bool:
        """Whether settings and metadata both enable the consumer protocol (KIP-848)."""
        enabled = self.group_configs.consumer.broker.is_enabled
        return enabled and self.metadata.features.level(GROUP_VERSION) > 0

    @property
    def serves_streams_groups(self) -> bool:
        """Whether settings and metadata both enable the protocol of streams groups (KIP-1071)."""
        enabled = self.group_configs.streams.broker.is_enabled
        return enabled and self.metadata.features.level(STREAMS_VERSION) > 0

    @property
    def serves_share_groups(self) -> bool:
        """Whether the metadata enables share groups (KIP-932). Workers do not serve them."""
        enabled = self.metadata.features.level(SHARE_VERSION) > 0
        return enabled and not self.config.odradek_workers

    def disconnected(self, session: Session) -> None:
        """A connection has closed: the records that its member had locked are available again.

        The client of its telemetry is forgotten.
        """
        self.shares.disconnected(session)
        self.telemetry.connection_closed(session)

    def remove_expired_tokens(self) -> None:
        """Remove the delegation tokens that have expired. Without a secret key they are kept."""
        if self.security.token_rules.hmacs is None:
            return
        for token in self.controller.remove_expired_tokens(self.clock.now_ms()):
            logger.info("the delegation token %s of %s has expired", token.token_id, token.owner)

    # -- reactions to changed topics, settings and logs -------------------------------------------

    def _config_changed(self, config: BrokerConfig) -> None:
        self.config = config
        self.log_manager.update_config(config)

    def _topics_deleted(self, topics: Sequence[Topic]) -> None:
        """Forget deleted topics, all of a request at once: each step looks through all groups."""
        for topic in topics:
            self.coordinator_logs.topic_deleted(topic)
        ids = frozenset(topic.id for topic in topics)
        self.groups.retention.on_topics_deleted([(topic.name, topic.id) for topic in topics])
        self.groups.share_groups.on_topics_deleted(ids)
        self.share_coordinator.on_topics_deleted(ids)
        self.shares.topics_deleted(ids)

    def _when_share_states_exist(self, then: Callable[[], None]) -> None:
        """Call `then` when `__share_group_state` exists, or cannot be created."""

        async def create_and_call() -> None:
            try:
                await self.admin.topics.ensure_internal_topic(SHARE_GROUP_STATE_TOPIC)
            except ApiError as error:
                logger.error("%s cannot be created: %s", SHARE_GROUP_STATE_TOPIC, error.message)
            then()

        if self.share_coordinator.shards.is_open:
            then()
        else:
            self.background.start(create_and_call())

    def _cordon(self, _config: BrokerConfig) -> None:
        try:
            cordoned = cordoned_ids(self.config, self.log_manager)
            self.controller.cordon_directories(cordoned, self.clock.now_ms())
        except ApiError as error:
            logger.error("the metadata log does not name the cordoned directories: %s", error)

    def _log_recovered(self, log: PartitionLog) -> None:
        self.maintenance.cleaner.log_recovered(log)
        self._lead(log.topic, log.partition, log.config)

    def _space_is_free(self, directory: DataDirectory) -> None:
        """Recover and create the logs that had to wait because the disk was full."""
        to_recover, not_created = self.log_manager.space_again(directory)
        self.maintenance.recovery.begin(self.config.num_recovery_threads_per_data_dir, to_recover)
        for name, index in not_created:
            self._lead(name, index, self._topic_config(name))

    def _lead(self, name: str, index: int, config: TopicConfig) -> None:
        """Lead a partition whose log was missing when the broker started."""
        topic = self.metadata.topics.get(name)
        if topic is None:
            return  # it has just been deleted, and its logs will be
        partition = topic.partitions[index]
        lead_log(self.config, self.log_manager, topic, partition, config, self.clock.now_ms())
        log = self.log_manager.find(name, index)
        if log is not None:
            self.coordinator_logs.log_found(log)

    def _topic_config(self, topic: str) -> TopicConfig:
        return self.config.stored_topic_config(self.metadata.configs.of_topic(topic))

    def _endpoint(self, listener: Listener) -> Endpoint:
        host, port = self.advertised(listener, "localhost")
        return Endpoint(listener.name, host, port, listener.security_protocol.number)
