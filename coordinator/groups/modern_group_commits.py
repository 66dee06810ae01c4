"""Writes decisions about groups whose assignments the coordinator computes, of every type."""

from typing import TypeVar

from odradek.coordinator.modern_groups.draft import DraftResult
from odradek.coordinator.modern_groups.group import EpochGroup
from odradek.coordinator.runtime.journal import Prepared
from odradek.coordinator.runtime.outcome import Outcome
from odradek.coordinator.runtime.timers import Now

from .group_shards import GroupShard

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
