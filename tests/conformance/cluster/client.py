"""What a script of failures asks of a client library. Values and error names have no spaces."""

from dataclasses import dataclass
from typing import Protocol

LIMIT_SECONDS = 60.0
POLL_SECONDS = 0.2
POLL_RECORDS = 50
REQUEST_MS = 30_000


class NotThereError(Exception):
    """The library does not have what it was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    """Of an idempotent producer with acks=all."""

    bootstrap: str
    client: str = "producer"
    transactional_id: str | None = None
    retries: int | None = None  # None: until the library's own limit, which is long
    timeout_ms: int | None = None  # of one request


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """Of a member that reads committed records, from the first one of each partition."""

    bootstrap: str
    group: str
    topic: str
    client: str = "consumer"
    rack: str | None = None


class Producer(Protocol):
    """Idempotent, with acks=all; one with a transactional id has begun its session."""

    def send(self, topic: str, partition: int, value: str) -> None:
        """Send without waiting."""

    def flush(self) -> list[str]:
        """Wait for what was sent; the names of the errors of what was not delivered."""

    def begin(self) -> None:
        """Begin a transaction."""

    def offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        """Commit an offset in the transaction."""

    def commit(self) -> None:
        """Commit it; the library, or this class, tries again where the error allows it."""

    def abort(self) -> None:
        """Abort it."""

    def close(self) -> None:
        """End it."""


class Consumer(Protocol):
    """A member of a group, or of a share group: then it accepts what it polls."""

    def poll(self) -> list[str]:
        """Some values, or none."""

    def commit(self) -> None:
        """Commit what was read, or acknowledge it."""

    def close(self) -> None:
        """Leave the group."""


class Library(Protocol):
    """Makes them. What it does not have raises NotThereError."""

    def why_not(self) -> str | None:
        """Why it cannot run here, or None."""

    def producer(self, settings: ProducerSettings) -> Producer:
        """A producer."""

    def consumer(self, settings: ConsumerSettings) -> Consumer:
        """A member of a group."""

    def share_consumer(self, settings: ConsumerSettings) -> Consumer:
        """A member of a share group."""
