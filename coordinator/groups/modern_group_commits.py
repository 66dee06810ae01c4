"""Writes decisions about groups whose assignments the coordinator computes, of every type."""

import logging
from typing import Any, TypeVar

from odradek.coordinator.modern_groups.draft import DraftResult
from odradek.coordinator.modern_groups.group import EpochGroup
from odradek.coordinator.modern_groups.member import MemberKey
from odradek.coordinator.runtime.journal import Prepared
from odradek.coordinator.runtime.outcome import Outcome
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.errors import ApiError

from .group_shards import GroupShard

logger = logging.getLogger("odradek.groups")

R = TypeVar("R")

# The delay before a background write that failed is tried again.
RETRY_MS = 500


def commit(
    shard: GroupShard,
    outcome: Outcome[DraftResult[R]],
    now: Now,
    prepared: Prepared | None = None,
) -> R:
    """Write a decision and return its reply. Raises ApiError if nothing was written.

    The group's soft state follows: `changes` tells a decision in slices that it is out of date
    (group_decisions.py), `topics_checked_offset` spares later heartbeats the check of the topics.
    `prepared`: the decision's batch, if it has been made already.
    """
    result = shard.journal.commit(outcome, now.wall_ms, prepared=prepared)
    group = shard.state.groups.get(result.group_id)
    if isinstance(group, EpochGroup):
        group.changes += 1
        if outcome.records:
            group.note_timestamps(now)
        if result.topics_checked_offset is not None:
            group.topics_checked_offset = result.topics_checked_offset
    return result.reply


def commit_fencing(
    shard: GroupShard, removal: Outcome[DraftResult[Any]], key: MemberKey, deadline: str, now: Now
) -> int | None:
    """Write the removal of a member that missed a deadline; `deadline` is its name.

    Returns when to try again, in timer time, if the removal could not be written.
    """
    log_fencing(key, deadline)
    try:
        commit(shard, removal, now)
    except ApiError as error:
        return log_fencing_failure(key, error, now)
    return None


def log_fencing(key: MemberKey, deadline: str) -> None:
    """Log that a member is removed because it missed a deadline; `deadline` is its name."""
    _, group_id, member_id = key
    logger.info(
        "group %s: member %s is removed: its %s deadline has passed", group_id, member_id, deadline
    )


def log_fencing_failure(key: MemberKey, error: ApiError, now: Now) -> int:
    """Log that the removal could not be written. Returns when to try again, in timer time."""
    logger.warning("group %s: the removal could not be written: %s", key.group_id, error)
    return now.timer_ms + RETRY_MS
