"""kafka-python's batches are read, and it reads ours: a second implementation of the format."""

import pytest
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from odradek.protocol.batch_header import check_crc, read_header
from odradek.protocol.compression import CompressionType
from odradek.protocol.record import Record, read_records
from odradek.protocol.record_batch import build_batch
from tests.support.golden import BASE_TIME

RECORDS = [
    Record(b"k%d" % i, b"value" * (i % 50), BASE_TIME + i, (("h", b"x"),), i) for i in range(300)
]


@pytest.mark.parametrize("codec", CompressionType)
def test_a_batch_of_kafka_python_is_read(codec: CompressionType) -> None:
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=codec, is_transactional=0, producer_id=-1, producer_epoch=-1,
        base_sequence=-1, batch_size=1 << 20,
    )  # fmt: skip
    for record in RECORDS:
        builder.append(
            record.offset, record.timestamp_ms, record.key, record.value, list(record.headers)
        )
    batch = bytes(builder.build())
    header = read_header(batch)
    check_crc(batch, header)
    assert header.compression is codec
    assert list(read_records(batch)) == RECORDS


@pytest.mark.parametrize("codec", CompressionType)
def test_kafka_python_reads_our_batch(codec: CompressionType) -> None:
    batch = DefaultRecordBatch(bytes(build_batch(RECORDS, compression=codec)))
    assert batch.validate_crc()
    found = [
        Record(each.key, each.value, each.timestamp, tuple(each.headers), each.offset)
        for each in batch
    ]
    assert found == RECORDS
