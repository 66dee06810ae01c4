"""What a member says, and when it is to end."""

import argparse
import json
import signal
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from types import FrameType
from typing import NamedTuple, Protocol

SESSION_TIMEOUT_MS = 3000
HEARTBEAT_INTERVAL_MS = 300
METADATA_MAX_AGE_MS = 500  # new topics and partitions are seen soon


class Partition(Protocol):
    """Every client's TopicPartition."""

    topic: str
    partition: int


class Arguments(NamedTuple):
    """The command line of a member."""

    bootstrap: str
    topic: str
    group: str
    instance: str | None
    protocol: str
    assignor: str | None
    session_timeout_ms: int

    @property
    def is_pattern(self) -> bool:
        """Whether the topic is an expression."""
        return self.topic.startswith("^")


def arguments() -> Arguments:
    """Read the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("topic")
    parser.add_argument("group")
    parser.add_argument("--instance", help="makes it a static member")
    parser.add_argument("--protocol", default="classic", help="or: consumer (KIP-848)")
    parser.add_argument("--assignor", help="a client's, or by the consumer protocol the broker's")
    parser.add_argument("--session-timeout-ms", type=int, default=SESSION_TIMEOUT_MS)
    return Arguments(**vars(parser.parse_args()))


class Stop:
    """Set by SIGTERM."""

    def __init__(self) -> None:
        self.requested = False
        signal.signal(signal.SIGTERM, self._request)

    def _request(self, number: int, frame: FrameType | None) -> None:
        self.requested = True


def say(name: str, **fields: object) -> None:
    """Write one event."""
    sys.stdout.write(json.dumps({"name": name, "timestamp": now_ms(), **fields}) + "\n")
    sys.stdout.flush()


def say_assigned(partitions: Iterable[Partition]) -> None:
    """The member owns these partitions, beside those that it has."""
    say("partitions_assigned", partitions=_places(partitions))


def say_revoked(partitions: Iterable[Partition]) -> None:
    """The member gives these partitions up."""
    say("partitions_revoked", partitions=_places(partitions))


def say_consumed(offsets: Mapping[Partition, Sequence[int]]) -> None:
    """One poll gave these offsets of each partition."""
    summaries = [
        {
            "topic": at.topic,
            "partition": at.partition,
            "count": len(found),
            "minOffset": found[0],
            "maxOffset": found[-1],
        }
        for at, found in offsets.items()
    ]
    for found in offsets.values():
        assert list(found) == sorted(found), f"out of order: {found}"
    count = sum(len(found) for found in offsets.values())
    say("records_consumed", count=count, partitions=summaries)


def now_ms() -> float:
    """The time of an event."""
    return time.time() * 1000


def say_committed(
    offsets: Mapping[Partition, int], asked_ms: float, error: Exception | None
) -> None:
    """A commit that was asked for at that time was answered."""
    places = [
        {"topic": at.topic, "partition": at.partition, "offset": offset}
        for at, offset in offsets.items()
    ]
    fields = {} if error is None else {"error": repr(error)}
    say("offsets_committed", asked=asked_ms, offsets=places, success=error is None, **fields)


def _places(partitions: Iterable[Partition]) -> list[dict[str, object]]:
    return [{"topic": at.topic, "partition": at.partition} for at in partitions]
