"""One worker, as the broker's own process sees it: its process, and what is sent and received.

Its messages are handled one after another. So what it reports before a message is done when the
message is handled, also on the disk.
"""

from __future__ import annotations

import asyncio
import logging

from odradek.broker.broker import Broker
from odradek.broker.common.log_lines import log_format_in_use
from odradek.broker.processes.channel import Channel, ChannelClosedError
from odradek.broker.processes.child_process import ChildProcess, command_of, start_process
from odradek.broker.processes.remote_markers import RemoteMarkers
from odradek.broker.processes.worker_messages import (
    Applied,
    AssignDirectory,
    CheckpointPart,
    DirectoryAssigned,
    DirectoryFailed,
    Following,
    ForwardCancelled,
    ForwardedRequest,
    MarkerWritten,
    MetadataBatches,
    Serving,
    SharedDirectory,
    StartWorker,
    Stopped,
    StopWorker,
    VerifyTransaction,
)
from odradek.broker.requests.dispatch import Dispatcher
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.directories.data_directory import DataDirectory

from .forwarding import ForwardedRequests
from .heartbeats import Heartbeats
from .verification import Verification
from .worker_sockets import WorkerSockets

logger = logging.getLogger("odradek.workers")

# How long a worker may take to load its program. That is half a second of a processor, but all
# workers do it at once, and there may be more of them than processors.
LOAD_MS = 60_000
COMMAND = command_of("odradek.broker.workers.worker_process")


class WorkerLink:
    """A worker. `run` runs its process once."""

    def __init__(
        self,
        broker: Broker,
        process: int,
        sockets: WorkerSockets,
        dispatcher: Dispatcher,
        markers: RemoteMarkers,
    ) -> None:
        self.process = process
        self.serves = asyncio.Event()  # since it has served for the first time
        self.stop_asked = asyncio.Event()
        self.was_killed = False  # the last time, because it hung
        self._broker = broker
        self._sockets = sockets
        self._markers = markers
        self._forwarded = ForwardedRequests(broker, dispatcher, self.send)
        self._verification = Verification(broker, self.send)
        self._child: ChildProcess | None = None
        self._next_offset: int | None = None  # of the metadata to send; None: it is starting
        self._sending: asyncio.Handle | None = None
        self._heartbeats: Heartbeats | None = None  # while it runs
        self._watch: asyncio.Task[None] | None = None
        self._is_handling = False
        self._has_stopped = False
        self._has_run = False
        self._clean: set[DataDirectory] = set()

    def send(self, message: object) -> None:
        """Send a message, if the worker runs."""
        if self._child is not None:
            self._child.send(message)

    def stop(self) -> None:
        """Ask the worker to stop."""
        self.stop_asked.set()
        self.send(StopWorker())

    def kill(self) -> None:
        """End the process if it still runs."""
        if self._child is not None:
            self._child.kill()

    def has_closed(self, directory: DataDirectory) -> bool:
        """Whether the worker has ended, and has closed all its logs in a directory before."""
        return directory in self._clean

    async def run(self) -> None:
        """Start the process, and return when it has ended."""
        locks = [each.lock_descriptor for each in self._broker.log_manager.directories]
        try:
            started = await start_process(COMMAND, [*locks, *self._sockets.all()])
        except OSError as error:
            logger.error("worker %d cannot be started: %s", self.process, error)
            return
        child = self._child = ChildProcess(*started)
        self._clean = set()
        self.was_killed = False
        self.send(self._start_message())
        self._has_run = True
        self._watch = asyncio.ensure_future(self._kill_if_silent())
        if self.stop_asked.is_set():
            self.send(StopWorker())
        try:
            while True:
                await self._receive(child.channel)
        except ChannelClosedError:
            if not self._has_stopped:
                child.kill()  # it may only have closed its end
        except Exception:  # a bug: the worker is started again
            logger.exception("worker %d is ended", self.process)
            child.kill()
        await self._end(child)

    async def _receive(self, channel: Channel) -> None:
        """Receive and handle one message. Each shows that the worker lives."""
        message = await channel.receive()
        self._is_handling = True
        await self._handle(message)
        self._is_handling = False
        if self._heartbeats is not None:
            self._heartbeats.heard()

    def _start_message(self) -> StartWorker:
        manager = self._broker.log_manager
        return StartWorker(
            process=self.process,
            is_restarted=self.serves.is_set(),
            settings=dict(self._broker.effective_config.written.texts),
            log_format=log_format_in_use(),
            directories=[
                SharedDirectory(
                    each.path,
                    each.cluster_id,
                    each.directory_id,
                    each.had_clean_shutdown and not self._has_run,
                )
                for each in manager.directories
            ],
            offline=dict(manager.offline),
            ports=self._broker.nodes.ports,
            sockets=self._sockets.descriptors,
            http_sockets=self._sockets.http_descriptors,
        )

    async def _end(self, child: ChildProcess) -> None:
        """Wait until the process has ended."""
        self._broker.metadata_log.worker_progress.note_ended(self.process)
        self._next_offset = None
        if self._watch is not None:
            self._watch.cancel()
        self._heartbeats = self._watch = None
        self._is_handling = False
        child.channel.abort()
        self._forwarded.cancel_all()
        self._verification.cancel_all()
        self._markers.worker_ended(self.process)
        code = await child.wait()
        self._child = None
        if not self.stop_asked.is_set() or code:
            logger.error("worker %d (process %d) ended with %d", self.process, child.pid, code)

    async def _handle(self, message: object) -> None:
        progress = self._broker.metadata_log.worker_progress
        match message:
            case ForwardedRequest():
                self._forwarded.serve(message)
            case ForwardCancelled():
                self._forwarded.cancel(message.number)
            case VerifyTransaction():
                self._verification.serve(message)
            case MarkerWritten():
                self._markers.answered(message)
            case AssignDirectory():
                self.send(await self._assign(message))
            case Applied():
                progress.note_applied(self.process, message.next_offset)
            case CheckpointPart():
                await self._write_checkpoint(message)
            case Following():
                self._next_offset = message.next_offset
                progress.note_applied(self.process, message.next_offset)
                self.metadata_appended()
            case Serving():
                self.serves.set()
                progress.note_serving(self.process)
                self._log_addresses()
            case DirectoryFailed():
                self._broker.log_manager.take_offline_at(message.path, message.reason)
            case Stopped():
                self._has_stopped = True
                directories = self._broker.log_manager.directories
                self._clean = {each for each in directories if each.path in message.clean}

    def _log_addresses(self) -> None:
        for item in self._sockets.bound:
            text = "worker %d (process %d) serves as node %d: %s listens on %s:%d"
            pid = self._child.pid if self._child is not None else 0
            where = (item.listener.name, item.listener.host or "*", item.port)
            logger.info(text, self.process, pid, self._broker.nodes.own_id + self.process, *where)

    async def _kill_if_silent(self) -> None:
        """End the process if it hangs."""
        config, timer_ms = self._broker.config, self._broker.clock.timer_ms
        interval_ms, timeout_ms = (
            config.broker_heartbeat_interval_ms,
            config.broker_session_timeout_ms,
        )
        self._heartbeats = heartbeats = Heartbeats(
            interval_ms, timeout_ms, timer_ms(), first_ms=LOAD_MS
        )
        while not heartbeats.is_silent(timer_ms()):
            await asyncio.sleep(interval_ms / 1000)
            if self._is_handling:  # its next messages are not read yet
                heartbeats.heard()
        serves = self._broker.metadata_log.worker_progress.is_serving(self.process)
        what = "hangs" if serves else "hangs while it starts"
        text = "worker %d %s: no heartbeat for %d ms; it is killed"
        logger.error(text, self.process, what, heartbeats.limit_ms)
        self.was_killed = True
        self.kill()

    async def _assign(self, asked: AssignDirectory) -> DirectoryAssigned:
        broker, partition = self._broker, asked.partition
        try:
            broker.controller.assign_directory(
                *partition, asked.directory_id, broker.clock.now_ms()
            )
            await broker.log_syncs.flush(broker.controller.log)
        except ApiError as error:
            return DirectoryAssigned(asked.number, partition, error.code, error.message)
        broker.log_manager.moved_elsewhere(partition, asked.directory_id)
        return DirectoryAssigned(asked.number, partition, ErrorCode.NONE)

    async def _write_checkpoint(self, part: CheckpointPart) -> None:
        """Write the worker's part before its next message is read: it may need it on the disk."""
        manager = self._broker.log_manager
        directory = manager.directory_at(part.path.parent)
        if directory is None:
            return
        write = manager.checkpoint_files.write
        try:
            await self._broker.disk.run(write, part.path, lambda: part.offsets, self.process)
        except OSError as error:
            manager.on_directory_error(directory, error)

    # -- the metadata -----------------------------------------------------------------------------

    def metadata_appended(self) -> None:
        """Send what was appended, after the current turn of the loop."""
        if self._next_offset is not None and self._sending is None:
            self._sending = self._broker.loop.call_soon(self._send_metadata)

    def _send_metadata(self) -> None:
        self._sending = None
        log = self._broker.controller.log
        if self._next_offset is None or self._next_offset >= log.log_end_offset:
            return
        if self._next_offset < log.log_start_offset:
            self.kill()  # what it lacks is in a snapshot by now: it reads that when it starts again
            return
        batches = [bytes(batch) for batch in log.batches(self._next_offset)]
        self._next_offset = log.log_end_offset
        self.send(MetadataBatches(batches, log.log_end_offset, self._broker.kraft_version))
