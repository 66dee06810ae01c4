"""Reads the groups in some partitions of `__consumer_offsets`: the last value of each key counts.

Offsets that were committed in a transaction count from its commit marker on, and do not count if it
was aborted. They do not replace an offset that was committed by a later record before the marker.

Kafka: OffsetMetadataManager, GroupMetadataManager. A record's key begins with its type, its value
with its version, both as int16.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from odradek.pipeline.reading.partitions import LogDirectories
from odradek.protocol.batch_header import CorruptRecordError
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.record import Record
from odradek.protocol.records.consumer_group import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
)
from odradek.protocol.records.consumer_offsets import (
    RECORD_TYPES,
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from odradek.protocol.records.control import ControlRecordType, control_type
from odradek.protocol.records.share_group import ShareGroupMemberMetadataKey, ShareGroupMetadataKey
from odradek.protocol.records.streams_group import (
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataKey,
)
from odradek.protocol.schema import DecodeError, Message
from odradek.storage.log_reader import LogReader
from odradek.storage.topic_partition import TopicPartition

_INT16 = struct.Struct(">h")
_GROUP_KINDS: Mapping[type[Message], str] = MappingProxyType(
    {
        ConsumerGroupMetadataKey: "consumer",
        ShareGroupMetadataKey: "share",
        StreamsGroupMetadataKey: "streams",
    }
)
_MEMBER_KEYS = (
    ConsumerGroupMemberMetadataKey,
    ShareGroupMemberMetadataKey,
    StreamsGroupMemberMetadataKey,
)


class Commit(NamedTuple):
    """A committed offset of a group. `topic_id` is None if the record does not contain it."""

    group: str
    topic: str
    partition: int
    offset: int
    committed_ms: int
    metadata: str
    topic_id: bytes | None


class Group(NamedTuple):
    """A group. `kind` is classic, consumer, share or streams; only a classic one has `protocol`."""

    group: str
    kind: str
    members: int
    protocol: str = ""


@dataclass(slots=True)
class GroupLogState:
    """The groups of one partition of `__consumer_offsets`."""

    partition: TopicPartition
    commits: list[Commit] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    undecodable: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class GroupLogWork:
    """Reads partitions of `__consumer_offsets`, in a task."""

    log_directories: tuple[Path, ...]

    def __call__(self, partitions: list[TopicPartition]) -> Iterator[GroupLogState]:
        directories = LogDirectories(self.log_directories)
        for partition in partitions:
            yield read_group_log(directories, partition)


def read_group_log(directories: LogDirectories, partition: TopicPartition) -> GroupLogState:
    """Return the groups in one partition; with a `problem`, those in the records before it."""
    values = _LastValues()

    def read(reader: LogReader) -> None:
        nonlocal values
        values = _LastValues()
        _read_into(values, reader)

    problem = ""
    try:
        directories.retry(partition, read)
    except (CorruptRecordError, DecodeError, OSError) as error:
        problem = str(error)
    state = _group_state(partition, values.by_key)
    state.problem = problem
    return state


def _read_into(values: "_LastValues", reader: LogReader) -> None:
    for segment in reader.segments():
        for batch in reader.open(segment).batches():
            header, records = batch.header, batch.records()
            if header.is_control:
                values.end(header.producer_id, records)
            elif header.is_transactional:
                values.hold(header.producer_id, records)
            else:
                values.put(records)


class _LastValues:
    """The last value of each key, with the offset of its record."""

    def __init__(self) -> None:
        self.by_key: dict[bytes, tuple[int, bytes | None]] = {}
        self._pending: dict[int, list[Record]] = {}

    def put(self, records: Iterable[Record]) -> None:
        by_key = self.by_key
        for record in records:
            if record.key is None:
                continue
            last_offset, _ = by_key.get(record.key, (-1, None))
            if last_offset < record.offset:
                by_key[record.key] = record.offset, record.value

    def hold(self, producer_id: int, records: Iterable[Record]) -> None:
        """Keep records of an open transaction."""
        self._pending.setdefault(producer_id, []).extend(records)

    def end(self, producer_id: int, markers: Iterable[Record]) -> None:
        """Apply a transaction's marker. Raises DecodeError."""
        for marker in markers:
            pending = self._pending.pop(producer_id, [])
            if control_type(marker.key) is ControlRecordType.COMMIT:
                self.put(pending)


def _group_state(
    partition: TopicPartition, by_key: Mapping[bytes, tuple[int, bytes | None]]
) -> GroupLogState:
    state = GroupLogState(partition)
    members: dict[str, int] = {}
    kinds: dict[str, str] = {}
    for raw_key, (_, raw_value) in by_key.items():
        if raw_value is None:
            continue
        try:
            key, value = _decoded(raw_key, raw_value)
        except (DecodeError, struct.error):
            state.undecodable += 1
            continue
        if isinstance(key, (OffsetCommitKey, LegacyOffsetCommitKey)):
            state.commits.append(_commit(key, value))
        elif isinstance(key, GroupMetadataKey) and isinstance(value, GroupMetadataValue):
            group = Group(key.group, "classic", len(value.members), value.protocol_type)
            state.groups.append(group)
        elif isinstance(key, _MEMBER_KEYS):
            members[key.group_id] = members.get(key.group_id, 0) + 1
        elif key is not None and type(key) in _GROUP_KINDS:
            kinds[getattr(key, "group_id")] = _GROUP_KINDS[type(key)]  # noqa: B009 # all of them have one
    state.groups += [Group(name, kind, members.get(name, 0)) for name, kind in kinds.items()]
    return state


def _decoded(raw_key: bytes, raw_value: bytes) -> tuple[Message | None, Message | None]:
    """Return None for an unknown type or version. Raises DecodeError, struct.error."""
    (number,) = _INT16.unpack_from(raw_key)
    (version,) = _INT16.unpack_from(raw_value)
    types = RECORD_TYPES.get(number)
    if types is None:
        return None, None
    key_type, value_type = types
    if version not in value_type.SPEC.versions:
        return None, None
    key = key_type.decode(raw_key, 0, _INT16.size)
    if isinstance(key, _MEMBER_KEYS):
        return key, None  # members are only counted
    return key, value_type.decode(raw_value, version, _INT16.size)


def _commit(key: OffsetCommitKey | LegacyOffsetCommitKey, value: Message | None) -> Commit:
    assert isinstance(value, (OffsetCommitValue, LegacyOffsetCommitValue))
    topic_id = getattr(value, "topic_id", ZERO_UUID)
    return Commit(
        group=key.group,
        topic=key.topic,
        partition=key.partition,
        offset=value.offset,
        committed_ms=value.commit_timestamp,
        metadata=value.metadata,
        topic_id=None if topic_id == ZERO_UUID else topic_id,
    )
