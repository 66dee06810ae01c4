"""How long an attempt waits for the other one that has fenced it.

Of two attempts of a task, the one that began later has fenced the earlier, and is expected to write
the same rows. But it may be dead. So the fenced attempt watches the mark. If the mark does not
change for a while, it takes over, which fences the other in turn.

If both are alive, each takes over from the other. So that one of them gets to its end, each wait is
twice as long as the one before, and at least twice as long as the attempt itself has been writing.
No transaction may take longer than its timeout. So a wait of that length is the last one.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

Seen = TypeVar("Seen")

_FIRST_WAIT_S = 5.0
_POLL_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds, and how to let them pass."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


class Turns:
    """The waits of one attempt."""

    def __init__(self, longest_s: float, clock: Clock) -> None:
        self._longest_s = longest_s
        self._clock = clock
        self._last_s = 0.0

    @property
    def are_over(self) -> bool:
        """Whether the longest wait is over."""
        return self._last_s >= self._longest_s

    def next_wait_s(self, wrote_for_s: float) -> float:
        """Return how long to wait for the other attempt this time."""
        wanted_s = max(_FIRST_WAIT_S, 2 * self._last_s, 2 * wrote_for_s)
        self._last_s = min(wanted_s, self._longest_s)
        return self._last_s

    def has_changed(self, read: Callable[[], Seen], seen: Seen, within_s: float) -> bool:
        """Wait until `read` returns something else than `seen`, but not longer than that."""
        deadline = self._clock.now() + within_s
        while read() == seen:
            if self._clock.now() >= deadline:
                return False
            self._clock.sleep(_POLL_EVERY_S)
        return True
