"""Work that calls a step, measured: other requests may be served in each step."""

import asyncio
import gc
import math
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from odradek.coordinator.groups.group_decisions import Slicer
from odradek.coordinator.runtime.steps import Step, TakesLongError, no_step
from tests.support.turns import slowness

T = TypeVar("T")

# A stretch that was long is measured again: the first one may have compiled a codec.
ATTEMPTS = 15


class Stretches:
    """The step of a request. It measures the CPU time from each step to the next."""

    def __init__(self) -> None:
        self.count = 0
        self._longest_s = 0.0
        self._began_s = time.thread_time()

    def step(self) -> None:
        now_s = time.thread_time()
        self._longest_s = max(self._longest_s, now_s - self._began_s)
        self.count += 1
        self._began_s = time.thread_time()

    def longest_ms(self) -> float:
        """The longest stretch until now, on a quiet machine."""
        self.step()
        return self._longest_s * 1000 / slowness()


class MeasuredSlicer(Slicer):
    """Has decisions made at once; or in steps, which are measured, while `stretches` is set."""

    def __init__(self) -> None:
        self.stretches: Stretches | None = None

    def limited(self) -> Step:
        return no_step if self.stretches is None else _give_up

    @property
    def step(self) -> Step:
        """The step that is measured."""
        assert self.stretches is not None, "no decision takes long"
        return self.stretches.step

    def run(self, work: Callable[[Step], Coroutine[Any, Any, T]]) -> Coroutine[Any, Any, T]:
        return work(self.step)


async def assert_gives_way(
    prepare: Callable[[], T], begin: Callable[[T], Stretches], limit_ms: float
) -> T:
    """Fail if a decision has a longer stretch than that, however often it is measured.

    `begin` starts the decision about what `prepare` has made. It goes on in the next turn of the
    event loop. Returns what was prepared last.
    """
    longest_ms = math.inf
    for _ in range(ATTEMPTS):
        prepared = prepare()
        gc.disable()
        try:
            stretches = begin(prepared)
            await asyncio.sleep(0)
            longest_ms = min(longest_ms, stretches.longest_ms())
        finally:
            gc.enable()
        if longest_ms <= limit_ms:
            break
    assert longest_ms <= limit_ms, "the longest stretch, in milliseconds of CPU"
    return prepared


class InSteps(Slicer):
    """Has decisions made in steps, in which nothing else happens."""

    def limited(self) -> Step:
        return _give_up

    def run(self, work: Callable[[Step], Coroutine[Any, Any, T]]) -> Any:
        """Return the result itself. Raises as the work."""
        reply: Any = work(lambda: None)
        return result_of(reply)


def result_of(reply: T | Coroutine[Any, Any, T]) -> T:
    """What a decision that waits for no other one has replied."""
    if not isinstance(reply, Coroutine):
        return reply
    try:
        reply.send(None)
    except StopIteration as end:
        found: T = end.value
        return found
    raise AssertionError("the decision waits")


def _give_up() -> None:
    raise TakesLongError
