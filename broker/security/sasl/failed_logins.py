"""Logs failed logins, with a limit: a client that guesses passwords must not fill the disk."""

import logging
from collections.abc import Callable

logger = logging.getLogger("odradek.login")

LINES_PER_PERIOD = 10
PERIOD_MS = 10_000


class FailedLogins:
    """Writes at most LINES_PER_PERIOD lines in each period, and counts the rest."""

    def __init__(self, timer_ms: Callable[[], int]) -> None:
        self._timer_ms = timer_ms
        self._period_end_ms = 0
        self._count = 0

    def note(self, client: object, listener: str, mechanism: str | None, reason: str) -> None:
        """Log one failed login. `reason` has no secrets."""
        now_ms = self._timer_ms()
        if now_ms >= self._period_end_ms:
            if self._count > LINES_PER_PERIOD:
                omitted = self._count - LINES_PER_PERIOD
                logger.warning("%d more logins failed, without a line here", omitted)
            self._count, self._period_end_ms = 0, now_ms + PERIOD_MS
        self._count += 1
        if self._count <= LINES_PER_PERIOD:
            logger.warning(
                "login of %s on %s failed (%s): %s",
                client,
                listener,
                mechanism or "no mechanism",
                reason,
            )
