"""Half of the load that a broker can serve, for an hour: `python -m tests.bench.soak [MINUTES]`.

Producers with a connection each send records at a fixed pace, consumers follow the end of the log,
and clients come and go. Each minute has its rate, memory, open files and the p99 of the producers'
round trips. `complaints` says which of them grow. `make long` runs the same as a test.
"""

import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from odradek.protocol.messages.fetch import FetchResponse
from tests.bench.figures import latencies
from tests.bench.over_the_wire import batch_of, partition_frame
from tests.bench.swarm import Swarm, now
from tests.bench.two_brokers import allow_files, await_topic
from tests.support.broker_process import BrokerProcess, running_broker
from tests.support.stored_batches import FETCH_VERSION, fetch_request, fetched, next_offset
from tests.support.topics import create_topic
from tests.support.wire import WireClient, request_frame

TOPIC = "soak"
PARTITIONS = 6
PRODUCERS = 100
CONSUMERS = 12
MEASURE_SECONDS = 10.0
OPEN_FILES = 4096
NEWCOMERS_PER_SECOND = 20.0
# Segments are rolled and removed all the time.
SETTINGS = {
    "log.segment.bytes": str(8 << 20),
    "log.retention.bytes": str(32 << 20),
    "log.retention.check.interval.ms": "5000",
    "log.segment.delete.delay.ms": "1000",
}
FETCH_BYTES = 1 << 20
WAIT_MS = 500
MIB = 2**20


class Minute(Struct, frozen=True):
    """What was measured in one minute."""

    records_per_s: float
    memory_mb: float
    open_files: int
    p99_ms: float


class Producer:
    """Sends a record when the last one is acknowledged, at most once in `interval_s`."""

    def __init__(self, swarm: Swarm, port: int, frame: bytes, trips_us: list[float]) -> None:
        self.interval_s = 0.0
        self._swarm = swarm
        self._peer = swarm.connect(port, self._acknowledged)
        self._frame = frame
        self._trips_us = trips_us
        self._due_s = 0.0

    def begin(self, at_s: float) -> None:
        """Send the first record at that time."""
        self._due_s = at_s
        self._swarm.call_at(at_s, self._send)

    def _send(self) -> None:
        self._peer.send(self._frame)

    def _acknowledged(self, _: bytes) -> None:
        self._trips_us.append((now() - self._peer.sent_at) * 1e6)
        self._due_s = max(self._due_s + self.interval_s, now() - 1.0)  # no burst after a stall
        if self._due_s <= now():
            self._send()
        else:
            self._swarm.call_at(self._due_s, self._send)


class Consumer:
    """Follows the end of one partition."""

    def __init__(self, swarm: Swarm, port: int, partition: int) -> None:
        self._peer = swarm.connect(port, self._fetched)
        self._partition = partition
        self._offset = 0

    def fetch(self) -> None:
        """Ask for what comes next."""
        request = fetch_request(
            TOPIC, self._partition, self._offset, FETCH_BYTES, max_wait_ms=WAIT_MS
        )
        self._peer.send(request_frame(request, FETCH_VERSION, 1, "soak"))

    def _fetched(self, answer: bytes) -> None:
        response = FetchResponse.decode(answer[1:], FETCH_VERSION)
        if records := fetched(response):
            self._offset = next_offset(records)
        self.fetch()


def soak(
    broker: BrokerProcess,
    minutes: int,
    report: Callable[[int, Minute], None] = lambda number, minute: None,
    *,
    minute_s: float = 60.0,
) -> list[Minute]:
    """Load a running broker with half of what it serves. `report` gets each minute at its end."""
    allow_files(OPEN_FILES)
    create_topic(broker.bootstrap, TOPIC, PARTITIONS)
    await_topic(broker, TOPIC, PARTITIONS)
    trips_us: list[float] = []
    found = []
    with Swarm() as swarm:
        frames = [partition_frame(TOPIC, n, batch_of(100, 1)) for n in range(PARTITIONS)]
        producers = [
            Producer(swarm, broker.port, frames[n % PARTITIONS], trips_us) for n in range(PRODUCERS)
        ]
        consumers = [Consumer(swarm, broker.port, n % PARTITIONS) for n in range(CONSUMERS)]
        swarm.await_greetings()
        for consumer in consumers:
            consumer.fetch()
        for producer in producers:
            producer.begin(now())
        swarm.run_for(MEASURE_SECONDS)
        interval_s = 2 * PRODUCERS * MEASURE_SECONDS / len(trips_us)
        for producer in producers:
            producer.interval_s = interval_s
        _come_and_go(swarm, broker.port)
        for number in range(minutes):
            trips_us.clear()
            swarm.run_for(minute_s)
            found.append(_minute(broker, trips_us, minute_s))
            report(number, found[-1])
    return found


def _come_and_go(swarm: Swarm, port: int) -> None:
    """Open a connection and close it, again and again."""

    def one() -> None:
        with WireClient(port):
            pass
        swarm.call_at(now() + 1 / NEWCOMERS_PER_SECOND, one)

    one()


def _minute(broker: BrokerProcess, trips_us: Sequence[float], seconds: float) -> Minute:
    return Minute(
        records_per_s=len(trips_us) / seconds,
        memory_mb=broker.memory_bytes() / MIB,
        open_files=broker.open_files(),
        p99_ms=latencies(trips_us)["p99_us"] / 1000,
    )


def complaints(minutes: Sequence[Minute]) -> list[str]:
    """What grew: the last third of the minutes is compared with the third before it.

    Caches and pools are filled in the first third. A limit is the growth that noise can explain.
    """
    third = len(minutes) // 3
    if not third:
        return []
    earlier, later = minutes[-2 * third : -third], minutes[-third:]

    def middle(part: Sequence[Minute], figure: str) -> float:
        found: list[float] = [getattr(minute, figure) for minute in part]
        return statistics.median(found)

    found = []
    for figure, factor, addend in (
        ("memory_mb", 1.02, 1.0),
        ("open_files", 1.05, 10),
        ("p99_ms", 2.0, 10.0),
    ):
        before, after = middle(earlier, figure), middle(later, figure)
        if after > before * factor + addend:
            found.append(f"{figure} grew from {before:.1f} to {after:.1f}")
    before, after = middle(earlier, "records_per_s"), middle(later, "records_per_s")
    if after < before * 0.9:
        found.append(f"records_per_s fell from {before:.0f} to {after:.0f}")
    return found


def print_minute(number: int, minute: Minute) -> None:
    """Print one line."""
    print(
        f"{number + 1:4d} {minute.records_per_s:10.0f} {minute.memory_mb:10.1f} "
        f"{minute.open_files:10d} {minute.p99_ms:10.2f}",
        flush=True,
    )


def main() -> int:
    """Print each minute, and what grew; 1 if anything did."""
    minutes = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    print(f"{'min':>4} {'records/s':>10} {'MB':>10} {'files':>10} {'p99 ms':>10}")
    with (
        tempfile.TemporaryDirectory(prefix="soak-") as scratch,
        running_broker(Path(scratch), SETTINGS) as broker,
    ):
        found = complaints(soak(broker, minutes, print_minute))
    print("\n".join(found) or "nothing grew")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
