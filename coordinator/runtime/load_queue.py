"""Loads shards while requests are served: one after another, a slice in each turn of the loop."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic

from .shards import S, Shard


class LoadQueue(Generic[S]):
    """The shards of a coordinator that are still to be loaded, in order."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_loaded: Callable[[Shard[S]], None]
    ) -> None:
        """`on_loaded` is called with each shard as soon as it is served."""
        self._loop = loop
        self._on_loaded = on_loaded
        self._waiting: deque[Iterator[Shard[S] | None]] = deque()

    def add(self, slices: Iterator[Shard[S] | None]) -> None:
        """Load a shard by iterating over its slices (CoordinatorShards.load_in_slices)."""
        self._waiting.append(slices)
        if len(self._waiting) == 1:
            self._loop.call_soon(self._load_slice)

    def _load_slice(self) -> None:
        is_over = True
        try:
            for shard in self._waiting[0]:
                if shard is None:
                    is_over = False
                    break
                self._on_loaded(shard)
        finally:
            if is_over:
                self._waiting.popleft()
            if self._waiting:
                self._loop.call_soon(self._load_slice)
