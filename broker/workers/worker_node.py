"""The node of a worker: it decides nothing, and follows the metadata of the broker.

It has no lock, no controller, no coordinators and no metadata log. Its logs are those of its share.
Its metadata was read from the files of the log, and follows the log from then on
(metadata_follower.py). Requests that need the other parts are forwarded (forwarding.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from odradek.broker.admin.applied_config import AppliedConfig
from odradek.broker.admin.subscriptions import Subscriptions
from odradek.broker.admin.topic_logs import TopicLogs
from odradek.broker.common.clock import Clock
from odradek.broker.node import BrokerNode
from odradek.broker.processes.remote_transactions import RemoteTransactions
from odradek.broker.processes.worker_messages import SharedDirectory, StartWorker
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

from .remote_assignments import RemoteAssignments
from .remote_verifier import RemoteVerifier


class WorkerNode(BrokerNode):
    """A node that serves the logs of a worker.

    `followed_to` is the end of the metadata that it knows, `quorum_version` the kraft.version then.
    """

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
        clock = Clock()
        logins = self._create_logins(config, clock)
        opened = OpenedDirectories()
        opened.online = [shared_directory(files, each) for each in start.directories]
        opened.offline = dict(start.offline)
        log_manager = LogManager(
            config,
            files,
            opened,
            clock.timer_ms,
            share=LogShare(start.process, config.odradek_workers),
            save_checkpoint=save_checkpoint,
            is_restarted=start.is_restarted,
        )
        super().__init__(config, loop, clock, log_manager, start.ports)
        self.followed_to = reading.next_offset
        self.quorum_version = reading.quorum.kraft_version
        self._load(reading.metadata, logins, large_may_wait=True)
        lead_logs(self.config, log_manager, self.metadata, clock.now_ms())
        self._complete(assignments.assign, assignments.assigned)
        self.topic_logs = TopicLogs(
            log_manager=log_manager,
            disk=self.disk,
            node_id=config.node_id,
            config_of=self._topic_config,
            on_deleted=nothing_follows,
        )
        self.applied_config = AppliedConfig(
            self.effective_config,
            self.metadata.configs,
            log_manager,
            Subscriptions(self.metadata.configs),
        )
        self.partition_transactions = PartitionTransactions(
            RemoteVerifier(lambda: self.config, clock.timer_ms, transactions),
            MarkerWriter(
                partition_exists=lambda *_: True, find_log=log_manager.get, groups=NoGroups()
            ),
        )
        self.maintenance.mover.resume()

    @property
    def metadata_end_offset(self) -> int:
        """The end of the metadata log, as far as this process has followed it."""
        return self.followed_to

    @property
    def kraft_version(self) -> int:
        """The kraft.version of the metadata quorum."""
        return self.quorum_version

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


def nothing_follows(_topics: Sequence[Topic]) -> None:
    """Nothing else of a worker follows the topics."""


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
