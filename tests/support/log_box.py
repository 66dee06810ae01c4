"""One partition log in a directory of its own, to be opened, killed and opened again."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from odradek.config.topic_config import TopicConfig
from odradek.protocol.batch_header import read_header
from odradek.protocol.compression import CompressionType
from odradek.protocol.record import Record, read_records
from odradek.protocol.record_batch import build_batch
from odradek.storage.deletions import Deletions
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.recovering.log_source import LogSource
from tests.support.timer import Timer

NOW_MS = 1_700_000_000_000
TOPIC = "orders"


class LogBox:
    """The log `orders-0` below `root`. Settings are TopicConfig's; `segment_bytes` may be tiny."""

    def __init__(self, root: Path, *, files: Files | None = None, **settings: Any) -> None:
        self.directory = root / f"{TOPIC}-0"
        self.files = files or Files()
        self.timer = Timer()
        self.deletions = Deletions(self.timer)
        self.reports: list[str] = []
        if "segment_bytes" in settings:
            settings["internal_segment_bytes"] = settings.pop("segment_bytes")
        self.config = TopicConfig(**settings)

    def open(
        self,
        *,
        clean: bool = True,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        now_ms: int = NOW_MS,
        validate_records: bool = False,
    ) -> PartitionLog:
        source = LogSource(
            files=self.files,
            directory=self.directory,
            config=self.config,
            now_ms=now_ms,
            had_clean_shutdown=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            producer_id_expiration_ms=86_400_000,
            deletions=self.deletions,
            report=self.reports.append,
        )
        return PartitionLog.open(source, TOPIC, 0, validate_records=validate_records)

    def path(self, base_offset: int, suffix: str) -> Path:
        """A file of the segment that begins there."""
        return self.directory / f"{base_offset:020d}{suffix}"

    def names(self, suffix: str = "") -> list[str]:
        """The files that end so."""
        return sorted(path.name for path in self.directory.iterdir() if path.name.endswith(suffix))

    def tear(self, data: bytes) -> None:
        """Bytes behind the last batch, as a write that was cut short by a crash leaves them."""
        with (self.directory / self.names(".log")[-1]).open("ab") as file:
            file.write(data)


def batch_of(
    *values: bytes,
    key: bytes | None = b"k",
    timestamps: Sequence[int] = (),
    compression: CompressionType = CompressionType.NONE,
    producer: tuple[int, int, int] = (-1, -1, -1),
    **fields: Any,
) -> bytes:
    """A client's batch; `producer` is id, epoch and first sequence."""
    stamps = list(timestamps) or [NOW_MS] * len(values)
    records = [
        Record(key, value, stamp, offset=index)
        for index, (value, stamp) in enumerate(zip(values, stamps, strict=True))
    ]
    producer_id, epoch, sequence = producer
    return bytes(
        build_batch(
            records,
            compression=compression,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            **fields,
        )
    )


def put(log: PartitionLog, *values: bytes, now_ms: int = NOW_MS, **fields: Any) -> int:
    """Append one batch of these values; the offset of the first."""
    return log.append(batch_of(*values, **fields), now_ms=now_ms).base_offset


def read_slice(log: PartitionLog, offset: int, max_bytes: int = 1 << 20) -> bytes:
    """The bytes that a Fetch at `offset` would get."""
    piece = log.read(offset, max_bytes, at_least_one_batch=True)
    return os.pread(piece.file.fd, piece.size_bytes, piece.position)


def split(data: bytes) -> list[bytes]:
    """Whole batches, and nothing else, lie behind each other in `data`."""
    batches = []
    while data:
        size = read_header(data).size_bytes
        assert len(data) >= size, "a batch is cut"
        batches.append(data[:size])
        data = data[size:]
    return batches


def records_from(
    log: PartitionLog, offset: int | None = None, max_bytes: int = 1 << 20
) -> list[Record]:
    """All records from `offset` (the log start) on, as a consumer would fetch them."""
    offset = log.log_start_offset if offset is None else offset
    records: list[Record] = []
    while batches := split(read_slice(log, offset, max_bytes)):
        for batch in batches:
            records += [each for each in read_records(batch) if each.offset >= offset]
        offset = read_header(batches[-1]).last_offset + 1
    assert offset == log.log_end_offset
    return records


def values_from(log: PartitionLog, offset: int | None = None) -> list[bytes | None]:
    """The values of `records_from`."""
    return [record.value for record in records_from(log, offset)]
