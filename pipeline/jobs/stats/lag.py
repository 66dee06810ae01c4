"""Computes the lag of groups: the ends of partitions minus the committed offsets."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from odradek.pipeline.reading.bounds import OffsetBounds
from odradek.storage.topic_partition import TopicPartition

from .extents import PartitionExtent
from .group_log import Commit, Group, GroupLogState

_NO_GROUP = "offsets only"  # no member ever joined: a consumer with assign(), or an admin client


class PartitionLag(NamedTuple):
    """One partition of a group.

    `bounds` is None if the partition does not exist, or belongs to a later topic of that name.
    """

    commit: Commit
    bounds: OffsetBounds | None

    @property
    def lag(self) -> int | None:
        """The number of existing offsets that the group has not read; None without bounds."""
        if self.bounds is None:
            return None
        return max(self.bounds.end - max(self.commit.offset, self.bounds.start), 0)

    @property
    def lost(self) -> int:
        """The number of offsets that were deleted before the group read them."""
        return 0 if self.bounds is None else max(self.bounds.start - self.commit.offset, 0)


@dataclass(slots=True)
class GroupLag:
    """A group with its committed offsets. `kind` is its type, or that it has offsets only."""

    group: str
    kind: str
    members: int
    protocol: str = ""
    partitions: list[PartitionLag] = field(default_factory=list)

    @property
    def lag(self) -> int:
        """The sum of all existing partitions."""
        return sum(part.lag or 0 for part in self.partitions)

    @property
    def lost(self) -> int:
        """The sum of lost records."""
        return sum(part.lost for part in self.partitions)

    @property
    def last_commit_ms(self) -> int:
        """The time of the last commit; -1 if there is none."""
        return max((part.commit.committed_ms for part in self.partitions), default=-1)


def group_lags(
    states: Iterable[GroupLogState], extents: Iterable[PartitionExtent]
) -> list[GroupLag]:
    """Return all groups by name, including those without members and those without commits."""
    extent_of = {extent.partition: extent for extent in extents}
    groups: dict[str, GroupLag] = {}
    states = list(states)
    for state in states:
        for group in state.groups:
            groups[group.group] = GroupLag(*group)
    for state in states:
        for commit in state.commits:
            lag = groups.setdefault(commit.group, GroupLag(*Group(commit.group, _NO_GROUP, 0)))
            partition = TopicPartition(commit.topic, commit.partition)
            extent = _extent(extent_of, partition, commit.topic_id)
            lag.partitions.append(PartitionLag(commit, extent.bounds if extent else None))
    for lag in groups.values():
        lag.partitions.sort(key=lambda part: (part.commit.topic, part.commit.partition))
    return [groups[name] for name in sorted(groups)]


def _extent(
    extent_of: Mapping[TopicPartition, PartitionExtent],
    partition: TopicPartition,
    topic_id: bytes | None,
) -> PartitionExtent | None:
    extent = extent_of.get(partition)
    if extent is None or extent.problem:
        return None
    is_other = topic_id is not None and extent.topic_id not in (None, topic_id)
    return None if is_other else extent
