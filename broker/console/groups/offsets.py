"""The offsets of a group: what it has committed, its lag, and what stops its consumers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from odradek.broker.console.calls import Call
from odradek.broker.console.view import View
from odradek.coordinator.any_group.group import Group
from odradek.coordinator.any_group.group_offsets import CommittedOffset
from odradek.coordinator.any_group.group_settings import MINUTE_MS
from odradek.coordinator.groups.group_state import GroupState
from odradek.coordinator.groups.offset_expiry import expires_ms
from odradek.coordinator.share_groups.group import ShareGroup
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.protocol.errors import ApiError
from odradek.protocol.primitives import ZERO_UUID
from odradek.storage.log import PartitionLog

from .deliveries import start_offset_of
from .described import GroupMember
from .holding import HoldingTransaction, holders_of
from .lags import share_lag

Place = tuple[str, int]  # topic and partition
# By partition: the members that read it. In share groups there may be several.
Owners = dict[Place, list[str]]

_PENDING = "an open transaction has an offset for it: consumers that start wait until it ends"


class GroupOffset(View):
    """A partition that the group reads, or for which it has an offset.

    `committed` is the next offset to read; of a share group it is the start offset. None: there is
    none yet. `log_end_offset` is the end of what consumers can read (the high watermark).
    `problem`: why the partition is not served now; its offsets are None then. `expires_ms`: when
    the offset will be deleted if the group stays as it is. `waits_for`: what stops consumers,
    in words; `holding` is the transaction that does so.
    """

    topic: str
    partition: int
    committed: int | None = None
    log_start_offset: int | None = None
    last_stable_offset: int | None = None
    log_end_offset: int | None = None
    lag: int | None = None
    member_id: str | None = None
    metadata: str = ""
    committed_ms: int | None = None
    expires_ms: int | None = None
    waits_for: str | None = None
    holding: HoldingTransaction | None = None
    problem: str | None = None


def owners_of(call: Call, members: Iterable[GroupMember]) -> Owners:
    """The members that read each partition."""
    owners: Owners = {}
    for member in call.sliced(iter(members)):
        for assigned in member.assignment:
            for partition in call.sliced(assigned.partitions):
                owners.setdefault((assigned.topic, partition), []).append(member.member_id)
    return owners


def places_of(call: Call, group: Group, state: GroupState, owners: Owners) -> Iterator[Place]:
    """The partitions of existing topics that the group reads or has an offset for, in order."""
    by_topic: dict[str, set[int]] = {}
    for topic, partition in call.sliced(iter(owners)):
        by_topic.setdefault(topic, set()).add(partition)
    for topic, partitions in list(_known_partitions(group, state)):
        by_topic.setdefault(topic, set()).update(partitions)
    for topic, partition in call.sliced(state.offsets.pending(group.group_id)):
        by_topic.setdefault(topic, set()).add(partition)
    existing = call.observed.broker.metadata.topics
    for topic in sorted(by_topic):
        if topic in existing:
            for partition in call.sliced(sorted(by_topic[topic])):
                yield topic, partition


def _known_partitions(group: Group, state: GroupState) -> Iterable[tuple[str, Iterable[int]]]:
    if isinstance(group, ShareGroup):
        stored = group.state_partitions.stored().values()
        return ((topic.name, topic.partitions) for topic in stored)
    return state.offsets.of_group(group.group_id).items()


async def offsets_of(
    call: Call, group: Group, state: GroupState, owners: Owners, places: Iterable[Place]
) -> list[GroupOffset]:
    """Describe partitions. The client must be allowed to describe their topics."""
    described = [_describe(call, group, state, place) for place in call.sliced(iter(places))]
    pending = state.offsets.pending(group.group_id)
    heeded = _heeds_transactions(call, group)
    logs = (log for _, log in described if log is not None and heeded)
    holders = await holders_of(call, logs)
    for offset, log in call.sliced(described):
        readers = owners.get((offset.topic, offset.partition), ())
        offset.member_id = readers[0] if len(readers) == 1 else None
        if (offset.topic, offset.partition) in pending:
            offset.waits_for = _PENDING
        if log is not None and log in holders:
            _add_holder(offset, holders[log])
    return [offset for offset, _ in described]


def _describe(
    call: Call, group: Group, state: GroupState, place: Place
) -> tuple[GroupOffset, PartitionLog | None]:
    """Describe a partition, without what stops its consumers. Returns its log if it is served."""
    offset = GroupOffset(topic=place[0], partition=place[1])
    log: PartitionLog | None = None
    try:
        log = call.observed.broker.log_manager.get(*place)
        log.check_online()
    except ApiError as error:
        offset.problem = f"{error.code.name}: {error.message}"
        log = None
    else:
        offset.log_start_offset = log.log_start_offset
        offset.last_stable_offset = log.last_stable_offset
        offset.log_end_offset = log.high_watermark
    if isinstance(group, ShareGroup):
        _add_start_offset(call, group, offset, log)
    else:
        committed = state.offsets.of_group(group.group_id).get(place[0], {}).get(place[1])
        if committed is not None and committed.is_of(_topic_id(call, place[0])):
            _add_committed(call, group, offset, committed)
    return offset, log


def _add_committed(
    call: Call, group: Group, offset: GroupOffset, committed: CommittedOffset
) -> None:
    retention_ms = call.observed.broker.config.offsets_retention_minutes * MINUTE_MS
    offset.committed = committed.offset
    offset.metadata = committed.metadata
    offset.committed_ms = committed.commit_timestamp_ms
    offset.expires_ms = expires_ms(group, offset.topic, committed, retention_ms)
    if offset.log_end_offset is not None:
        offset.lag = max(0, offset.log_end_offset - committed.offset)


def _add_start_offset(
    call: Call, group: ShareGroup, offset: GroupOffset, log: PartitionLog | None
) -> None:
    key = SharePartitionKey(group.group_id, _topic_id(call, offset.topic), offset.partition)
    offset.committed = start_offset_of(call, key)
    offset.lag = share_lag(call, log, key)


def _topic_id(call: Call, topic: str) -> bytes:
    known = call.observed.broker.metadata.topics.get(topic)
    return ZERO_UUID if known is None else known.id


def _heeds_transactions(call: Call, group: Group) -> bool:
    """Whether open transactions may hold the group back. What share groups read is a setting."""
    configs = call.observed.broker.coordinators.group_configs.share
    return not isinstance(group, ShareGroup) or configs.reads_committed(group.group_id)


def _add_holder(offset: GroupOffset, holding: HoldingTransaction) -> None:
    start = holding.start_offset
    waits = "wait" if offset.committed is not None and offset.committed >= start else "will wait"
    text = (
        f"consumers with isolation.level=read_committed {waits} at offset {start}: {holding.text}"
    )
    offset.holding = holding
    offset.waits_for = text if offset.waits_for is None else f"{text}; {offset.waits_for}"
