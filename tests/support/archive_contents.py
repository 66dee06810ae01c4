"""What an archive, a topic and a replay have of each partition, row by row."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, TopicPartition
from deltalake import DeltaTable

from odradek.pipeline.jobs.archive.table.archive_table import ArchiveTable
from odradek.pipeline.jobs.offset_spans import Span
from tests.support.archives import at
from tests.support.sent_records import Place, Row

LIMIT_SECONDS = 60.0
Rows = dict[int, Row]
COLUMNS = ("topic", "topicId", "partition", "offset", "key", "value", "timestamp", "timestampMs")


class ArchiveContents(NamedTuple):
    """The rows of one version, and what its state says. `twice` are offsets with several rows."""

    rows: Mapping[Place, Rows]
    twice: list[tuple[Place, int]]
    covered: Mapping[Place, tuple[Span, ...]]
    lost: Mapping[Place, tuple[Span, ...]]


def archive_contents(archive: Path) -> ArchiveContents:
    """Read the newest version. Raises JobError if another writer has changed it."""
    table = ArchiveTable(at(archive))
    rows, twice = rows_by_place(table.delta)
    states = {Place(*_key(each.of)): each for each in table.state.partitions.values()}
    return ArchiveContents(
        rows,
        twice,
        {place: state.covered for place, state in states.items()},
        {place: state.lost for place, state in states.items()},
    )


def _key(key: object) -> tuple[str, str, int]:
    return key.topic, key.topic_id, key.partition  # type: ignore[attr-defined] # a PartitionKey


def rows_by_place(delta: DeltaTable) -> tuple[Mapping[Place, Rows], list[tuple[Place, int]]]:
    """The rows of a table, and the offsets that are there more than once."""
    table = delta.to_pyarrow_table(columns=[*COLUMNS, "timestampType", "headers"])
    found: defaultdict[Place, Rows] = defaultdict(dict)
    twice = []
    columns = [table[name].to_pylist() for name in COLUMNS[:6]]
    micros = table["timestamp"].cast(pa.int64()).to_pylist()
    kept, types = table["timestampMs"].to_pylist(), table["timestampType"].to_pylist()
    headers = [
        tuple((each["key"], each["value"]) for each in pairs or ())
        for pairs in table["headers"].to_pylist()
    ]
    for topic, topic_id, partition, offset, key, value, us, ms, kind, pairs in zip(
        *columns, micros, kept, types, headers, strict=True
    ):
        place = Place(topic, topic_id, partition)
        if offset in found[place]:
            twice.append((place, offset))
        found[place][offset] = Row(key, value, pairs, us // 1000 if ms is None else ms, kind)
    return found, twice


def consumed(
    bootstrap: str, topic: str, partitions: int, *, committed_only: bool = True
) -> dict[int, Rows]:
    """What a consumer reads of each partition of a topic in which nobody writes."""
    isolation = "read_committed" if committed_only else "read_uncommitted"
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    found: dict[int, Rows] = {each: {} for each in range(partitions)}
    consumer.assign([TopicPartition(topic, each, 0) for each in found])
    ended: set[int] = set()
    try:
        while len(ended) < partitions:
            message = consumer.poll(LIMIT_SECONDS)
            assert message is not None, f"the end of {topic} is not reached"
            partition, offset, error = message.partition(), message.offset(), message.error()
            assert partition is not None
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error.str()
                ended.add(partition)
                continue
            assert offset is not None
            kind, stamp_ms = message.timestamp()
            pairs: Any = message.headers() or ()
            headers = tuple((name, value) for name, value in pairs)
            row = Row(message.key(), message.value(), headers, stamp_ms, int(kind == 2))
            found[partition][offset] = row
    finally:
        consumer.close()
    return found


def log_start(bootstrap: str, topic: str, partition: int) -> int:
    """The first offset that the broker still has."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader"})
    try:
        low, _ = consumer.get_watermark_offsets(TopicPartition(topic, partition), LIMIT_SECONDS)
        return low
    finally:
        consumer.close()
