"""Snapshot files of the metadata log: what makes one unusable."""

import pytest

from odradek.coordinator.metadata.metadata_snapshot import snapshot_bytes
from odradek.coordinator.metadata.snapshot_batches import snapshot_batches
from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import MetadataRecordCodec
from odradek.protocol.batch_header import CorruptRecordError, read_header
from odradek.protocol.records.cluster_metadata import ConfigRecord, FeatureLevelRecord

MAGIC_AT = 16
SNAPSHOT = snapshot_bytes(
    [],
    [JournalRecord(FeatureLevelRecord(name="metadata.version", feature_level=30))],
    MetadataRecordCodec.of_cluster(),
    last_contained_ms=0,
    now_ms=0,
)
BATCHES = snapshot_batches(SNAPSHOT)
HEADER, BODY, FOOTER = map(bytes, BATCHES)


def test_the_batches_are_those_of_the_file() -> None:
    assert [read_header(batch).base_offset for batch in BATCHES] == [0, 1, 2]


def test_large_records_are_divided_among_batches() -> None:
    value = "x" * 32_000
    snapshot = snapshot_bytes(
        [],
        [
            JournalRecord(ConfigRecord(resource_type=2, resource_name="t", name="n", value=value))
            for _ in range(20)
        ],
        MetadataRecordCodec.of_cluster(),
        last_contained_ms=0,
        now_ms=0,
    )
    _, *bodies, footer = snapshot_batches(snapshot)
    assert max(map(len, bodies)) < 300_000
    assert read_header(footer).base_offset == 21


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "its header is missing"),
        (BODY + FOOTER, "its header is missing"),
        (BODY + HEADER + FOOTER, "its header is missing"),
        (HEADER + BODY, "its footer is missing"),
        (SNAPSHOT[:-1], f"byte {len(HEADER + BODY)}: a batch of {len(FOOTER)} bytes is cut short"),
        (SNAPSHOT[:-1] + b"x", f"byte {len(HEADER + BODY)}: stored CRC"),
        (HEADER + BODY[:MAGIC_AT] + b"\1" + BODY[MAGIC_AT + 1 :], "a batch of magic 1"),
        (HEADER + BODY[:MAGIC_AT] + b"\3" + BODY[MAGIC_AT + 1 :], "a batch of magic 3"),
    ],
)
def test_a_damaged_file_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(CorruptRecordError, match=why):
        snapshot_batches(data)
