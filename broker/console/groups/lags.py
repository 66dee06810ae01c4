"""How far groups have got: the logs' high watermarks, less what the groups have done.

It is read from the coordinators and the logs directly, because a list may have thousands of groups.
Topics that the client may not describe are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from odradek.broker.console.calls import Call
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.any_group.group import Group
from odradek.coordinator.any_group.group_offsets import CommittedOffset
from odradek.coordinator.groups.group_state import GroupState
from odradek.coordinator.share_groups.group import ShareGroup
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.coordinator.share_state.state import ShareState
from odradek.protocol.errors import ApiError
from odradek.protocol.primitives import ZERO_UUID
from odradek.storage.log import PartitionLog

# A request that asks for the lags of all groups looks at so many partitions. It takes a tenth of a
# second.
MAX_PARTITIONS = 100_000


class Lag(NamedTuple):
    """The lag of a group: of all its partitions together; None if none of them has one."""

    partitions: int
    records: int | None


UNKNOWN = Lag(0, None)


class Lags:
    """Measures the lags of groups for one request, at most MAX_PARTITIONS in all."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._left = MAX_PARTITIONS
        self._may_describe: dict[str, bool] = {}

    @property
    def are_complete(self) -> bool:
        """Whether no group was left out."""
        return self._left >= 0

    def of(self, group: Group, state: GroupState) -> Lag:
        """The lag of a group; UNKNOWN after too many partitions."""
        if self._left < 0:
            return UNKNOWN
        lags = self._of_share(group) if isinstance(group, ShareGroup) else self._of(group, state)
        count, total = 0, None
        for lag in self._call.sliced(lags):
            count += 1
            if lag is not None:
                total = lag + (total or 0)
        self._left -= count
        return Lag(count, total)

    def may_describe(self, topic: str) -> bool:
        """Whether the client may see a topic."""
        known = self._may_describe.get(topic)
        if known is None:
            known = self._call.may(AclOperation.DESCRIBE, ResourceType.TOPIC, topic)
            self._may_describe[topic] = known
        return known

    def _of(self, group: Group, state: GroupState) -> Iterator[int | None]:
        manager = self._call.observed.broker.log_manager
        for topic, partitions in list(state.offsets.of_group(group.group_id).items()):
            if self.may_describe(topic):
                logs = manager.of_topic(topic)
                for partition, committed in list(partitions.items()):
                    yield committed_lag(logs.get(partition), committed)

    def _of_share(self, group: ShareGroup) -> Iterator[int | None]:
        manager = self._call.observed.broker.log_manager
        for topic_id, topic in group.state_partitions.initialized.items():
            if self.may_describe(topic.name):
                logs = manager.of_topic(topic.name)
                for partition in topic.partitions:
                    key = SharePartitionKey(group.group_id, topic_id, partition)
                    yield share_lag(logs.get(partition), stored_state(self._call, key))


def committed_lag(log: PartitionLog | None, committed: CommittedOffset) -> int | None:
    """The records after a committed offset; None if it is not of this log."""
    if log is None or not committed.is_of(log.topic_id or ZERO_UUID):
        return None
    return max(0, log.high_watermark - committed.offset)


def share_lag(log: PartitionLog | None, state: ShareState | None) -> int | None:
    """The records that are not done; None before the first is."""
    done_count = None if state is None else state.done_count
    return None if log is None or done_count is None else max(0, log.high_watermark - done_count)


def stored_state(call: Call, key: SharePartitionKey) -> ShareState | None:
    """What is stored of a share-partition; None if that is not known now."""
    try:
        return call.observed.broker.coordinators.share_states.read_summary(key)
    except ApiError:  # its log is being loaded, or the topic is being deleted
        return None
