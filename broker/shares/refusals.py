"""Logs why records that groups have given up are not in their dead-letter queues.

A queue that is not configured as it must be refuses each batch. So a cause is logged once for a
group, until it changes, or records are written again. Those that were refused meanwhile for the
same cause are counted, and logged then.
"""

import logging
from dataclasses import dataclass
from typing import NamedTuple

from odradek.protocol.errors import ApiError, ErrorCode

logger = logging.getLogger("odradek.shares")


class Refusal(NamedTuple):
    """The records of one write."""

    group_id: str
    log_name: str
    first_offset: int
    record_count: int


@dataclass(slots=True)
class LastCause:
    """The cause that was logged last, and the records that have been refused for it since."""

    cause: str | ErrorCode
    record_count: int = 0


class Refusals:
    """The last cause of each group."""

    def __init__(self) -> None:
        self._last: dict[str, LastCause] = {}

    def log(self, refusal: Refusal, error: ApiError) -> None:
        """Log that records are not written, or count them."""
        # What is too large has a size of its own each time; a setting is named in the message.
        cause = error.message if error.code is ErrorCode.INVALID_CONFIG else error.code
        last = self._last.get(refusal.group_id)
        if last is not None and last.cause == cause:
            last.record_count += refusal.record_count
            return
        self.written(refusal.group_id)
        self._last[refusal.group_id] = LastCause(cause)
        logger.error(
            "%s that group %s has given up in %s, from offset %d on, cannot be written to the "
            "dead-letter queue: %s",
            _records(refusal.record_count),
            refusal.group_id,
            refusal.log_name,
            refusal.first_offset,
            error.message,
        )

    def written(self, group_id: str) -> None:
        """Records of the group are written, or are refused for another cause."""
        last = self._last.pop(group_id, None)
        if last is not None and last.record_count:
            logger.error(
                "%s more of group %s could not be written to the dead-letter queue",
                _records(last.record_count),
                group_id,
            )

    def forget(self, group_id: str) -> None:
        """The group has been deleted."""
        self._last.pop(group_id, None)


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count} records"
