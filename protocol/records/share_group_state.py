"""The records of `__share_group_state`: how far each share group has come in each partition.

A snapshot is the whole state of a share-partition; the updates after it (of the same
`snapshot_epoch`) hold what changed since. Both are keyed by group, topic and partition, so that
compaction keeps the last of each. How a record is framed: coordinator/record_codec.py. On disk:
never renumber. Kafka: ShareCoordinatorRecordHelpers, org.apache.kafka.coordinator.share.generated.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

from odradek.protocol.schema import Int8, Int16, Int32, Int64, Message, String, Struct, Uuid, tagged


class StateBatch(Struct):
    """Offsets, both included. `delivery_state`: 0 available, 2 acknowledged, 4 archived."""

    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    delivery_count: Int16


class ShareSnapshotKey(Message, versions="0"):
    group_id: String
    topic_id: Uuid
    partition: Int32


class ShareSnapshotValue(Message, versions="0", flexible="0+"):
    """The whole state; `delivery_complete_count` is -1 where it is not known."""

    snapshot_epoch: Int32
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Annotated[Int32, tagged(0)] = -1
    create_timestamp: Int64
    write_timestamp: Int64
    state_batches: list[StateBatch]


class ShareUpdateKey(Message, versions="0"):
    group_id: String
    topic_id: Uuid
    partition: Int32


class ShareUpdateValue(Message, versions="0", flexible="0+"):
    """What changed; `start_offset` is -1 where it has not."""

    snapshot_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Annotated[Int32, tagged(0)] = -1
    state_batches: list[StateBatch]


RECORD_TYPES: Mapping[int, tuple[type[Message], type[Message]]] = MappingProxyType(
    {
        0: (ShareSnapshotKey, ShareSnapshotValue),
        1: (ShareUpdateKey, ShareUpdateValue),
    }
)
