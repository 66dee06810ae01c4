"""What goes into an append and what comes out of it; the append itself is PartitionLog's."""

from enum import Enum, auto
from typing import NamedTuple

from odradek.protocol.batch_header import BatchHeader
from odradek.protocol.compression import Buffer


class AppendOrigin(Enum):
    """Who appends: it decides what is checked and who gave the offsets."""

    CLIENT = auto()  # one batch of a producer, checked in full
    COORDINATOR = auto()  # batches of this broker, control batches too; offsets are assigned
    REPLICA = auto()  # batches that carry their offsets and leader epochs already


class AppendResult(NamedTuple):
    """Where the records are now. A duplicate was appended before, then."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int  # -1: the producer's timestamps count
    log_start_offset: int
    is_duplicate: bool = False


class PendingBatch(NamedTuple):
    """A batch to be written: the offset and epoch it gets, and its bytes behind the first 16."""

    base_offset: int
    leader_epoch: int
    header: BatchHeader
    parts: tuple[Buffer, ...]

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.header.last_offset_delta + 1
