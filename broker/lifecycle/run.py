"""The life of a broker process: start, serve until a signal, stop cleanly."""

from __future__ import annotations

import asyncio
import gc
import resource
import signal
from typing import TYPE_CHECKING

import uvloop

from odradek.broker.network.listeners import ListenError
from odradek.storage.directories.data_directory import DirectoryError

from .preflight import RefusedToStartError
from .running import start_broker

if TYPE_CHECKING:
    from odradek.config.broker_config import BrokerConfig


# What comes with a request goes with it, without a cycle; what stays (members of a group, say) is
# no rubbish, and looking for some among all there is takes tens of milliseconds. So that is done
# seven times as rarely as is usual, and a first look at what is new three times as rarely.
GC_THRESHOLDS = (2000, 5, 50)


class StartError(Exception):
    """The broker could not start, or not go on; the message is one line, the code the process's."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def serve(config: BrokerConfig) -> None:
    """Run a broker until SIGTERM or SIGINT, or its disks fail. Raises StartError."""
    _raise_file_limit()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(config))


async def _serve(config: BrokerConfig) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        running = await start_broker(config)
    except RefusedToStartError as error:
        raise StartError(str(error), exit_code=2) from error
    except (DirectoryError, ListenError) as error:
        raise StartError(str(error), exit_code=1) from error
    # What start-up made lives as long as the process: the collector need not look at it again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    failure = running.broker.failure
    failure.add_done_callback(lambda _: stop.set())
    try:
        await stop.wait()
    finally:
        await running.stop()
    if failure.done():
        raise StartError(failure.result(), exit_code=1)


def _raise_file_limit() -> None:
    """Every log takes descriptors: take as many as the system lets us have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
