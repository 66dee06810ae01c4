"""The process of a worker: `python -m odradek.broker.workers.worker_process`.

Its stdin is its end of the channel to the broker's own process. When that process ends, whatever
the reason, the channel closes and the worker exits at once. Until then it holds the locks of the
log directories as well: it has inherited their descriptors. So no other broker can open a directory
in which a worker may still write.

The worker ignores the signals that all processes get: the broker's own process stops its workers.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from odradek.broker.admin.log_levels import change_levels
from odradek.broker.common.clock import timer_clock_ms
from odradek.broker.common.event_loop import new_event_loop
from odradek.broker.common.log_lines import configure_logging
from odradek.broker.network.listeners import BoundListener
from odradek.broker.network.server import Server
from odradek.broker.periodic_tasks import PeriodicTasks, periodic_tasks_of_worker
from odradek.broker.processes.channel import Channel, ChannelClosedError
from odradek.broker.processes.remote_transactions import RemoteTransactions
from odradek.broker.processes.signals import ignore_signals_of_all
from odradek.broker.processes.worker_messages import (
    Applied,
    ChangeLogLevels,
    CheckpointPart,
    DirectoryAssigned,
    DirectoryFailed,
    Following,
    ForwardedResponse,
    Heartbeat,
    MarkerWritten,
    MetadataBatches,
    Serving,
    StartWorker,
    Stopped,
    StopWorker,
    TransactionVerified,
    WriteMarker,
)
from odradek.broker.turns.full_collections import spare_what_stays
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.metadata_format import metadata_log_directory
from odradek.coordinator.metadata.metadata_reading import read_metadata
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.directories.checkpoint_files import Offsets
from odradek.storage.directories.data_directory import DataDirectory

from .forwarding import Forwarder, WorkerDispatcher
from .metadata_follower import MetadataFollower
from .remote_assignments import RemoteAssignments
from .starting_files import StartingFiles
from .worker_node import WorkerNode

if TYPE_CHECKING:
    from odradek.broker.metrics.monitoring import Monitoring  # imported only if it is used

logger = logging.getLogger("odradek.workers")

STDIN, STDOUT, STDERR = range(3)


class Worker:
    """A worker that serves. `run` returns when it has stopped."""

    def __init__(self, channel: Channel, start: StartWorker) -> None:
        """Open the logs; nothing is served yet. Raises what WorkerNode raises."""
        self._channel = channel
        self._start = start
        self._loop = asyncio.get_running_loop()
        config = BrokerConfig.from_texts(start.settings)
        directory = config.metadata_directory.absolute()
        cluster_id = start.directories[0].cluster_id
        self._files = StartingFiles(
            lambda: channel.send_at_once(Heartbeat()),
            config.broker_heartbeat_interval_ms,
            timer_clock_ms,
        )
        reading = read_metadata(
            self._files, metadata_log_directory(directory), cluster_id, allow_torn_end=True
        )
        self._assignments = RemoteAssignments(channel.send)
        self._transactions = RemoteTransactions(channel.send)
        self._node = WorkerNode(
            config,
            self._loop,
            start,
            self._files,
            reading,
            self._save_checkpoint,
            self._assignments,
            self._transactions,
        )
        self._follower = MetadataFollower(self._node)
        self._appended: asyncio.Queue[MetadataBatches] = asyncio.Queue()
        self._stop_asked = asyncio.Event()
        self._forwarder = Forwarder(channel)
        self._node.log_manager.on_offline = lambda directory: self._loop.call_soon_threadsafe(
            self._directory_failed, directory
        )

    async def run(self) -> None:
        """Serve until StopWorker. Raises ChannelClosedError if the broker's process has ended."""
        self._files.started()
        self._channel.send(Following(self._node.followed_to))
        for path, reason in self._node.log_manager.offline.items():
            if path not in self._start.offline:  # it failed while the logs were opened
                self._channel.send(DirectoryFailed(path, reason))
        server, monitoring = self._serve()
        periodic = PeriodicTasks(periodic_tasks_of_worker(self._node))
        self._channel.send(Serving())
        tasks = [
            asyncio.ensure_future(work)
            for work in (
                self._receive(),
                self._follow(),
                self._send_heartbeats(),
                self._stop_when_asked(server, monitoring, periodic),
            )
        ]
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        for task in done:
            task.result()  # raises

    async def _receive(self) -> None:
        while True:
            self._handle(await self._channel.receive())

    def _handle(self, message: object) -> None:
        match message:
            case ForwardedResponse():
                self._forwarder.answered(message)
            case TransactionVerified():
                self._transactions.answered(message)
            case WriteMarker():
                self._node.background.start(self._write_marker(message))
            case DirectoryAssigned():
                self._assignments.answered(message)
            case MetadataBatches():
                self._appended.put_nowait(message)
            case ChangeLogLevels():
                change_levels(message.changes)
            case DirectoryFailed():
                self._node.log_manager.take_offline_at(message.path, message.reason)
            case StopWorker():
                self._stop_asked.set()

    def _serve(self) -> tuple[Server, Monitoring | None]:
        bound = [
            BoundListener(
                listener, [socket.socket(fileno=fd) for fd in self._start.sockets[listener.name]]
            )
            for listener in self._node.config.open_listeners
        ]
        self._node.maintenance.cleaner.start()
        self._node.maintenance.recovery.begin(self._node.config.num_recovery_threads_per_data_dir)
        return self._start_servers(bound)

    def _start_servers(self, bound: Sequence[BoundListener]) -> tuple[Server, Monitoring | None]:
        node, http = self._node, self._node.config.http_listener
        server = Server(node, bound, WorkerDispatcher(node, self._forwarder))
        if http is None or node.traffic is None:
            return server, None
        # Imported here, because it takes tens of milliseconds, and most brokers do not need it.
        from odradek.broker.metrics.loop_delay import LoopDelay
        from odradek.broker.metrics.monitoring import Monitoring
        from odradek.broker.metrics.observed import Observed

        sockets = [socket.socket(fileno=fd) for fd in self._start.http_sockets]
        observed = Observed(
            broker=node,
            server=server,
            traffic=node.traffic,
            loop_delay=LoopDelay(node.loop),
            started_ms=node.clock.timer_ms(),
        )
        return server, Monitoring(observed, BoundListener(http, sockets))

    async def _follow(self) -> None:
        """Apply the records in order, while other messages are handled."""
        while True:
            await self._follower.apply(await self._appended.get())
            self._channel.send(Applied(self._node.followed_to))

    async def _send_heartbeats(self) -> None:
        while True:
            self._channel.send(Heartbeat())
            await asyncio.sleep(self._node.config.broker_heartbeat_interval_ms / 1000)

    async def _stop_when_asked(
        self, server: Server, monitoring: Monitoring | None, periodic: PeriodicTasks
    ) -> None:
        await self._stop_asked.wait()
        if monitoring is not None:
            monitoring.note_stopping()
        await periodic.close()
        server.finish()
        self._node.answer_parked_requests()
        await server.drain()
        clean = await self._node.close_logs()
        if monitoring is not None:
            monitoring.close()
        self._channel.send(Stopped(clean))

    async def _write_marker(self, ending: WriteMarker) -> None:
        """Write a marker, and report it when readers see it."""
        code = ErrorCode.NONE
        try:
            self._transactions.transaction_ended(ending.marker.producer_id)
            log = self._node.log_manager.get(*ending.where)
            written = log.append_marker(ending.marker, self._node.clock.now_ms())
            if log.high_watermark <= written.base_offset:  # it must be synced (flush.messages)
                await self._node.log_syncs.flush(log)
        except ApiError as error:
            code = error.code
        self._channel.send(MarkerWritten(ending.marker, ending.where, code))

    def _save_checkpoint(self, path: Path, offsets: Offsets) -> None:
        """Send the worker's part of a checkpoint file. Called on any thread."""
        part = CheckpointPart(path, dict(offsets))
        self._loop.call_soon_threadsafe(self._channel.send, part)

    # -- failed directories -----------------------------------------------------------------------

    def _directory_failed(self, directory: DataDirectory) -> None:
        """Report a failure, after the log manager has taken the directory offline."""
        manager = self._node.log_manager
        self._node.maintenance.cleaner.directory_failed(directory)
        for log in manager.logs():
            if manager.directory_of(log) is directory:
                log.notify_waiters()
        self._channel.send(DirectoryFailed(directory.path, str(directory.offline_reason)))


def exit_now(code: int) -> NoReturn:
    """End the process without closing anything, as if it had been killed."""
    logging.shutdown()
    os._exit(code)


async def run() -> None:
    """Run the worker at the other end of the channel."""
    channel = await Channel.open(socket.socket(fileno=os.dup(STDIN)))
    os.dup2(STDERR, STDOUT)  # a stray print() goes to stderr, not between the messages
    try:
        start = await channel.receive()
        assert isinstance(start, StartWorker)
        configure_logging(start.log_format, f"worker {start.process}: ")
        worker = Worker(channel, start)
        spare_what_stays()
        await worker.run()
    except ChannelClosedError:
        exit_now(0)
    except Exception:  # the root of the process
        logger.exception("a worker cannot go on")
        exit_now(1)
    await channel.close()


def keep_descriptors() -> None:
    """Let no process that this one starts inherit the channel, the sockets and the locks."""
    for name in os.listdir("/dev/fd"):  # noqa: PTH208 # the names are wanted, not the files
        with suppress(OSError):  # that of the list itself is closed by now
            os.set_inheritable(int(name), int(name) <= STDERR)


if __name__ == "__main__":
    keep_descriptors()
    ignore_signals_of_all()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(run())
