"""Workloads that start a broker on a directory with data: odradek, and Apache Kafka beside it.

Both get copies of one directory, which odradek has written and was killed over, and are started in
turns. Apache Kafka takes part where its jars and Java are at hand.
"""

import shutil
import statistics
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.bench.over_the_wire import GB, NOW_MS, now
from tests.conformance.exchange.house import House
from tests.support.broker_process import BrokerProcess
from tests.support.bystander import produce_request
from tests.support.java_tools import why_no_java
from tests.support.process_tree import PeakMemory
from tests.support.topics import create_topic
from tests.support.wire import ConnectionEndedError, WireClient, request_frame

TOPIC = "bench"
PRODUCE_VERSION = 9
LIST_OFFSETS_VERSION = 5
LATEST = -1
IN_FLIGHT = 8
LIMIT_SECONDS = 600.0
SETTINGS = {"log.retention.ms": "-1"}
# Of these the two brokers know nothing after a crash: each batch is read.
LOST = ("recovery-point-offset-checkpoint", ".kafka_cleanshutdown")
Figures = dict[str, float]


def recovery(scratch: Path, rounds: int, share: int) -> Figures:
    """2 GiB in four partitions, in batches of 16 KiB of an idempotent producer, killed."""
    house = written(scratch / "recovery", partitions=4, total_bytes=2 * GB // share)
    forget(house)
    return compared(house, partitions=4, rounds=rounds, before=forget)


def recovery_of_small_batches(scratch: Path, rounds: int, share: int) -> Figures:
    """A quarter of that, in batches of one record of 1 KiB: what a batch costs."""
    house = written(scratch / "small", partitions=4, total_bytes=GB // 2 // share, batch_bytes=1024)
    forget(house)
    return compared(house, partitions=4, rounds=rounds, before=forget)


def open_partitions(scratch: Path, rounds: int, share: int) -> Figures:
    """2,000 partitions with a few records each, after a clean stop and after a kill."""
    count = 2_000 // share
    house = written(scratch / "many", partitions=count, total_bytes=count * 10 * 1024)
    figures: Figures = {}
    for name, before in (("clean", lambda house: None), ("unclean", forget)):
        found = compared(
            house, partitions=count, rounds=rounds, before=before, clean=name == "clean"
        )
        figures |= {f"{name}_{figure}": value for figure, value in found.items()}
    return figures


def written(
    directory: Path, *, partitions: int, total_bytes: int, batch_bytes: int = 16_384
) -> House:
    """A directory that odradek has filled; it was stopped cleanly."""
    house = House(directory, **SETTINGS)
    each = max(1, min(batch_bytes, total_bytes // partitions))
    with house.lived_in("odradek", killed=False) as broker:
        create_topic(broker.bootstrap, TOPIC, partitions)
        _fill(broker, partitions, total_bytes // partitions // each, each)
    return house


def _fill(broker: BrokerProcess, partitions: int, batches: int, batch_bytes: int) -> None:
    count = max(1, batch_bytes // 1024)
    records = [Record(key=None, value=bytes(batch_bytes // count), timestamp_ms=NOW_MS)] * count
    with WireClient(broker.port) as client:
        for number in range(batches):
            batch = bytes(
                build_batch(records, producer_id=1, producer_epoch=0, base_sequence=number * count)
            )
            request = produce_request(TOPIC, batch, partitions=partitions)
            client.send(request_frame(request, PRODUCE_VERSION, 1, "bench"))
            if number >= IN_FLIGHT:
                client.read_frame()
        for _ in range(min(IN_FLIGHT, batches)):
            client.read_frame()


def forget(house: House) -> None:
    """Make the last stop look like a crash before anything was synced."""
    for name in LOST:
        (house.data / name).unlink(missing_ok=True)


def compared(
    house: House,
    *,
    partitions: int,
    rounds: int,
    before: Callable[[House], None],
    clean: bool = False,
) -> Figures:
    """Medians of starting each broker on a copy of its own."""
    names = ["odradek"] + ([] if why_no_java() else ["kafka"])
    houses = {}
    for name in names:
        copy = house.directory.with_name(f"{house.directory.name}-{name}")
        shutil.copytree(house.directory, copy)
        houses[name] = House(copy, **SETTINGS)
    found: dict[str, list[Figures]] = {name: [] for name in names}
    for _ in range(rounds):
        for name, mine in houses.items():
            before(mine)
            broker = mine.kafka() if name == "kafka" else mine.odradek()
            found[name].append(_start(broker, partitions, clean=clean))
    for mine in houses.values():
        shutil.rmtree(mine.directory)
    return {
        f"{name}_{figure}": statistics.median(each[figure] for each in figures)
        for name, figures in found.items()
        for figure in figures[0]
    }


def _start(broker: BrokerProcess, partitions: int, *, clean: bool) -> Figures:
    """Seconds to the first answer, and until each partition tells where it ends."""
    started = now()
    broker.start_without_waiting()
    try:
        with peak_memory(broker) as peak:
            broker.wait_until_ready(LIMIT_SECONDS)
            ready = now() - started
            _wait_for_partitions(broker, partitions)
            served = now() - started
        if clean:
            broker.terminate()
    finally:
        if broker.is_running:
            broker.kill()
    return {"ready_s": ready, "all_served_s": served, "peak_MB": peak.bytes / 2**20}


def _wait_for_partitions(broker: BrokerProcess, partitions: int) -> None:
    wanted = [
        ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in range(partitions)
    ]
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=TOPIC, partitions=wanted)]
    )
    deadline = now() + LIMIT_SECONDS
    while now() < deadline:
        try:
            with WireClient(broker.port) as client:
                while now() < deadline:
                    answer = client.ask(request, ListOffsetsResponse, LIST_OFFSETS_VERSION)
                    if all(each.error_code == 0 for each in answer.topics[0].partitions):
                        return
                    threading.Event().wait(0.01)
        except ConnectionEndedError:
            continue
    raise TimeoutError(f"{broker.name} does not serve all partitions")


@contextmanager
def peak_memory(broker: BrokerProcess) -> Iterator[PeakMemory]:
    """The most anonymous memory that it and its children have while the `with` lasts."""
    peak = PeakMemory(broker.pid)
    peak.start()
    try:
        yield peak
    finally:
        peak.end()


WORKLOADS: dict[str, Callable[[Path, int, int], Figures]] = {
    work.__name__: work for work in (recovery, recovery_of_small_batches, open_partitions)
}
