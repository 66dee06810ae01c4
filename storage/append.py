"""Parameters and results of PartitionLog.append.

The first 16 bytes of a batch are its base offset, length and leader epoch. The log assigns the
offset and the epoch, so it writes these bytes itself. The CRC does not cover them, so all other
bytes can be written as they were received.
"""

from enum import Enum, auto

from msgspec import Struct


class AppendOrigin(Enum):
    """Who appends. This decides how much is checked.

    A CLIENT's batch is fully checked. A COORDINATOR is a part of this broker; its batch may be a
    control batch.
    """

    CLIENT = auto()
    COORDINATOR = auto()


class AppendResult(Struct, frozen=True, gc=False):
    """Where the records are stored. For a duplicate, where they were appended the first time."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int  # -1: the producer's timestamps are kept
    log_start_offset: int
    is_duplicate: bool = False


class EndMarker(Struct, frozen=True, gc=False):
    """A marker that ends a producer's transaction in one log.

    `transaction_version` 2 or higher means that the marker's epoch is higher than that of the
    transaction's batches (KIP-890). It is not stored: a marker that is read has 0.
    """

    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int
    transaction_version: int = 0
