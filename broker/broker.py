"""The broker: a node that is the controller, has the coordinators, and changes the metadata.

There is no state at module level. The constructor locks the data directories, replays the metadata
log, opens the partition logs and loads the groups. lifecycle/running.py then opens the listeners,
so a client that connects finds everything loaded, except logs that take long to recover. `close`
goes the other way and ends with the mark of a clean shutdown.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from odradek.broker.admin.admin import Admin
from odradek.broker.admin.applied_config import AppliedConfig
from odradek.broker.admin.config_admin import ConfigAdmin
from odradek.broker.admin.operations import Operations
from odradek.broker.admin.quota_admin import QuotaAdmin
from odradek.broker.admin.subscriptions import Subscriptions
from odradek.broker.admin.topic_admin import TopicAdmin
from odradek.broker.admin.topic_logs import TopicLogs
from odradek.broker.common.clock import Clock, timer_clock_ms, wall_clock_ms
from odradek.broker.common.nodes import Ports
from odradek.broker.maintenance.metadata_log import MetadataLog
from odradek.broker.maintenance.own_appends import OwnAppends
from odradek.broker.shares.dead_letter_queues import DeadLetterQueues
from odradek.broker.shares.originals import OriginalsReader
from odradek.broker.shares.queue_topics import QueueTopics
from odradek.broker.startup.preflight import Preflight
from odradek.broker.startup.startup import (
    cordoned_ids,
    metadata_on_disk,
    open_metadata,
    register_broker,
)
from odradek.broker.telemetry.client_series import ClientSeries
from odradek.broker.telemetry.client_telemetry import ClientTelemetry
from odradek.broker.telemetry.payloads import Payloads
from odradek.broker.telemetry.pushed_records import PushedRecords, check_topic
from odradek.broker.transactions.verification import TransactionVerifier
from odradek.broker.turns.slices import Slices
from odradek.config.broker_config import BrokerConfig
from odradek.config.listeners import Listener
from odradek.config.topic_config import TopicConfig
from odradek.coordinator.metadata.broker_registration import Endpoint
from odradek.coordinator.metadata.controller import Controller
from odradek.coordinator.metadata.features import (
    FIRST_SHARE_VERSION_WITH_QUEUES,
    SHARE_VERSION,
)
from odradek.coordinator.metadata.kraft_log import KraftLog
from odradek.coordinator.metadata.snapshot_keeping import SnapshotKeeper, SnapshotRules
from odradek.coordinator.metadata.topic_settings import topic_rules
from odradek.coordinator.share_groups.group_configs import ShareGroupConfigs
from odradek.protocol.errors import ApiError
from odradek.storage.data_directory import DataDirectory
from odradek.storage.files import Files, descriptors_for_files
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager
from odradek.storage.topic_partition import TopicPartition

from .coordinators import Coordinators
from .directory_failures import DirectoryFailures
from .node import BrokerNode

logger = logging.getLogger("odradek")

# At most this many delegation tokens are examined, and removed, in one turn.
TOKENS_OF_A_TURN = 100


class Broker(BrokerNode):
    """A broker with its data open. lifecycle/running.py makes it serve; `close` ends it.

    The constructor is a list of steps. Each step uses only what the steps before it have made.
    """

    def __init__(
        self,
        config: BrokerConfig,
        loop: asyncio.AbstractEventLoop,
        ports: Ports,
        *,
        now_ms: Callable[[], int] = wall_clock_ms,
        timer_ms: Callable[[], int] = timer_clock_ms,
        files: Files | None = None,
    ) -> None:
        """Open the data directories; nothing listens yet.

        `ports` are those of its listeners.
        `now_ms` is the wall clock. `timer_ms` is the clock of the coordinators' deadlines.
        Raises DirectoryError, RefusedToStartError, ConfigError.
        """
        files = files or Files()
        files.descriptor_limit = descriptors_for_files()
        clock = Clock(now_ms, timer_ms)
        if config.odradek_telemetry_topic is not None:
            check_topic(config.odradek_telemetry_topic)
        logins = self._create_logins(config, clock)
        preflight = Preflight(config, files)
        log_manager = LogManager.open(
            config,
            files=files,
            timer_ms=timer_ms,
            inspect=preflight.check,
        )
        super().__init__(config, loop, clock, log_manager, ports)
        with log_manager.restoring_marks(timer_ms()):
            kraft_log = open_metadata(config, log_manager, files, now_ms(), preflight.reading)
            with metadata_on_disk(config.metadata_directory.absolute()):
                self._create_controller(kraft_log)
            # Other processes know no files but the system's own. Some tests have others.
            self._load(kraft_log.metadata, logins, large_may_wait=type(files) is Files)
        registered = log_manager.data_directories
        self._register(registered)
        self._complete(self._assign_directory, self._directory_assigned)
        self._create_telemetry()
        self._create_admin()
        self._create_own_appends()
        self._load_coordinators()
        self._create_pushed_records()
        self.maintenance.mover.resume()
        self.effective_config.on_change += [
            self.admin.topics.update_config,
            self._cordon,
            self.coordinators.group_configs.update,
        ]
        self.directory_failures = DirectoryFailures(
            log_manager=log_manager,
            cleaner=self.maintenance.cleaner,
            log_lost=self.coordinators.logs.log_lost,
            controller=self.controller,
            metadata_log=self.metadata_log,
            background=self.background,
            config=lambda: self.config,
            clock=clock,
            registered=registered,
        )

    # -- the steps of the constructor -------------------------------------------------------------

    def _create_controller(self, kraft_log: KraftLog) -> None:
        """Create what changes the metadata, and what keeps its log."""
        manager = self.log_manager
        self.controller = Controller(
            kraft_log,
            lambda: topic_rules(
                self.config,
                self.nodes.own_id,
                [directory.directory_id for directory in manager.data_directories],
                cordoned_ids(self.config, manager),
                self.nodes.replica_ids,
                self.nodes.live_ids,
                lambda topic: self.nodes.replication_factor(topic),
            ),
        )
        keeper = SnapshotKeeper(
            self.controller.log,
            manager.files,
            manager.deletions,
            SnapshotRules.of(self.config),
            now_ms=self.clock.timer_ms(),
        )
        self.metadata_log = MetadataLog(
            self.controller,
            keeper,
            log_syncs=self.log_syncs,
            disk=self.disk,
            cold_reads=self.fetching.cold_reads,
            clock=self.clock.now,
        )

    def _register(self, directories: Sequence[DataDirectory]) -> None:
        """Register the broker in the metadata log, and lead its partitions."""
        register_broker(
            self.config,
            self.controller,
            self.log_manager,
            [self._endpoint(listener) for listener in self.config.open_listeners],
            directories,
            self.clock.now_ms(),
        )

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

    def _create_admin(self) -> None:
        """Create what changes topics, quotas and configurations."""
        operations = Operations(self.loop, self.turns.slices)
        topic_logs = TopicLogs(
            log_manager=self.log_manager,
            disk=self.disk,
            node_id=self.config.node_id,
            config_of=self._topic_config,
            on_deleted=lambda topics: self.coordinators.topics_deleted(topics),
        )
        topics = TopicAdmin(
            config=self.config,
            operations=operations,
            controller=self.controller,
            metadata_sync=self.metadata_log.log_sync,
            topic_logs=topic_logs,
            log_cleaner=self.maintenance.cleaner,
            on_created=lambda topic: self.coordinators.logs.topic_created(topic),
            on_enlarged=lambda *added: self.coordinators.logs.partitions_created(*added),
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
            node_ids=self.nodes.replica_ids,
            now_ms=self.clock.now_ms,
        )
        self.admin = Admin(
            operations=operations,
            topics=topics,
            quotas=quotas,
            configs=configs,
            applied_config=applied_config,
        )

    def _load_coordinators(self) -> None:
        """Create the coordinators, and replay their internal topics into them."""
        self.coordinators = Coordinators(
            self.config,
            self.loop,
            self.clock,
            turns=self.turns,
            log_manager=self.log_manager,
            controller=self.controller,
            metadata_sync=self.metadata_log.log_sync,
            background=self.background,
            ensure_topic=self.admin.topics.ensure_internal_topic,
            find_log=lambda topic_id, partition: self.log_manager.get(
                self.topic_name(topic_id), partition
            ),
            create_queues=self._dead_letter_queues,
        )
        self.transaction_verifier = TransactionVerifier(
            lambda: self.config,
            self.clock.timer_ms,
            self.coordinators.transactions,
            self.log_syncs,
        )
        self.log_syncs.on_lost = self.coordinators.logs.log_lost
        self.coordinators.logs.load()

    def _create_own_appends(self) -> None:
        """Create what appends records that no client has sent."""
        self.own_appends = OwnAppends(
            log_manager=self.log_manager,
            log_syncs=self.log_syncs,
            disk_space=self.disk_space,
            cold_reads=self.fetching.cold_reads,
            record_walks=self.record_walks,
            now_ms=self.clock.now_ms,
        )

    def _dead_letter_queues(self, configs: ShareGroupConfigs) -> DeadLetterQueues:
        """What writes the dead-letter queues of share groups."""
        features = self.metadata.features
        return DeadLetterQueues(
            configs,
            QueueTopics(
                configs, self.metadata.topics, self._topic_config, self.admin.topics.create
            ),
            OriginalsReader(self.fetching.batch_reads),
            self.own_appends,
            is_enabled=lambda: features.level(SHARE_VERSION) >= FIRST_SHARE_VERSION_WITH_QUEUES,
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
            appends=self.own_appends,
            disk=self.disk,
            now_ms=self.clock.now_ms,
        )

    # -- stopping ---------------------------------------------------------------------------------

    def answer_parked_requests(self) -> None:
        """Answer all waiting requests, those of groups too, because of a stop."""
        super().answer_parked_requests()
        self.coordinators.release_all()

    async def close(self) -> None:
        """Flush and close everything, and mark the stop as clean."""
        await self.admin.operations.wait()
        self.coordinators.shares.close()
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

    # -- what handlers ask ------------------------------------------------------------------------

    @property
    def metadata_end_offset(self) -> int:
        """The end of the metadata log."""
        return self.controller.log.log_end_offset

    @property
    def kraft_version(self) -> int:
        """The kraft.version of the metadata quorum."""
        return self.controller.quorum.kraft_version

    def is_served(self, topic: str, partition: int) -> bool:
        """Whether the partition has a leader. It has none if its log or log directory failed."""
        log = self.log_manager.find(topic, partition)
        return log is not None and log.is_online

    async def remove_expired_tokens(self) -> None:
        """Remove the delegation tokens that have expired. Without a secret key they are kept."""
        if self.security.token_rules.hmacs is not None:
            await self.admin.operations.run(self._remove_expired_tokens)

    async def _remove_expired_tokens(self, slices: Slices) -> None:
        ids = list(self.metadata.delegation_tokens.by_id)
        for start in slices.of(range(0, len(ids), TOKENS_OF_A_TURN)):
            part = ids[start : start + TOKENS_OF_A_TURN]
            for token in self.controller.remove_expired_tokens(part, self.clock.now_ms()):
                text = "the delegation token %s of %s has expired"
                logger.info(text, token.token_id, token.owner)
        self.security.token_credentials.forget_removed(slices.step)

    # -- reactions to changed settings, logs and directories --------------------------------------

    def _assign_directory(self, partition: TopicPartition, directory_id: bytes) -> None:
        """Record in the metadata that a replica is in a directory. Raises ApiError."""
        self.controller.assign_directory(*partition, directory_id, self.clock.now_ms())

    async def _directory_assigned(self) -> None:
        """Return when that is on the disk. Raises ApiError."""
        await self.log_syncs.flush(self.controller.log)

    def _cordon(self, _config: BrokerConfig) -> None:
        try:
            cordoned = cordoned_ids(self.config, self.log_manager)
            self.controller.cordon_directories(cordoned, self.clock.now_ms())
        except ApiError as error:
            logger.error("the metadata log does not name the cordoned directories: %s", error)

    def _lead(self, name: str, index: int, config: TopicConfig) -> PartitionLog | None:
        """As a node does. A coordinator may wait for the log."""
        log = super()._lead(name, index, config)
        if log is not None:
            self.coordinators.logs.log_found(log)
        return log

    def _endpoint(self, listener: Listener) -> Endpoint:
        host, port = self.nodes.own_address(listener, "localhost")
        return Endpoint(listener.name, host, port, listener.security_protocol.number)
