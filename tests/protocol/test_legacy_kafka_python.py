"""kafka-python's message sets are read, and it reads ours: a second implementation of the formats.

LZ4 of magic 0 is left out: kafka-python needs one more library for its checksum.
"""

import pytest
from kafka.record.legacy_records import LegacyRecordBatch, LegacyRecordBatchBuilder

from odradek.protocol.compression import CompressionType
from odradek.protocol.legacy import build_message_set, read_entries, read_message_set
from odradek.protocol.message_set import LegacyRecord
from odradek.protocol.record import Record
from tests.support.kafka_legacy import BASE_TIME, LEGACY_CODECS, as_read

RECORDS = [Record(b"k%d" % i, b"value" * (i % 50), BASE_TIME + i, (), i) for i in range(300)]
FORMATS = [
    (magic, codec)
    for magic in (0, 1)
    for codec in LEGACY_CODECS
    if (magic, codec) != (0, CompressionType.LZ4)
]


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_a_set_of_kafka_python_is_read(magic: int, codec: CompressionType) -> None:
    builder = LegacyRecordBatchBuilder(magic=magic, compression_type=codec, batch_size=1 << 20)
    for record in RECORDS:
        builder.append(record.offset, record.timestamp_ms, record.key, record.value)
    made = bytes(builder.build())
    # Its wrappers have offset 0, like those of some librdkafka: what is inside counts as it is.
    assert list(read_message_set(made, whole=True)) == as_read(RECORDS, magic)


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_kafka_python_reads_our_set(magic: int, codec: CompressionType) -> None:
    moved = [record._replace(offset=record.offset + 70_000) for record in RECORDS]
    made = bytes(build_message_set(moved, magic=magic, compression=codec))
    found = []
    for entry in read_entries(made):
        end = entry.position + entry.size_bytes
        batch = LegacyRecordBatch(made[entry.position : end], magic)
        assert batch.validate_crc()
        assert batch.compression_type == codec
        for each in batch:
            assert each.validate_crc()
            time_ms = -1 if each.timestamp is None else each.timestamp
            found.append(LegacyRecord(each.key, each.value, time_ms, each.offset, magic, False))
    assert found == as_read(moved, magic)
