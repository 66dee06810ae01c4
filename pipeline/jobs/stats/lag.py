"""How far groups are behind: what they have committed, against the ends of partitions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from odradek.pipeline.reading.partitions import TopicPartition

from .group_log import Group, GroupLogState
from .plan import PartitionExtent

_NO_GROUP = "offsets only"  # nobody ever joined: an assign()ed consumer, or an administrator


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """One partition of a group.

    `lag` is None where the partition is not there, or belongs to a later topic of that name.
    `lost` records were deleted before the group came to read them; `lag` does not count them.
    """

    topic: str
    partition: int
    committed: int
    start: int | None
    end: int | None
    lag: int | None
    lost: int
    committed_ms: int
    metadata: str


@dataclass(slots=True)
class GroupLag:
    """A group with all that it has committed."""

    group: str
    kind: str
    members: int
    protocol: str = ""
    partitions: list[PartitionLag] = field(default_factory=list)

    @property
    def lag(self) -> int:
        """Of all partitions that are there."""
        return sum(each.lag or 0 for each in self.partitions)

    @property
    def lost(self) -> int:
        """The same."""
        return sum(each.lost for each in self.partitions)

    @property
    def last_commit_ms(self) -> int:
        """-1 where none was made."""
        return max((each.committed_ms for each in self.partitions), default=-1)


def group_lags(
    states: Iterable[GroupLogState], extents: Iterable[PartitionExtent]
) -> list[GroupLag]:
    """All groups, by their names; those without members and those without commits too."""
    found = {each.partition: each for each in extents}
    groups: dict[str, GroupLag] = {}
    states = list(states)
    for state in states:
        for group in state.groups:
            groups[group.group] = GroupLag(*group)
    for state in states:
        for commit in state.commits:
            known = groups.setdefault(commit.group, GroupLag(*Group(commit.group, _NO_GROUP, 0)))
            extent = _extent(found, TopicPartition(commit.topic, commit.partition), commit.topic_id)
            start, end = extent.bounds if extent else (None, None)
            lost = max((start or 0) - commit.offset, 0)
            lag = None if end is None else max(end - max(commit.offset, start or 0), 0)
            known.partitions.append(
                PartitionLag(
                    topic=commit.topic,
                    partition=commit.partition,
                    committed=commit.offset,
                    start=start,
                    end=end,
                    lag=lag,
                    lost=lost,
                    committed_ms=commit.committed_ms,
                    metadata=commit.metadata,
                )
            )
    for each in groups.values():
        each.partitions.sort(key=lambda lag: (lag.topic, lag.partition))
    return [groups[name] for name in sorted(groups)]


def _extent(
    found: Mapping[TopicPartition, PartitionExtent],
    partition: TopicPartition,
    topic_id: bytes | None,
) -> PartitionExtent | None:
    extent = found.get(partition)
    if extent is None or extent.problem:
        return None
    is_other = topic_id is not None and extent.topic_id not in (None, topic_id)
    return None if is_other else extent
