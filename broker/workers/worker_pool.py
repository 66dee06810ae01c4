"""The workers of a broker: starts them, sends them the metadata, starts them again, stops them.

A worker that ends is started again. Its logs are then recovered as after any crash, while the other
workers go on. Its listening sockets stay open in this process, so clients that connect meanwhile
wait until it accepts them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from odradek.broker.broker import Broker
from odradek.broker.network.listeners import ListenError, bind_process
from odradek.broker.processes.worker_messages import ChangeLogLevels, DirectoryFailed, WriteMarker
from odradek.broker.requests.dispatch import Dispatcher
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.config_changes import ConfigChange
from odradek.storage.directories.data_directory import DataDirectory
from odradek.storage.log import PartitionLog

from .worker_link import WorkerLink
from .worker_sockets import WorkerSockets

# The delay before a worker is started again; it doubles while the worker ends at once.
RESTART_AFTER_S = 0.5
MAX_DELAY_S = 30.0
# How long a worker may take to answer its requests and close its logs.
STOP_S = 60.0


def bind_workers(config: BrokerConfig) -> list[WorkerSockets]:
    """Bind the ports of all workers, or none. Raises ListenError."""
    sockets: list[WorkerSockets] = []
    try:
        for process in range(1, config.odradek_workers + 1):
            bound, http = bind_process(config, process)
            sockets.append(WorkerSockets(bound=bound, http=http))
    except ListenError:
        for each in sockets:
            each.close()
        raise
    return sockets


class WorkerPool:
    """The workers of a broker. `start` starts them, `stop` ends them."""

    def __init__(
        self,
        broker: Broker,
        sockets: Sequence[WorkerSockets],
        dispatcher: Dispatcher,
    ) -> None:
        """`sockets` are those of each worker, which the pool closes.

        `dispatcher` serves the requests that workers forward.
        """
        self._broker = broker
        self._sockets = sockets
        assert broker.coordinators.remote_markers is not None
        broker.coordinators.remote_markers.send = self._send_marker
        broker.admin.configs.change_worker_levels = self._change_levels
        self._workers = [
            WorkerLink(broker, process, each, dispatcher, broker.coordinators.remote_markers)
            for process, each in enumerate(sockets, 1)
        ]
        self._running: list[asyncio.Task[None]] = []
        broker.controller.log.on_append.add(self._appended)
        self._on_offline = broker.log_manager.on_offline
        broker.log_manager.on_offline = self._directory_offline

    async def start(self) -> bool:
        """Return whether all workers serve. If one of them could not start, all are stopped."""
        self._running = [asyncio.ensure_future(self._keep(each)) for each in self._workers]
        all_serve = asyncio.ensure_future(self._all_serve())
        await asyncio.wait([all_serve, *self._running], return_when=asyncio.FIRST_COMPLETED)
        if all_serve.done():
            return True
        all_serve.cancel()
        await self.stop()
        return False

    async def _all_serve(self) -> None:
        for worker in self._workers:
            await worker.serves.wait()

    async def _keep(self, worker: WorkerLink) -> None:
        """Run a worker until the broker stops.

        One that has ended by itself before it has ever served is not started again.
        """
        delay_s = RESTART_AFTER_S
        while True:
            began_s = self._broker.loop.time()
            await worker.run()
            is_hopeless = not (worker.serves.is_set() or worker.was_killed)
            if worker.stop_asked.is_set() or is_hopeless:
                return
            lived_s = self._broker.loop.time() - began_s
            delay_s = RESTART_AFTER_S if lived_s > 2 * delay_s else min(2 * delay_s, MAX_DELAY_S)
            with suppress(TimeoutError):
                await asyncio.wait_for(worker.stop_asked.wait(), delay_s)
                return

    async def stop(self) -> None:
        """Stop the workers, and return when they have ended."""
        self._broker.controller.log.on_append.discard(self._appended)
        for worker in self._workers:
            worker.stop()
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=STOP_S)
            for worker in self._workers:
                worker.kill()
            if late:
                await asyncio.wait(late)
        for directory in self._broker.log_manager.directories:
            if not all(worker.has_closed(directory) for worker in self._workers):
                directory.has_lost_log = True  # the stop is not clean
        for sockets in self._sockets:
            sockets.close()

    def _directory_offline(self, directory: DataDirectory) -> None:
        """Tell the workers that a directory has failed. Called on any thread."""
        self._on_offline(directory)
        failed = DirectoryFailed(directory.path, str(directory.offline_reason))
        for worker in self._workers:
            self._broker.loop.call_soon_threadsafe(worker.send, failed)

    def _send_marker(self, process: int, marker: WriteMarker) -> bool:
        is_serving = self._broker.metadata_log.worker_progress.is_serving(process)
        if is_serving:
            self._workers[process - 1].send(marker)
        return is_serving

    def _change_levels(self, node_id: int, changes: Sequence[ConfigChange]) -> None:
        process = node_id - self._broker.nodes.own_id
        self._workers[process - 1].send(ChangeLogLevels(changes))

    def _appended(self, _log: PartitionLog) -> None:
        for worker in self._workers:
            worker.metadata_appended()
