"""Commits the deletion of many offsets of a group, which takes longer than a turn of the loop may.

The tombstones share one batch. They are made and encoded in steps, in which other requests are
served. They are written only if the group and the partitions for which it has offsets are the same
as before; otherwise the deletion is decided again.
"""

from collections.abc import Callable
from typing import TypeVar

from odradek.coordinator.runtime.outcome import Outcome
from odradek.coordinator.runtime.steps import Step, free, no_step

from .group_decisions import FindShard, version_of
from .group_state import GroupState

R = TypeVar("R")

ATTEMPTS_IN_STEPS = 2


def commit_in_steps(
    find: FindShard,
    group_id: str,
    decide: Callable[[GroupState, Step], Outcome[R]],
    now_ms: int,
    step: Step,
) -> R:
    """Decide and commit, and return the reply. `find` finds the group's shard.

    If the group changes in each attempt, the next one is made without a step. Raises ApiError.
    """
    for _ in range(ATTEMPTS_IN_STEPS):
        shard = find()
        before = version_of(group_id, find), shard.state.offsets.version(group_id)
        outcome = decide(shard.state, step)
        prepared = shard.journal.prepare(outcome, now_ms, step)
        if (version_of(group_id, find), shard.state.offsets.version(group_id)) == before:
            reply = shard.journal.commit(outcome, now_ms, prepared=prepared)
            if prepared is not None:
                free(step, prepared.joined)
            return reply
    shard = find()
    return shard.journal.commit(decide(shard.state, no_step), now_ms)
