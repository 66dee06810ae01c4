"""The lags of all groups, for a list that has them in order."""

from __future__ import annotations

from collections.abc import Iterable

from odradek.broker.console.calls import Call
from odradek.coordinator.any_group.group import Group
from odradek.coordinator.any_group.group_offsets import GroupOffsets
from odradek.coordinator.groups.group_state import GroupState
from odradek.coordinator.share_groups.group import ShareGroup
from odradek.storage.log import PartitionLog

from .lags import MAX_PARTITIONS, UNKNOWN, Lag, Lags
from .positions import Position, find_position

# How many groups, partitions or logs are looked at between two steps.
PART = 500

# What sorts groups by their lag: whether it is not known, the lag or its negative, the group's id.
# Then the lag and the group.
Ranked = tuple[bool, int, str, Lag, Group]


class AllLags:
    """Measures the lags of groups for one request, at most MAX_PARTITIONS in all.

    The ends of all logs are read first.
    """

    def __init__(self, call: Call) -> None:
        shards = call.observed.broker.coordinators.groups.shards.serving()
        self._kept = call.positions.use(sum(len(shard.state.groups) for shard in shards))
        self._lags = Lags(call)
        self._call = call
        self._has_rules = call.authorizer.has_rules
        self._high_watermarks: dict[PartitionLog, int] = {}
        self._stable: dict[PartitionLog, int] = {}  # the last stable offsets that are lower
        self._left = MAX_PARTITIONS
        self._read_ends()

    @property
    def are_complete(self) -> bool:
        """Whether no group was left out."""
        return self._left >= 0

    def ranked(self, groups: Iterable[Group], state: GroupState, sign: int) -> list[Ranked]:
        """The groups of a shard with their lags, to be sorted by the lag times `sign`.

        Groups after MAX_PARTITIONS have an UNKNOWN lag.
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
        lag = None if position is None else self._lag_at(position)
        if lag is None:  # a log is missing, or was created or deleted
            self._kept.pop(group.group_id, None)
            return self._lags.of(group, state)
        return lag

    def _find_position(self, group: Group, offsets: GroupOffsets) -> Position | None:
        position = find_position(offsets, self._call.observed.broker.log_manager.of_topic)
        if position is not None:
            self._kept[group.group_id] = position
        return position

    def _lag_at(self, position: Position) -> Lag | None:
        """None if a log was not there when the ends were read."""
        high_watermarks, stable = self._high_watermarks, self._stable
        records = held_back = 0
        try:
            for log, committed in position.places:
                behind = high_watermarks[log] - committed
                if behind > 0:
                    records += behind
                    if stable and committed >= stable.get(log, committed + 1):
                        held_back += 1
        except KeyError:
            return None
        return Lag(len(position.places), records if position.places else None, held_back)

    def _read_ends(self) -> None:
        logs = self._call.observed.broker.log_manager.logs()
        high_watermarks, stable = self._high_watermarks, self._stable
        for start in self._call.sliced(iter(range(0, len(logs), PART))):
            for log in logs[start : start + PART]:
                high_watermark = high_watermarks[log] = log.high_watermark
                if log.last_stable_offset != high_watermark:
                    stable[log] = log.last_stable_offset
