"""A broker in a process of its own that measures the turns of its event loop in CPU time.

CPU time of the loop's thread, because a busy machine must not make a turn look long. CPU time, too,
is longer on a busy or slow machine. So the times are divided by the time of a fixed piece of work
at the same moment.
"""

import asyncio
import gc
import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from odradek.broker.lifecycle.running import start_broker
from odradek.broker.turns.full_collections import spare_what_stays
from odradek.config.broker_config import BrokerConfig
from tests.support.broker_process import TEST_SETTINGS

START_SECONDS = 120.0
STOP_SECONDS = 100.0

# A turn of this length keeps nobody waiting.
TURN_MS = 10.0
FULL = 2  # generation
# What `_fixed_work` takes on a quiet machine of two cores.
FIXED_WORK_MS = 0.75


class Turns(NamedTuple):
    """The longest turn since the last question, the sum of all, and their number.

    Times are CPU time on a quiet machine, without full garbage collections: what these take depends
    on all living objects, and they fall into any turn. `garbage` is the number of objects that only
    the garbage collector has freed since then.
    """

    longest_ms: float
    sum_ms: float
    count: int  # type: ignore[assignment] # of turns: it hides the method of tuple
    garbage: int


class _MeasuredLoop(asyncio.SelectorEventLoop):
    """Notes how much CPU time each of its turns takes, except those in which it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.reset()
        self._collections_s = self._collection_began_s = 0.0
        gc.callbacks.append(self._note_collection)

    def reset(self) -> None:
        self._longest_s = self._sum_s = 0.0
        self._count = 0
        self._is_asked = False

    def turns(self) -> Turns:
        self._is_asked = True
        quiet_ms = 1000 / slowness()
        return Turns(self._longest_s * quiet_ms, self._sum_s * quiet_ms, self._count, gc.collect())

    def _run_once(self) -> None:
        self._collections_s = 0.0
        began_s = time.thread_time()
        super()._run_once()  # type: ignore[misc] # asyncio's own
        took_s = time.thread_time() - began_s - self._collections_s
        if self._is_asked:  # the collection takes longer than the turns that are measured
            self.reset()
            return
        self._longest_s = max(self._longest_s, took_s)
        self._sum_s += took_s
        self._count += 1

    def _note_collection(self, phase: str, info: Mapping[str, int]) -> None:
        if info["generation"] < FULL:
            return
        if phase == "start":
            self._collection_began_s = time.thread_time()
        else:
            self._collections_s += time.thread_time() - self._collection_began_s


def slowness() -> float:
    """How many times longer this thread takes now than on a quiet machine; at least 1."""
    return max(1.0, min(_fixed_work_ms() for _ in range(3)) / FIXED_WORK_MS)


def _fixed_work_ms() -> float:
    began_s = time.thread_time()
    names = {f"name-{number}": number for number in range(5_000)}
    sorted(names, key=names.__getitem__, reverse=True)
    return (time.thread_time() - began_s) * 1000


class MeasuredBroker:
    """The running broker, seen from the test."""

    def __init__(self, port: int, orders: Connection) -> None:
        self.port = port
        self._orders = orders

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def turns(self) -> Turns:
        """The turns since the last call."""
        self._orders.send("turns")
        measured: Turns = self._orders.recv()
        return measured


def longest_turn_ms(
    broker: MeasuredBroker,
    work: Callable[[int], object],
    *,
    prepare: Callable[[int], object] = lambda _: None,
    attempts: int = 15,
) -> float:
    """The longest turn while `work` runs, after `prepare`. Both get the number of the attempt.

    Of several attempts the best counts: what was long once is measured again.
    """
    longest_ms = float("inf")
    for attempt in range(attempts):
        prepare(attempt)
        broker.turns()
        work(attempt)
        longest_ms = min(longest_ms, broker.turns().longest_ms)
        if longest_ms <= TURN_MS:
            break
    return longest_ms


@contextmanager
def measured_broker(
    directory: Path, overrides: Mapping[str, str] | None = None
) -> Iterator[MeasuredBroker]:
    """A broker whose turns are measured, on a port of 127.0.0.1."""
    settings = {
        **TEST_SETTINGS,
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(directory),
        **(overrides or {}),
    }
    context = multiprocessing.get_context("spawn")
    mine, its = context.Pipe()
    process = context.Process(target=_run, args=(its, settings))
    process.start()
    its.close()
    try:
        assert mine.poll(START_SECONDS), "the broker did not start"
        yield MeasuredBroker(mine.recv(), mine)
    finally:
        mine.close()
        process.join(STOP_SECONDS)
        process.kill()
        process.join()


def _run(orders: Connection, settings: Mapping[str, str]) -> None:
    with asyncio.Runner(loop_factory=_MeasuredLoop) as runner:
        runner.run(_serve(orders, settings))


async def _serve(orders: Connection, settings: Mapping[str, str]) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, _MeasuredLoop)
    running = await start_broker(BrokerConfig.from_texts(settings))
    spare_what_stays()
    ended = asyncio.Event()

    def obey() -> None:
        try:
            orders.recv()
        except EOFError:
            loop.remove_reader(orders.fileno())
            ended.set()
            return
        orders.send(loop.turns())

    loop.add_reader(orders.fileno(), obey)
    broker = running.broker
    first, *_ = broker.nodes.all(broker.config.open_listeners[0], "127.0.0.1")
    orders.send(first.port)
    await ended.wait()
    await running.stop()
