"""The threads that wait for disks instead of the event loop.

Only calls that release the GIL belong here: fsync, cold reads, deleting files. A thread that runs
Python code raises the loop's 99th percentile from 26 microseconds to 5 milliseconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 4


class DiskExecutor:
    """Runs blocking calls in a few threads. The future gets the result or the exception."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="disk")

    def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Call `function` in a thread."""
        return self._loop.run_in_executor(self._pool, lambda: function(*args, **kwargs))

    def close(self) -> None:
        """Wait for the running calls."""
        self._pool.shutdown(wait=True)
