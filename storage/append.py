"""Parameters and results of PartitionLog.append."""

from enum import Enum, auto
from typing import NamedTuple

from odradek.protocol.batch_header import BatchHeader
from odradek.protocol.compression import Buffer


class AppendOrigin(Enum):
    """Who appends. This decides what is checked and who assigns the offsets."""

    CLIENT = auto()  # one batch of a producer, fully checked
    COORDINATOR = (
        auto()
    )  # batches of this broker, including control batches; the log assigns offsets
    REPLICA = auto()  # batches that already have their offsets and leader epochs


class AppendResult(NamedTuple):
    """Where the records are stored. For a duplicate, where they were appended the first time."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int  # -1: the producer's timestamps are kept
    log_start_offset: int
    is_duplicate: bool = False


class PendingBatch(NamedTuple):
    """A batch to write: its assigned offset and epoch, and its bytes after the first 16."""

    base_offset: int
    leader_epoch: int
    header: BatchHeader
    parts: tuple[Buffer, ...]

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.header.last_offset_delta + 1
