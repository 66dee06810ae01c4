"""The limit on the records of one operation of a user. With it an operation fits one batch.

Kafka: QuorumController.MAX_RECORDS_PER_USER_OP, BoundedList.
"""

from collections.abc import Sequence
from typing import TypeVar

from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.protocol.errors import ApiError, ErrorCode

MAX_RECORDS = 10_000

R = TypeVar("R")


def check_record_count(count: int) -> None:
    """Raise POLICY_VIOLATION if an operation needs more records than it may have."""
    if count > MAX_RECORDS:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"Unable to perform excessively large batch operation: it needs {count} "
            f"records, the limit is {MAX_RECORDS}.",
        )


def limited_outcome(reply: R, records: Sequence[JournalRecord], validate_only: bool) -> Outcome[R]:
    """Make the outcome of a user's operation. Raises POLICY_VIOLATION for too many records."""
    check_record_count(len(records))
    return Outcome(reply=reply, records=() if validate_only else tuple(records))
