"""How far groups have got: the logs' high watermarks, less what the groups have done.

It is read from the coordinators and the logs directly, because a list may have thousands of groups.
Topics that the client may not describe are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from msgspec import Struct

from odradek.broker.console.calls import Call
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.any_group.group import Group
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
PART = 200  # partitions that are looked at in one turn

T = TypeVar("T")


class Lag(Struct, frozen=True, gc=False):
    """The lag of a group: of all its partitions together; None if none of them has one.

    `held_back` counts the partitions where an open transaction stops consumers of committed records
    that have read all before it.
    """

    partitions: int
    records: int | None
    held_back: int = 0


UNKNOWN = Lag(0, None)


class Lags:
    """Measures the lags of groups for one request, at most MAX_PARTITIONS in all."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._left = MAX_PARTITIONS
        self._may_describe: dict[str, bool] = {}
        self._logs: dict[str, Mapping[int, PartitionLog]] = {}

    @property
    def are_complete(self) -> bool:
        """Whether no group was left out."""
        return self._left >= 0

    def of(self, group: Group, state: GroupState) -> Lag:
        """The lag of a group, whose shard has the state; UNKNOWN after too many partitions."""
        if self._left < 0:
            return UNKNOWN
        lags = self._of_share(group) if isinstance(group, ShareGroup) else self._of(group, state)
        self._left -= lags.partitions
        return lags

    def may_describe(self, topic: str) -> bool:
        """Whether the client may see a topic."""
        known = self._may_describe.get(topic)
        if known is None:
            known = self._call.may(AclOperation.DESCRIBE, ResourceType.TOPIC, topic)
            self._may_describe[topic] = known
        return known

    def _of(self, group: Group, state: GroupState) -> Lag:
        count = records = held_back = 0
        is_known = False
        for topic, partitions in list(state.offsets.of_group(group.group_id).items()):
            logs = self._logs_of(topic)
            if logs is None:
                continue
            count += len(partitions)
            for part in self._parts(partitions):
                for partition, committed in part:
                    log = logs.get(partition)
                    # The first comparison is a quick one that mostly holds.
                    if log is not None and (
                        committed.topic_id == log.topic_id
                        or committed.is_of(log.topic_id or ZERO_UUID)
                    ):
                        is_known = True
                        behind = log.high_watermark - committed.offset
                        if behind > 0:
                            records += behind
                            held_back += committed.offset >= log.last_stable_offset
        return Lag(count, records if is_known else None, held_back)

    def _logs_of(self, topic: str) -> Mapping[int, PartitionLog] | None:
        """The logs of a topic; None if the client may not describe it."""
        logs = self._logs.get(topic)
        if logs is None and self.may_describe(topic):
            logs = self._logs[topic] = self._call.observed.broker.log_manager.of_topic(topic)
        return logs

    def _parts(self, partitions: Mapping[int, T]) -> Iterable[Iterable[tuple[int, T]]]:
        """The items, a part in each turn. Most have one part, and are not copied."""
        if len(partitions) <= PART:
            return (partitions.items(),)
        items = list(partitions.items())
        starts = self._call.sliced(iter(range(0, len(items), PART)))
        return (items[start : start + PART] for start in starts)

    def _of_share(self, group: ShareGroup) -> Lag:
        count, total = 0, None
        for topic_id, topic in group.state_partitions.initialized.items():
            logs = self._logs_of(topic.name)
            if logs is None:
                continue
            count += len(topic.partitions)
            for partition in self._call.sliced(topic.partitions):
                key = SharePartitionKey(group.group_id, topic_id, partition)
                lag = share_lag(self._call, logs.get(partition), key)
                if lag is not None:
                    total = lag + (total or 0)
        return Lag(count, total)


def share_lag(call: Call, log: PartitionLog | None, key: SharePartitionKey) -> int | None:
    """The records that are not done; None before the first is, and of a deleted topic."""
    state = stored_state(call, key)
    if log is None or log.topic_id != key.topic_id or state is None or state.done_count is None:
        return None
    return max(0, log.high_watermark - state.done_count)


def stored_state(call: Call, key: SharePartitionKey) -> ShareState | None:
    """What is stored of a share-partition; None if that is not known now."""
    try:
        return call.observed.broker.coordinators.share_states.read_summary(key)
    except ApiError:  # its log is being loaded, or the topic is being deleted
        return None
