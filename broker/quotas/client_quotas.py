"""The quotas on bytes, on handling time, and on changes of the metadata.

Kafka: ClientQuotaManager, ClientRequestQuotaManager, ControllerMutationQuotaManager.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from odradek.protocol.errors import ApiError, ErrorCode

from .precedence import QuotaTable, ShareKey
from .rates import LONGEST_MS, SampledRate, TokenBucket, Window
from .used_rates import UsedRates


class Client(NamedTuple):
    """The user and the client id of a request."""

    user: str
    client_id: str


class RateQuota:
    """A quota on a rate. A client that exceeds it is throttled, for `longest_ms` at most."""

    def __init__(self, window: Window, longest_ms: int = LONGEST_MS) -> None:
        self.table = QuotaTable({})
        self._window = window
        self._longest_ms = longest_ms
        self._rates: UsedRates[ShareKey, SampledRate] = UsedRates()

    def charge(self, client: Client, amount: float, now_ms: int) -> int:
        """Record that the client has used an amount. Returns how long to throttle it, in ms."""
        shared, limit = self.table.find(*client)
        if limit is None:
            return 0
        rate = self._rates.of(shared, lambda: SampledRate(self._window, now_ms), now_ms)
        rate.record(amount, now_ms)
        return min(rate.throttle_ms(limit, now_ms), self._longest_ms)

    def measured(self, timer_ms: Callable[[], int]) -> Iterator[tuple[ShareKey, float]]:
        """How much each client with a quota uses per second. Others may be served in between."""
        for shared, rate in self._rates.items():
            yield shared, rate.measure(timer_ms())

    def largest_amount(self, client: Client) -> float:
        """The most that may be used at once, after a pause, without being throttled."""
        _, limit = self.table.find(*client)
        return math.inf if limit is None else limit * self._window.full_s


class MutationQuota:
    """A quota on how many partitions are created and deleted per second (KIP-599)."""

    def __init__(self, window: Window) -> None:
        self.table = QuotaTable({})
        self._window = window
        self._buckets: UsedRates[ShareKey, TokenBucket] = UsedRates()

    def take(self, client: Client, count: int, now_ms: int, *, strict: bool) -> int:
        """Take permits. Returns how long to throttle the client, in ms.

        The last permits may be exceeded by one operation. After that a strict quota gives none
        until the client is within the limit again: it raises ThrottledError.
        """
        shared, limit = self.table.find(*client)
        if limit is None:
            return 0
        bucket = self._buckets.of(shared, lambda: TokenBucket(self._window, limit, now_ms), now_ms)
        if strict:
            throttle_ms = bucket.throttle_ms(limit, now_ms)
            if throttle_ms:
                raise ThrottledError(throttle_ms)
            bucket.take(count, limit, now_ms)
            return 0
        bucket.take(count, limit, now_ms)
        return bucket.throttle_ms(limit, now_ms)

    def permits(self, timer_ms: Callable[[], int]) -> Iterator[tuple[ShareKey, float]]:
        """How many permits are left to each client with a quota. As `measured`."""
        for shared, bucket in self._buckets.items():
            _, limit = self.table.find(*shared)
            if limit is not None:
                yield shared, bucket.tokens(limit, timer_ms())


class ThrottledError(ApiError):
    """A strict quota gives no permits for `throttle_ms`."""

    def __init__(self, throttle_ms: int) -> None:
        text = "The throttling quota has been exceeded."
        super().__init__(ErrorCode.THROTTLING_QUOTA_EXCEEDED, text)
        self.throttle_ms = throttle_ms
