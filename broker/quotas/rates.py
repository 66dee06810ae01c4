"""How fast something happens: over a window of samples, or as a token bucket.

Kafka's arithmetic: the same traffic gets the same throttle times. A rate is a sum divided by the
time that it took. That time is at least all samples but one, so a burst after a pause is allowed.
The current time is an argument, in milliseconds of any clock that does not go back.

Kafka: Rate, SampledStat, WindowedSum, TokenBucket, QuotaUtils.throttleTime.
"""

import math

from msgspec import Struct

LONGEST_MS = 2**31 - 1  # the wire has 32 bits for a throttle time


class Window(Struct, frozen=True):
    """The number of samples, and the length of each."""

    samples: int
    sample_ms: int

    @property
    def full_s(self) -> float:
        """The length of all samples but one, in seconds."""
        return (self.samples - 1) * self.sample_ms / 1000

    @property
    def burst_s(self) -> float:
        """The length of all samples, in seconds."""
        return self.samples * self.sample_ms / 1000


class _Sample:
    """The amount in one stretch of time."""

    __slots__ = ("amount", "last_ms", "start_ms")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.amount = 0.0
        self.start_ms = self.last_ms = now_ms


class SampledRate:
    """An amount per second, over the samples of a window and the current one."""

    __slots__ = ("_current", "_samples", "_window")

    def __init__(self, window: Window, now_ms: int) -> None:
        self._window = window
        self._samples = [_Sample(now_ms)]
        self._current = 0

    def record(self, amount: float, now_ms: int) -> None:
        """Add an amount; a negative one takes back what was recorded."""
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self._window.sample_ms:
            sample = self._next_sample(now_ms)
        sample.amount += amount
        sample.last_ms = now_ms

    def measure(self, now_ms: int) -> float:
        """The amount per second."""
        window_ms = self._window_ms(now_ms)
        return sum(sample.amount for sample in self._samples) / (window_ms / 1000)

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """How long nothing may happen until the rate is down to `limit`; 0 if it is not above."""
        rate = self.measure(now_ms)
        if not rate > limit:
            return 0
        if limit == 0:
            return LONGEST_MS
        return _rounded((rate - limit) / limit * self._window_ms(now_ms))

    def _next_sample(self, now_ms: int) -> _Sample:
        # One sample more than the window has: the oldest one overlaps the window's beginning.
        self._current = (self._current + 1) % (self._window.samples + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]

    def _window_ms(self, now_ms: int) -> int:
        expired_ms = self._window.samples * self._window.sample_ms
        for sample in self._samples:
            if now_ms - sample.last_ms >= expired_ms:
                sample.reset(now_ms)
        elapsed_ms = now_ms - min(sample.start_ms for sample in self._samples)
        missing = self._window.samples - 1 - elapsed_ms // self._window.sample_ms
        return max(elapsed_ms + max(missing, 0) * self._window.sample_ms, 1)


class TokenBucket:
    """Tokens that are taken in bursts and come back at a steady rate. It begins full.

    The number of tokens may become negative. It never exceeds what comes back in a whole window.
    """

    __slots__ = ("_tokens", "_updated_ms", "_window")

    def __init__(self, window: Window, limit: float, now_ms: int) -> None:
        self._window = window
        self._tokens = limit * window.burst_s
        self._updated_ms = now_ms

    def take(self, count: float, limit: float, now_ms: int) -> None:
        """Take tokens. `limit` tokens come back per second."""
        self._refill(limit, now_ms)
        self._tokens -= count

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """How long it takes until the number of tokens is not negative; 0 if it is not."""
        self._refill(limit, now_ms)
        return _rounded(-self._tokens / limit * 1000) if self._tokens < 0 else 0

    def tokens(self, limit: float, now_ms: int) -> float:
        """The number of tokens that are left."""
        self._refill(limit, now_ms)
        return self._tokens

    def _refill(self, limit: float, now_ms: int) -> None:
        gained = limit * (now_ms - self._updated_ms) / 1000
        self._tokens = min(limit * self._window.burst_s, self._tokens + gained)
        self._updated_ms = now_ms


def _rounded(value_ms: float) -> int:
    """Round as Java's Math.round."""
    return LONGEST_MS if value_ms > LONGEST_MS else math.floor(value_ms + 0.5)
