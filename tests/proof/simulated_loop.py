"""An event loop whose time and disk threads are simulated, as a seed says.

Time passes only while nothing is ready to run: then it jumps to the next timer. So ten minutes of a
broker take as long as its callbacks. The world may be late, and the seed says how late: each timer
by a little, each call of a thread by the time that a disk takes, now and then by seconds. What a
real loop keeps in order, callbacks that are ready, is kept in order here.

Not simulated: uvloop, sockets, TLS, sendfile, other processes. Clients call the dispatcher.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextvars import Context
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")


class NoThreads(Executor):
    """Calls a function at once, where it is submitted."""

    def __init__(self, *_: object) -> None:
        super().__init__()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        done: Future[T] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


BEGIN_S = 1000.0
LATEST_TIMER_S = 0.02
# How long a call of a thread takes: its chance in percent, and the longest time in seconds.
THREAD_S = ((75, 0.002), (20, 0.05), (5, 3.0))
# A run that is not over then waits for what never comes.
LONGEST_S = 600.0


class StalledError(Exception):
    """Somebody waits for what never comes."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """Runs callbacks without waiting. `random` is what the seed gives."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = Random(seed)
        self._now_s = BEGIN_S
        self._ends_s = BEGIN_S + LONGEST_S
        self._selector = self  # BaseEventLoop asks it for events, of which there are none

    def cancel_all(self) -> None:
        """End what still runs."""
        self._ends_s = float("inf")
        tasks = asyncio.all_tasks(self)
        for task in tasks:
            task.cancel()
        self.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))

    def time(self) -> float:
        return self._now_s

    def select(self, timeout_s: float | None) -> list[object]:
        """Let the time pass until the next timer."""
        if timeout_s is None or self._now_s > self._ends_s:
            raise StalledError
        self._now_s += timeout_s
        return []

    def _process_events(self, events: list[object]) -> None:
        assert not events

    def _write_to_self(self) -> None:
        """Nothing: no other thread calls this loop."""

    def call_at(  # type: ignore[override]  # its types, without the names of all arguments
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        late_s = self.random.random() * LATEST_TIMER_S
        return super().call_at(when + late_s, callback, *args, context=context)

    def run_in_executor(  # type: ignore[override]  # a future of this loop, as its base returns
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Call the function at one moment, some time later."""
        done: asyncio.Future[T] = self.create_future()

        def call() -> None:
            try:
                result = func(*args)
            except Exception as error:  # noqa: BLE001 # as a thread does, whatever it is
                if not done.done():
                    done.set_exception(error)
            else:
                if not done.done():
                    done.set_result(result)

        chances, longest = zip(*THREAD_S, strict=True)
        [longest_s] = self.random.choices(longest, chances)
        self.call_later(self.random.random() * longest_s, call)
        return done
