"""Apache Kafka's own classes read the batches that odradek builds."""

from pathlib import Path

import pytest

from odradek.protocol.batch_header import read_header
from odradek.protocol.compression import CompressionType
from odradek.protocol.record import Record, read_records
from odradek.protocol.record_batch import build_batch
from tests.support.golden import BASE_TIME, golden_records, run_golden_program

pytestmark = pytest.mark.java

LARGE = [Record(b"k%d" % i, bytes(range(256)) * 20, BASE_TIME + i) for i in range(60)]


def test_kafka_reads_batches_of_every_codec(tmp_path: Path) -> None:
    expected = []
    for codec in CompressionType:
        for records in (golden_records(100), LARGE, [Record(None, None, -1)]):
            batch = bytes(
                build_batch(
                    records,
                    base_offset=77,
                    partition_leader_epoch=5,
                    compression=codec,
                    producer_id=9,
                    producer_epoch=1,
                    base_sequence=2**31 - 2,
                    is_transactional=True,
                )
            )
            path = tmp_path / f"{len(expected)}.bin"
            path.write_bytes(batch)
            expected.append((path, batch))
    printed = run_golden_program("read", *(str(path) for path, _ in expected)).splitlines()
    assert printed == [line for _, batch in expected for line in lines_of(batch)]


def test_kafka_sees_log_append_time(tmp_path: Path) -> None:
    batch = bytes(build_batch(golden_records(3), log_append_time_ms=BASE_TIME + 9))
    (tmp_path / "batch").write_bytes(batch)
    printed = run_golden_program("read", str(tmp_path / "batch")).splitlines()
    assert printed == lines_of(batch)
    assert "LogAppendTime" in printed[0]


def lines_of(batch: bytes) -> list[str]:
    """The lines that GoldenFiles.java prints for a batch."""
    header = read_header(batch)
    kind = "LogAppendTime" if header.is_log_append_time else "CreateTime"
    fields = [
        "batch", header.base_offset, header.last_offset, header.compression.name.lower(), kind,
        header.max_timestamp, header.producer_id, header.producer_epoch, header.base_sequence,
        header.last_sequence, str(header.is_transactional).lower(),
        str(header.is_control).lower(), header.partition_leader_epoch,
    ]  # fmt: skip
    return [" ".join(map(str, fields)), *map(line_of, read_records(batch))]


def line_of(record: Record) -> str:
    fields = ["record", str(record.offset), str(record.timestamp_ms)]
    fields += [shown(record.key), shown(record.value)]
    fields += [f"{shown(name.encode())}={shown(value)}" for name, value in record.headers]
    return " ".join(fields)


def shown(data: bytes | None) -> str:
    return "null" if data is None else "x" + data.hex()
