"""What a producer feels of two others that write as fast as the disk does, and faster.

One of them writes to a topic that is synced every 64 MiB. The other writes without, until the
kernel throttles who makes pages dirty. Segments are small, so that there are rolls all the time;
retention deletes what is old, so that the disk does not fill up.
"""

import multiprocessing
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path

from tests.bench.compaction import round_trips
from tests.bench.figures import Figures, Results, latencies
from tests.bench.over_the_wire import batch_of, pipelined, produce_frame
from tests.bench.swarm import now
from tests.bench.two_brokers import in_turns, new_topic, running
from tests.support.broker_process import BrokerProcess
from tests.support.wire import WireClient

BATCH_BYTES = 1 << 19
SECONDS = 30.0
DIRTYING_SECONDS = 15.0  # until the kernel throttles, on the usual disk
ROLLED = {"segment.bytes": str(64 << 20), "retention.bytes": str(4 << 30)}
SYNCED = {**ROLLED, "flush.messages": str((64 << 20) // 1024)}
SETTINGS = {"log.retention.check.interval.ms": "1000", "log.segment.delete.delay.ms": "0"}
JOIN_S = 60.0


def beside_writers(scratch: Path, rounds: int, share: int) -> Results:
    """One record a millisecond, acks=all, beside two that write at the disk's limit."""

    def measure(broker: BrokerProcess) -> Figures:
        with (
            new_topic(broker) as topic,
            new_topic(broker, 1, ROLLED) as plain,
            new_topic(broker, 1, SYNCED) as synced,
            _writing(broker, plain),
            _writing(broker, synced),
        ):
            time.sleep(DIRTYING_SECONDS)
            until = now() + SECONDS / share
            trips = round_trips(broker, topic, lambda: now() < until)
            return latencies(trips) | {"dirty_percent_of_limit": dirty_percent()}

    with running(scratch, SETTINGS, {}) as brokers:
        return in_turns(brokers, rounds, measure, warm_rounds=0)


@contextmanager
def _writing(broker: BrokerProcess, topic: str) -> Iterator[None]:
    """A process that writes to a topic."""
    context = multiprocessing.get_context("fork")
    process = context.Process(target=_write, args=(broker.port, topic))
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join(JOIN_S)


def _write(port: int, topic: str) -> None:
    os.nice(10)  # so that the measured producer need not wait for this client itself
    frame = produce_frame(topic, 1, batch_of(BATCH_BYTES, BATCH_BYTES // 1024), 1)
    with WireClient(port, timeout_s=JOIN_S) as client:
        pipelined(client, repeat(frame))


def dirty_percent() -> float:
    """Pages that wait for the disk, as a part of those from which on the kernel throttles."""
    lines = Path("/proc/vmstat").read_text().splitlines()
    pages = {name: int(count) for name, count in map(str.split, lines)}
    waiting = pages["nr_dirty"] + pages["nr_writeback"]
    return 100 * waiting / pages["nr_dirty_threshold"]


WORKLOADS = {"beside_writers": beside_writers}
