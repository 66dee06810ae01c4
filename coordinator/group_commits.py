"""Writing what was decided about a group, and what a failure to write means to its members."""

from typing import TypeVar

from odradek.protocol.errors import ApiError, ErrorCode

from .group_shards import GroupShard
from .outcome import Outcome
from .timers import Now

R = TypeVar("R")

# What a failed append means to a member of a group. Kafka: CoordinatorOperationExceptionHelper.
APPEND_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def commit(shard: GroupShard, outcome: Outcome[R], now: Now) -> R:
    """Append the records, replay them, and give the reply. Raises ApiError, as members know it."""
    try:
        return shard.journal.commit(outcome, now.wall_ms)
    except ApiError as error:
        code = APPEND_ERRORS.get(error.code, error.code)
        raise ApiError(code, error.message) from error
