"""Runs a broker process: start, serve until a signal, stop cleanly."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from odradek.broker.broker import Broker
from odradek.broker.common.event_loop import new_event_loop
from odradek.broker.network.listeners import ListenError
from odradek.broker.startup.preflight import RefusedToStartError
from odradek.broker.turns.full_collections import spare_what_stays
from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError
from odradek.storage.data_directory import DirectoryError
from odradek.storage.process_limits import raise_descriptor_limit

from .parent_process import ParentWatch, print_address
from .running import start_broker
from .service_manager import ServiceManager


class StartError(Exception):
    """The broker could not start or had to stop. The message is one line.

    `exit_code` is the exit status of the process.
    """

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Running(Protocol):
    """A broker that serves. `addresses`: what else its parent is told, see `print_address`."""

    @property
    def broker(self) -> Broker: ...

    @property
    def addresses(self) -> Mapping[str, str]: ...

    async def stop(self) -> None: ...


Start = Callable[[BrokerConfig], Awaitable[Running]]


def serve(config: BrokerConfig, *, for_parent: bool = False, start: Start = start_broker) -> None:
    """Run a broker until SIGTERM, SIGINT, SIGHUP or the failure of its disks. Raises StartError.

    `for_parent`: print the address when the broker serves, and stop when the process that has
    started this one ends. `start` raises as `start_broker`.
    """
    raise_descriptor_limit()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_serve(config, start, for_parent=for_parent))


def _handle_signals(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    numbers = [signal.SIGTERM, signal.SIGINT]
    if sys.platform == "win32":  # its loops handle no signals
        for number in numbers:
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop.set))
        return
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup ignores it
        numbers.append(signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, stop.set)
    # docker/entrypoint.py blocks SIGTERM, so that it is not lost before the handler is there.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))


async def _serve(config: BrokerConfig, start: Start, *, for_parent: bool) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    _handle_signals(loop, stop)
    parent = ParentWatch(loop, stop.set) if for_parent else None  # before the start: it may be long
    try:
        running = await start(config)
    except (RefusedToStartError, ConfigError) as error:
        raise StartError(str(error), exit_code=2) from error
    except (DirectoryError, ListenError) as error:
        raise StartError(str(error), exit_code=1) from error
    spare_what_stays()
    failure = running.broker.directory_failures.fatal
    failure.add_done_callback(lambda _: stop.set())
    service_manager = ServiceManager(loop, os.environ)
    service_manager.ready()
    try:
        if for_parent:
            print_address(running.broker, running.addresses)
        await stop.wait()
    except BrokenPipeError:  # the parent does not read: it has ended
        pass
    finally:
        if parent is not None:
            parent.close()
        service_manager.stopping()
        await running.stop()
        service_manager.close()
    if failure.done():
        raise StartError(failure.result(), exit_code=1)
