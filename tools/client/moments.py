"""Times as people write them: 2026-11-23T08:30, an age such as 15m, or @ and milliseconds."""

import re
import time
from datetime import datetime

from .failure import CommandError

TIME_HELP = (
    "a time (2026-11-23T08:30; in UTC unless it has a zone), an age (15m), or milliseconds since"
    " 1970, as --json and %T print them, after an @ (@1795422600000)"
)
UNITS_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_AGE = re.compile(r"([0-9]{1,15})([smhd])(?: ago)?")
_MILLISECONDS = re.compile(r"@([0-9]{1,18})")


def now_ms() -> int:
    """The present time, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def parse_moment_ms(text: str) -> int:
    """Milliseconds since 1970; what is earlier is 0. Raises CommandError."""
    milliseconds = _MILLISECONDS.fullmatch(text)
    if milliseconds is not None:
        return int(milliseconds[1])
    age = _AGE.fullmatch(text)
    if age is not None:
        return max(now_ms() - int(age[1]) * UNITS_MS[age[2]], 0)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(
            f"{text} is no time: write 2026-11-23T08:30, or 15m for 15 minutes ago (s, m, h, d), or"
            " @ and milliseconds since 1970"
        ) from None
    from odradek.storage.time_text import utc_ms  # not for the help of every command

    return max(utc_ms(moment), 0)
