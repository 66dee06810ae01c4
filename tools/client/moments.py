"""Moments as people write them: 2026-11-23T08:30, or a time before now such as 15m."""

import re
import time
from datetime import UTC, datetime

from .failure import CommandError

UNITS_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_AGE = re.compile(r"(\d+)([smhd])(?: ago)?")


def parse_moment_ms(text: str) -> int:
    """Milliseconds since 1970. A moment without a zone is in UTC. Raises CommandError."""
    age = _AGE.fullmatch(text)
    if age is not None:
        return int(time.time() * 1000) - int(age[1]) * UNITS_MS[age[2]]
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(
            f"{text} is no moment: write 2026-11-23T08:30, or 15m for 15 minutes ago (s, m, h, d)"
        ) from None
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(zoned.timestamp() * 1000)
