"""The rate at which each client uses what a limit is set for.

What an inactive client has used is forgotten, because clients choose their own client ids. There
may be a million, so they are not all checked at once: each new one has a few others checked.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

FORGOTTEN_AFTER_MS = 3_600_000  # Kafka: INACTIVE_SENSOR_EXPIRATION_TIME_SECONDS
CHECKED_FOR_EACH_NEW = 4


class _Used(Generic[R]):
    __slots__ = ("last_ms", "rate")

    def __init__(self, rate: R) -> None:
        self.rate = rate
        self.last_ms = 0


class UsedRates(Generic[K, R]):
    """The rates by what is limited: clients that share a quota, an address, a listener."""

    def __init__(self) -> None:
        self._by_key: dict[K, _Used[R]] = {}
        self._to_check: deque[K] = deque()

    def items(self) -> Iterator[tuple[K, R]]:
        """What is limited and was used within the last hour, or is not yet forgotten.

        Rates may be used, and forgotten, in between.
        """
        for key in list(self._by_key):
            used = self._by_key.get(key)
            if used is not None:
                yield key, used.rate

    def of(self, key: K, create: Callable[[], R], now_ms: int) -> R:
        """The rate of a key, which is used now."""
        used = self._by_key.get(key)
        if used is None:
            self._forget_inactive(now_ms)
            used = self._by_key[key] = _Used(create())
            self._to_check.append(key)
        used.last_ms = now_ms
        return used.rate

    def _forget_inactive(self, now_ms: int) -> None:
        for _ in range(min(CHECKED_FOR_EACH_NEW, len(self._to_check))):
            key = self._to_check.popleft()
            if now_ms - self._by_key[key].last_ms < FORGOTTEN_AFTER_MS:
                self._to_check.append(key)
            else:
                del self._by_key[key]
