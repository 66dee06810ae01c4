"""Workloads that start odradek and Apache Kafka in turns.

In `recovery` both get copies of one directory, which odradek has written and was killed over. In
the others each has its own, and lives through all rounds.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.bench.figures import KAFKA, ODRADEK, Figures, Results, compared
from tests.bench.over_the_wire import GB, NOW_MS, batch_of, pipelined, produce_frame
from tests.bench.swarm import now
from tests.bench.two_brokers import SETTLE_S, await_topic, both, in_turns, running
from tests.conformance.exchange.shared_directory import SharedDirectory
from tests.support.broker_process import BrokerProcess
from tests.support.java_tools import why_no_java
from tests.support.process_tree import PeakMemory
from tests.support.topics import create_topic
from tests.support.wire import WireClient

TOPIC = "bench"
LIMIT_SECONDS = 600.0
LOADED_SECONDS = 3.0
SETTINGS = {"log.retention.ms": "-1"}
# Of these the two brokers know nothing after a crash: each batch is read.
LOST = ("recovery-point-offset-checkpoint", ".kafka_cleanshutdown")


def start_empty(scratch: Path, rounds: int, share: int) -> Results:
    """From a broker's start to its first answer, without topics; its memory two seconds later."""
    with ExitStack() as stack:
        brokers = both(scratch / "empty", SETTINGS)
        for broker in brokers.values():
            stack.callback(broker.stop)
            broker.start()  # makes its directory
        return in_turns(brokers, rounds, _restarted, warm_rounds=0)


def _restarted(broker: BrokerProcess) -> Figures:
    broker.terminate()
    ready_s = _started(broker)
    time.sleep(SETTLE_S)
    return {"ready_s": ready_s, "memory_MB": broker.memory_bytes() / 2**20}


def _started(broker: BrokerProcess) -> float:
    """Start it; the seconds until its first answer."""
    began = now()
    broker.start_without_waiting()
    broker.wait_until_ready(LIMIT_SECONDS)
    return now() - began


def start_2000_partitions(scratch: Path, rounds: int, share: int) -> Results:
    """The same with 2,000 partitions: after a clean stop, and after a kill -9 under load."""
    count = 2_000 // share
    with running(scratch, SETTINGS, {TOPIC: count}) as brokers:
        return in_turns(brokers, rounds, partial(_both_starts, partitions=count), warm_rounds=0)


def _both_starts(broker: BrokerProcess, partitions: int) -> Figures:
    figures = {f"clean_{name}": value for name, value in _restarted(broker).items()}
    await_topic(broker, TOPIC, partitions)
    _kill_under_load(broker, partitions)
    return figures | {"killed_ready_s": _started(broker)}


def _kill_under_load(broker: BrokerProcess, partitions: int) -> None:
    """Kill it while it has a request that it has not answered."""
    frame = produce_frame(TOPIC, partitions, batch_of(1024, 1), 1)
    until = now() + LOADED_SECONDS
    with WireClient(broker.port, timeout_s=LIMIT_SECONDS) as client:
        client.send(frame)
        while now() < until:
            client.read_frame()
            client.send(frame)
        broker.kill()


def recovery(scratch: Path, rounds: int, share: int) -> Results:
    """2 GiB in four partitions, in batches of 16 KiB of an idempotent producer, killed."""
    shared = written(scratch / "recovery", partitions=4, total_bytes=2 * GB // share)
    return recovered(shared, partitions=4, rounds=rounds)


def recovery_of_small_batches(scratch: Path, rounds: int, share: int) -> Results:
    """A quarter of that, in batches of one record of 1 KiB: what a batch costs."""
    shared = written(
        scratch / "small", partitions=4, total_bytes=GB // 2 // share, batch_bytes=1024
    )
    return recovered(shared, partitions=4, rounds=rounds)


def written(
    directory: Path, *, partitions: int, total_bytes: int, batch_bytes: int = 16_384
) -> SharedDirectory:
    """A directory that odradek has filled; it was stopped cleanly."""
    shared = SharedDirectory(directory, **SETTINGS)
    each = max(1, min(batch_bytes, total_bytes // partitions))
    with shared.served_by("odradek", killed=False) as broker:
        create_topic(broker.bootstrap, TOPIC, partitions)
        _fill(broker, partitions, total_bytes // partitions // each, each)
    return shared


def _fill(broker: BrokerProcess, partitions: int, batches: int, batch_bytes: int) -> None:
    count = max(1, batch_bytes // 1024)
    records = [Record(key=None, value=bytes(batch_bytes // count), timestamp_ms=NOW_MS)] * count

    def frame(number: int) -> bytes:
        batch = build_batch(records, producer_id=1, producer_epoch=0, base_sequence=number * count)
        return produce_frame(TOPIC, partitions, bytes(batch), -1)

    with WireClient(broker.port) as client:
        pipelined(client, map(frame, range(batches)))


def forget(shared: SharedDirectory) -> None:
    """Make the last stop look like a crash before anything was synced."""
    for name in LOST:
        (shared.data / name).unlink(missing_ok=True)


def recovered(shared: SharedDirectory, *, partitions: int, rounds: int) -> Results:
    """Starts of each broker on a copy of its own."""
    names = [ODRADEK] + ([] if why_no_java() else [KAFKA])
    houses = {}
    for name in names:
        copy = shared.directory.with_name(f"{shared.directory.name}-{name}")
        shutil.copytree(shared.directory, copy)
        houses[name] = SharedDirectory(copy, **SETTINGS)
    found: dict[str, list[Figures]] = {name: [] for name in names}
    for _ in range(rounds):
        for name, mine in houses.items():
            forget(mine)
            broker = mine.kafka() if name == KAFKA else mine.odradek()
            try:
                found[name].append(_start(broker, partitions))
            finally:
                if broker.is_running:
                    broker.kill()
    for mine in houses.values():
        shutil.rmtree(mine.directory)
    return compared(found)


def _start(broker: BrokerProcess, partitions: int) -> Figures:
    """Seconds to the first answer, and until each partition tells where it ends."""
    started = now()
    broker.start_without_waiting()
    with peak_memory(broker) as peak:
        broker.wait_until_ready(LIMIT_SECONDS)
        ready = now() - started
        await_topic(broker, TOPIC, partitions)
        served = now() - started
    return {"ready_s": ready, "all_served_s": served, "peak_MB": peak.bytes / 2**20}


@contextmanager
def peak_memory(broker: BrokerProcess) -> Iterator[PeakMemory]:
    """The most anonymous memory that it and its children have while the `with` lasts."""
    peak = PeakMemory(broker.pid)
    peak.start()
    try:
        yield peak
    finally:
        peak.end()


WORKLOADS: dict[str, Callable[[Path, int, int], Results]] = {
    work.__name__: work for work in (recovery, recovery_of_small_batches)
}
IN_TABLE: dict[str, Callable[[Path, int, int], Results]] = {
    work.__name__: work for work in (start_empty, start_2000_partitions)
}
