"""How much longer something takes when its input is four times as large.

CPU time of the thread is measured, not wall time, so other processes do not count. Linear work
takes 4 times as long, quadratic work up to 16 times. A machine that is busy can make single runs
longer, by a colder cache for example. So the quickest run of each size counts, and a bad result is
measured again. The larger input alone can be slowed, where only the smaller fits the cache; so the
next size has to be as bad. Quadratic work is.
"""

import gc
import time
from collections.abc import Awaitable, Callable, Iterator

TIMES = 4
# A quadratic part that takes half of the smaller run exceeds this.
LIMIT = 8.0
ATTEMPTS = 6

Work = Callable[[], object]
AsyncWork = Callable[[], Awaitable[object]]


def assert_linear(prepared: Callable[[int], Work], size: int) -> None:
    """Fail if four times the size takes far more than four times the CPU time.

    `prepared` makes an input of a size, and returns what is measured.
    """
    for smaller, small, large in _measurements(size):
        small.append(_cpu_s(prepared(smaller)))
        large.append(_cpu_s(prepared(TIMES * smaller)))


async def assert_linear_async(prepared: Callable[[int], Awaitable[AsyncWork]], size: int) -> None:
    """The same for what is awaited. Only the CPU time of the loop's thread counts."""
    for smaller, small, large in _measurements(size):
        small.append(await _cpu_s_of(await prepared(smaller)))
        large.append(await _cpu_s_of(await prepared(TIMES * smaller)))


def _measurements(size: int) -> Iterator[tuple[int, list[float], list[float]]]:
    """Yield a size, and where its time and that of the larger one go, until they are linear.

    Raises AssertionError if they are not.
    """
    verdicts = []
    for smaller in (size, TIMES * size):
        small: list[float] = []
        large: list[float] = []
        for attempt in range(ATTEMPTS):
            yield smaller, small, large
            if attempt and _is_linear(small, large):
                return
        verdicts.append(_verdict(small, large))
    raise AssertionError("; ".join(verdicts))


def _cpu_s(work: Work) -> float:
    gc.disable()  # its cost depends on everything else in the process
    try:
        start = time.thread_time()
        work()
        return time.thread_time() - start
    finally:
        gc.enable()


async def _cpu_s_of(work: AsyncWork) -> float:
    gc.disable()
    try:
        start = time.thread_time()
        await work()
        return time.thread_time() - start
    finally:
        gc.enable()


def _is_linear(small: list[float], large: list[float]) -> bool:
    return min(large) < LIMIT * min(small)


def _verdict(small: list[float], large: list[float]) -> str:
    return (
        f"{TIMES} times the size takes {min(large) / min(small):.1f} times the CPU time:"
        f" {min(small) * 1000:.1f} ms, {min(large) * 1000:.1f} ms"
    )
