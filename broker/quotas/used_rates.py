"""What clients have used of the limits that they have.

What an inactive client has used is forgotten, because clients choose their own client ids.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

FORGOTTEN_AFTER_MS = 3_600_000  # Kafka: INACTIVE_SENSOR_EXPIRATION_TIME_SECONDS
PURGED_EVERY_MS = 30_000


class _Used(Generic[R]):
    __slots__ = ("last_ms", "rate")

    def __init__(self, rate: R) -> None:
        self.rate = rate
        self.last_ms = 0


class UsedRates(Generic[K, R]):
    """The rates by what is limited: clients that share a quota, an address, a listener."""

    def __init__(self) -> None:
        self._by_key: dict[K, _Used[R]] = {}
        self._purged_ms = 0

    def items(self) -> list[tuple[K, R]]:
        """What is limited and has been used within the last hour, with its rates."""
        return [(key, used.rate) for key, used in self._by_key.items()]

    def of(self, key: K, create: Callable[[], R], now_ms: int) -> R:
        """The rate of a key, which is used now."""
        used = self._by_key.get(key)
        if used is None:
            self._purge(now_ms)
            used = self._by_key[key] = _Used(create())
        used.last_ms = now_ms
        return used.rate

    def _purge(self, now_ms: int) -> None:
        if now_ms - self._purged_ms < PURGED_EVERY_MS:
            return
        self._purged_ms = now_ms
        self._by_key = {
            key: used
            for key, used in self._by_key.items()
            if now_ms - used.last_ms < FORGOTTEN_AFTER_MS
        }
