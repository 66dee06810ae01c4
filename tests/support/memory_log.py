"""A partition log in memory: what a journal needs of storage's PartitionLog, and no more."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

from odradek.protocol.any_batch import read_any_header
from odradek.protocol.batch_header import HEADER_BYTES, pack_header, read_header
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.log import AppendOrigin

MAX_MESSAGE_BYTES = 1_048_588


class MemoryLog:
    """Batches in a list. `fail_next` makes the next append raise, `failed` counts those that did;
    `fsyncs` counts flushes."""

    def __init__(
        self,
        topic: str = "__cluster_metadata",
        partition: int = 0,
        *,
        directory: Path = Path(),
        max_message_bytes: int = MAX_MESSAGE_BYTES,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.directory = directory
        self.config = SimpleNamespace(max_message_bytes=max_message_bytes)
        self.stored: list[bytes] = []
        self.log_start_offset = 0
        self.leader_epoch = 0
        self.fail_next: Exception | None = None
        self.failed = 0
        self.fsyncs = 0

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def log_end_offset(self) -> int:
        if not self.stored:
            return self.log_start_offset
        return read_header(self.stored[-1]).last_offset + 1

    @property
    def high_watermark(self) -> int:
        return self.log_end_offset

    def append(
        self, batch: bytes | memoryview, *, now_ms: int, origin: AppendOrigin
    ) -> SimpleNamespace:
        if self.fail_next is not None:
            error, self.fail_next = self.fail_next, None
            self.failed += 1
            raise error
        if len(batch) > self.config.max_message_bytes:
            raise ApiError(ErrorCode.MESSAGE_TOO_LARGE, f"{len(batch)} bytes")
        header = read_header(batch)
        assert header.size_bytes == len(batch), "one batch at a time"
        assert origin is AppendOrigin.COORDINATOR
        header = header._replace(
            base_offset=self.log_end_offset, partition_leader_epoch=self.leader_epoch
        )
        self.stored.append(pack_header(header) + bytes(batch)[HEADER_BYTES:])
        return SimpleNamespace(base_offset=header.base_offset, last_offset=header.last_offset)

    def increment_log_start_offset(self, offset: int) -> bool:
        """Remove the batches before an offset, as if each had a segment of its own."""
        if offset <= self.log_start_offset:
            return False
        assert offset <= self.high_watermark
        self.stored = [batch for batch in self.stored if read_header(batch).last_offset >= offset]
        self.log_start_offset = offset
        return True

    def batches(self, start_offset: int) -> Iterator[memoryview]:
        for batch in list(self.stored):
            if read_any_header(batch).last_offset >= start_offset:
                yield memoryview(batch)

    def become_leader(self, leader_epoch: int) -> None:
        self.leader_epoch = leader_epoch

    def flush(self, now_ms: int) -> None:
        self.fsyncs += 1
