"""The Broker object of a worker: the same parts, but it decides nothing.

It has no lock, no controller, no coordinators and no metadata log. Its logs are those of its share.
Its metadata was read from the files of the log, and follows the log from then on
(metadata_follower.py). Handlers that need the other parts are never called: those requests are
forwarded (forwarding.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from odradek.broker.admin.applied_config import AppliedConfig
from odradek.broker.broker import Broker
from odradek.broker.processes.remote_transactions import RemoteTransactions
from odradek.broker.processes.worker_messages import SharedDirectory, StartWorker
from odradek.broker.startup.coordinator_logs import CoordinatorLogs
from odradek.broker.startup.startup import lead_logs
from odradek.broker.transactions.partition_transactions import PartitionTransactions
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.metadata_reading import MetadataReading
from odradek.coordinator.metadata.topics import Topic
from odradek.coordinator.transactions.marker_writer import MarkerWriter
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.append import EndMarker
from odradek.storage.directories.checkpoint_files import Offsets
from odradek.storage.directories.data_directory import DataDirectory, OpenedDirectories
from odradek.storage.directories.log_share import LogShare
from odradek.storage.files import Files
from odradek.storage.log_manager import LogManager
from odradek.storage.topic_partition import TopicPartition

from .remote_assignments import RemoteAssignments
from .remote_verifier import RemoteVerifier

logger = logging.getLogger("odradek.workers")


class WorkerBroker(Broker):
    """A broker that serves the logs of a worker."""

    def __init__(
        self,
        config: BrokerConfig,
        loop: asyncio.AbstractEventLoop,
        start: StartWorker,
        files: Files,
        reading: MetadataReading,
        save_checkpoint: Callable[[Path, Offsets], None],
        assignments: RemoteAssignments,
        transactions: RemoteTransactions,
    ) -> None:
        """`reading` is the metadata. `save_checkpoint` is called on any thread."""
        self._start = start
        self._reading = reading
        self._save_checkpoint = save_checkpoint
        self._assignments = assignments
        self._remote_transactions = transactions
        super().__init__(config, loop, start.ports[0], worker_ports=start.ports[1:], files=files)

    # -- the steps of the constructor that differ --------------------------------------------------

    def _open_directories(self, files: Files) -> MetadataReading:
        opened = OpenedDirectories()
        opened.online = [shared_directory(files, each) for each in self._start.directories]
        opened.offline = dict(self._start.offline)
        self.log_manager = LogManager(
            self.config,
            files,
            opened,
            self.clock.timer_ms,
            share=LogShare(self._start.process, self.config.odradek_workers),
            save_checkpoint=self._save_checkpoint,
            is_restarted=self._start.is_restarted,
        )
        return self._reading

    def _open_metadata(self, reading: MetadataReading | None) -> None:
        assert reading is not None
        self.metadata = reading.metadata
        self.followed_to = reading.next_offset
        self.quorum_version = reading.quorum.kraft_version

    @property
    def _other_processes_read_logs(self) -> bool:
        return True

    def _register(self) -> None:
        lead_logs(self.config, self.log_manager, self.metadata, self.clock.now_ms())

    def _create_control(self) -> None:
        self.applied_config = AppliedConfig(
            self.effective_config,
            self.metadata.configs,
            self.log_manager,
            self.telemetry.subscriptions,
        )
        markers = MarkerWriter(
            partition_exists=lambda *_: True,
            find_log=self.log_manager.get,
            groups=NoGroups(),
        )
        verifier = RemoteVerifier(
            lambda: self.config, self.clock.timer_ms, self._remote_transactions
        )
        self.partition_transactions = PartitionTransactions(verifier, markers)
        self.coordinator_logs = CoordinatorLogs([], self.log_manager, self.metadata.topics)
        self.maintenance.mover.resume()

    def _assign_directory(self, partition: TopicPartition, directory_id: bytes) -> None:
        self._assignments.assign(partition, directory_id)

    async def _directory_assigned(self, partition: TopicPartition) -> None:
        await self._assignments.assigned(partition)

    # -- what differs while it serves --------------------------------------------------------------

    @property
    def metadata_end_offset(self) -> int:
        """The end of the metadata log, as far as this process has followed it."""
        return self.followed_to

    @property
    def kraft_version(self) -> int:
        """The kraft.version of the metadata quorum."""
        return self.quorum_version

    def _topics_deleted(self, topics: Sequence[Topic]) -> None:
        """Nothing else follows the topics of a worker."""

    async def close(self) -> None:
        """Flush and close the logs, without marking the stop as clean."""
        await self.close_logs()

    async def close_logs(self) -> list[Path]:
        """Flush and close the logs. Returns the directories in which all were closed cleanly."""
        await self._end_background_work()
        clean = await self.disk.run(self.log_manager.close_logs, now_ms=self.clock.timer_ms())
        self.disk.close()
        return [directory.path for directory in clean]


class NoGroups:
    """The group coordinator of a worker, which has no partition of `__consumer_offsets`."""

    def end_transaction(self, partition: int, marker: EndMarker, now_ms: int) -> None:  # noqa: ARG002 # as GroupCoordinator's
        """Raise NOT_COORDINATOR."""
        raise ApiError(ErrorCode.NOT_COORDINATOR, "a worker coordinates no groups")


def shared_directory(files: Files, shared: SharedDirectory) -> DataDirectory:
    """The directory as this process sees it: the lock and the marks are another's."""
    return DataDirectory(
        files,
        shared.path,
        None,
        shared.cluster_id,
        shared.directory_id,
        had_clean_shutdown=shared.had_clean_shutdown,
    )
