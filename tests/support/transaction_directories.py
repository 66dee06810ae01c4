"""Data directories of a broker that was stopped, with transactions in any state: made here."""

import struct
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import MetadataRecordCodec
from odradek.coordinator.transactions.codec import TransactionCodec
from odradek.coordinator.transactions.transaction import Transaction, record_of, tombstone_of
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.cluster_metadata import ConfigRecord, PartitionRecord, TopicRecord
from odradek.storage.append import AppendOrigin, EndMarker
from odradek.storage.checkpoints import (
    MetaProperties,
    write_clean_shutdown,
    write_meta_properties,
    write_offsets,
)
from odradek.storage.filenames import RECOVERY_POINT_CHECKPOINT
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.topic_partition import TopicPartition
from tests.support.log_box import NOW_MS, LogBox, batch_of

CLUSTER = "AAECAwQFBgcICQoLDA0ODw"
DIRECTORY_ID = bytes(range(1, 17))
STATE_TOPIC = "__transaction_state"


def stopped_directory(
    root: Path,
    write: Callable[[PartitionLog], object],
    states: Sequence[Transaction | str] = (),
    *,
    topics: Iterable[str] = ("orders", STATE_TOPIC),
    policy: str = "delete",
    state_partitions: int = 1,
    **settings: object,
) -> Path:
    """`orders-0`, filled by `write`, and `__transaction_state-0` with these records in this order.

    A text is the tombstone of that transactional id. `policy`: that of `orders`. The other
    partitions of `__transaction_state` are empty.
    """
    ends: dict[TopicPartition, int] = {}
    codec = TransactionCodec()
    records = [
        codec.encode(tombstone_of(each) if isinstance(each, str) else record_of(each, 2))
        for each in states
    ]

    def write_states(log: PartitionLog) -> None:
        for key, value in records:
            batch = build_batch([Record(key, value, NOW_MS)])
            log.append(batch, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)

    contents: tuple[tuple[str, Callable[[PartitionLog], object], dict[str, Any]], ...] = (
        (STATE_TOPIC, write_states, {}),
        ("orders", write, settings),
    )
    for partition in range(1, state_partitions):
        box = LogBox(root)
        box.open().close(NOW_MS)
        box.directory.rename(root / f"{STATE_TOPIC}-{partition}")
    for topic, fill, config in contents:
        box = LogBox(root, **config)
        log = box.open()
        log.become_leader(0)
        fill(log)
        ends[TopicPartition(topic, 0)] = log.log_end_offset
        log.close(NOW_MS)
        if topic != "orders":
            box.directory.rename(root / f"{topic}-0")
    write_metadata(root, topics, policy, state_partitions)
    write_meta_properties(Files(), root, MetaProperties(CLUSTER, 1, DIRECTORY_ID))
    write_offsets(Files(), root / RECOVERY_POINT_CHECKPOINT, ends)
    write_clean_shutdown(Files(), root, 7)
    return root


def write_metadata(root: Path, topics: Iterable[str], policy: str, state_partitions: int) -> None:
    """A metadata log, without the files beside it; all other topics have one partition."""
    codec = MetadataRecordCodec.of_cluster()
    stored = []
    for number, topic in enumerate(topics):
        topic_id = bytes([number + 1]) * 16
        places = [
            PartitionRecord(
                partition_id=partition,
                topic_id=topic_id,
                replicas=[1],
                isr=[1],
                removing_replicas=[],
                adding_replicas=[],
                directories=[DIRECTORY_ID],
            )
            for partition in range(state_partitions if topic == STATE_TOPIC else 1)
        ]
        stored += [
            JournalRecord(TopicRecord(name=topic, topic_id=topic_id), 0),
            *(JournalRecord(place, 1) for place in places),
            JournalRecord(
                ConfigRecord(
                    resource_type=2,
                    resource_name=topic,
                    name="cleanup.policy",
                    value=policy if topic == "orders" else "compact",
                ),
                0,
            ),
        ]
    directory = root / "__cluster_metadata-0"
    directory.mkdir()
    records = [Record(*codec.encode(each), NOW_MS) for each in stored]
    (directory / f"{0:020}.log").write_bytes(build_batch(records))


def transactional(log: PartitionLog, producer: tuple[int, int, int], at_ms: int = NOW_MS) -> int:
    """Append a transactional batch of a producer (id, epoch, sequence); returns its offset."""
    batch = batch_of(b"t", producer=producer, is_transactional=True, timestamps=[at_ms])
    return log.append(batch, now_ms=NOW_MS, transaction_verified=True).base_offset


def end(
    log: PartitionLog, producer_id: int, epoch: int, *, commit: bool, coordinator_epoch: int = 0
) -> int:
    """Append a marker of version 1; returns its offset."""
    marker = EndMarker(producer_id, epoch, commit, coordinator_epoch, 0)
    return log.append_marker(marker, NOW_MS).base_offset


def change_entry(path: Path, slot: int, field: int, value: int) -> None:
    """Change a field of a transaction index's entry: 1 producer id, 2 first, 3 last, 4 stable."""
    entry = struct.Struct(">hqqqq")
    data = bytearray(path.read_bytes())
    fields = list(entry.unpack_from(data, slot * entry.size))
    fields[field] = value
    entry.pack_into(data, slot * entry.size, *fields)
    path.write_bytes(data)
