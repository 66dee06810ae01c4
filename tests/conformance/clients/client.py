"""What a test asks of a client, whatever the client calls it.

Offsets, timestamps and positions are plain integers here, partitions are numbers of one topic.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

READ_SECONDS = 30.0
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

Header = tuple[str, bytes | None]


class Sent(NamedTuple):
    """A record as a test wants it written."""

    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    timestamp_ms: int = 1_700_000_000_000
    headers: tuple[Header, ...] = ()


class Got(NamedTuple):
    """A record as a client read it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[Header, ...]

    def as_sent(self) -> Sent:
        """What was written, when it came through unharmed."""
        return Sent(self.value, self.key, self.partition, self.timestamp_ms, self.headers)


class TooFewRecordsError(AssertionError):
    """A reader waited in vain."""


class Reader(Protocol):
    """A consumer that reads partitions of one topic which it names itself."""

    def read(self, count: int) -> list[Got]:
        """The next `count` records; raises TooFewRecordsError after READ_SECONDS."""

    def seek(self, partition: int, offset: int) -> None:
        """Read on from there."""

    def seek_to_beginning(self) -> None:
        """Read on from the first record of every partition."""

    def seek_to_end(self) -> None:
        """Read on behind the last record of every partition."""

    def position(self, partition: int) -> int:
        """The offset that is read next."""

    def commit(self, partition: int, offset: int, metadata: str) -> None:
        """Commit, and wait for the answer."""

    def committed(self, partition: int) -> tuple[int, str] | None:
        """The group's offset and its metadata."""

    def offsets_for_times(self, times_ms: Mapping[int, int]) -> dict[int, int | None]:
        """By partition, the first offset whose record is not older than the time."""

    def beginning_and_end(self, partition: int) -> tuple[int, int]:
        """Log start offset and high watermark."""

    def close(self) -> None:
        """Leave."""


class Client(Protocol):
    """One of the libraries."""

    name: str

    def produce(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Sent],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = True,
    ) -> list[int]:
        """Write the records; their offsets (-1 where acks=0 lets nobody know)."""

    def reader(
        self, bootstrap: str, topic: str, partitions: Sequence[int], group: str | None = None
    ) -> Reader:
        """A reader of these partitions: from the group's offsets, else from the beginning."""
