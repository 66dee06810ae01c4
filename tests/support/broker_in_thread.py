"""A broker in a thread of the test's process, on its own loop, with a clock that can be set."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from odradek.broker.broker import Broker
from odradek.broker.common.event_loop import new_event_loop
from odradek.broker.lifecycle.running import RunningBroker, open_broker
from odradek.broker.network.listeners import bind_listeners
from odradek.broker.testing.clock import AdjustableClock
from odradek.config.broker_config import BrokerConfig

R = TypeVar("R")
LIMIT_SECONDS = 100.0


class BrokerInThread:
    """`ports` has the port of each listener. What touches the broker goes through `call`."""

    def __init__(self, config: BrokerConfig) -> None:
        self.clock = AdjustableClock()
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.ports: dict[str, int] = {}
        try:
            self._running = self._run(self._open(config))
        except BaseException:
            self._end()
            raise

    @property
    def broker(self) -> Broker:
        """The broker, to be read only."""
        return self._running.broker

    async def _open(self, config: BrokerConfig) -> RunningBroker:
        bound = bind_listeners(config.open_listeners)
        self.ports = {item.listener.name: item.port for item in bound}
        return await open_broker(
            config, bound, now_ms=self.clock.wall_ms, timer_ms=self.clock.timer_ms
        )

    def call(self, work: Callable[[Broker], R]) -> R:
        """Call a function on the broker's loop."""

        async def called() -> R:
            return work(self.broker)

        return self._run(called())

    def stop(self) -> None:
        """Stop the broker and its loop."""
        try:
            self._run(self._running.stop())
        finally:
            self._end()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, awaited: Coroutine[object, object, R]) -> R:
        return asyncio.run_coroutine_threadsafe(awaited, self._loop).result(LIMIT_SECONDS)


@contextmanager
def broker_in_thread(directory: Path, settings: Mapping[str, str]) -> Iterator[BrokerInThread]:
    """A broker that serves inside the `with`."""
    broker = BrokerInThread(BrokerConfig.from_texts({"log.dirs": str(directory), **settings}))
    try:
        yield broker
    finally:
        broker.stop()
