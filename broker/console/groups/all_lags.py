"""The lags of all groups, for a list that has them in order.

What takes most of the time is memory: each object that is looked at for a group costs a tenth of a
microsecond or more. So `held_back`, for which a log's producers are looked at, is counted for the
groups of the page only.
"""

from __future__ import annotations

from collections.abc import Iterable

from odradek.broker.console.calls import Call
from odradek.coordinator.any_group.group import Group
from odradek.coordinator.any_group.group_offsets import GroupOffsets
from odradek.coordinator.groups.group_state import GroupState
from odradek.coordinator.share_groups.group import ShareGroup

from .lags import MAX_PARTITIONS, UNKNOWN, Lag, Lags
from .positions import Position, find_position

# How many groups and partitions are looked at between two steps.
PART = 500

# What sorts groups by their lag: whether it is not known, the lag or its negative, the group's id.
# Then the lag and the group.
Ranked = tuple[bool, int, str, Lag, Group]


class AllLags:
    """Measures the lags of groups for one request, at most MAX_PARTITIONS in all."""

    def __init__(self, call: Call) -> None:
        shards = call.observed.broker.coordinators.groups.shards.serving()
        self._kept = call.positions.use(sum(len(shard.state.groups) for shard in shards))
        self._lags = Lags(call)
        self._call = call
        self._has_rules = call.authorizer.has_rules
        self._left = MAX_PARTITIONS

    @property
    def are_complete(self) -> bool:
        """Whether no group was left out."""
        return self._left >= 0

    def ranked(self, groups: Iterable[Group], state: GroupState, sign: int) -> list[Ranked]:
        """The groups of a shard with their lags, to be sorted by the lag times `sign`.

        `held_back` is not counted. Groups after MAX_PARTITIONS have an UNKNOWN lag.
        """
        ranked: list[Ranked] = []
        done = PART
        for group in groups:
            if done >= PART:
                self._call.slices.step()
                done = 0
            lag = self._of(group, state) if self._left >= 0 else UNKNOWN
            records = lag.records
            self._left -= lag.partitions
            done += 1 + lag.partitions
            if records is None:
                ranked.append((True, 0, group.group_id, lag, group))
            else:
                ranked.append((False, sign * records, group.group_id, lag, group))
        return ranked

    def _of(self, group: Group, state: GroupState) -> Lag:
        offsets = state.offsets.find(group.group_id)
        if offsets is None or isinstance(group, ShareGroup):
            return self._lags.of(group, state)
        if self._has_rules and not all(map(self._lags.may_describe, offsets.committed)):
            return self._lags.of(group, state)
        position = self._kept.get(group.group_id)
        if position is None or not position.is_of(offsets):
            position = self._find_position(group, offsets)
        records = None if position is None else _records_after(position)
        if position is None or records is None:  # a log is missing, or was deleted
            self._kept.pop(group.group_id, None)
            return self._lags.of(group, state)
        return Lag(len(position.places), records if position.places else None)

    def _find_position(self, group: Group, offsets: GroupOffsets) -> Position | None:
        position = find_position(offsets, self._call.observed.broker.log_manager.of_topic)
        if position is not None:
            self._kept[group.group_id] = position
        return position

    def held_back(self, group: Group, state: GroupState) -> int:
        """How many partitions of a group an open transaction holds back."""
        return self._lags.of(group, state).held_back


def _records_after(position: Position) -> int | None:
    """The records that the group has not done; None if a log was deleted, or is offline."""
    records = 0
    for log, committed in position.places:
        if not log.is_online:
            return None
        behind = log.high_watermark - committed
        if behind > 0:
            records += behind
    return records
