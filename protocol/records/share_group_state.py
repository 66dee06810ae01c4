"""The records of `__share_group_state`: the progress of each share group in each partition.

A snapshot has the whole state of a share-partition. The updates after it (with the same
`snapshot_epoch`) have the changes since. The keys of both contain group, topic and partition, so
that compaction keeps the last record of each. coordinator/runtime/record_codec frames the records.
On disk: never renumber.

Kafka: ShareCoordinatorRecordHelpers, org.apache.kafka.coordinator.share.generated.
"""

from collections.abc import Mapping
from typing import Annotated

from odradek.protocol.schema import Int8, Int16, Int32, Int64, Message, String, Struct, Uuid, tagged


class StateBatch(Struct):
    """Offsets are inclusive. `delivery_state`: 0 available, 2 acknowledged, 4 archived."""

    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    delivery_count: Int16


class ShareSnapshotKey(Message, versions="0"):
    group_id: String
    topic_id: Uuid
    partition: Int32


class ShareSnapshotValue(Message, versions="0", flexible="0+"):
    """The whole state. `delivery_complete_count` is -1 if it is not known."""

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
    """The changes since the snapshot. `start_offset` is -1 if it has not changed."""

    snapshot_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Annotated[Int32, tagged(0)] = -1
    state_batches: list[StateBatch]


RECORD_TYPES: Mapping[int, tuple[type[Message], type[Message]]] = {
    0: (ShareSnapshotKey, ShareSnapshotValue),
    1: (ShareUpdateKey, ShareUpdateValue),
}
