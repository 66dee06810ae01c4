"""What worker processes gain and cost: one process beside 1 and 2 workers (odradek.workers).

Two clients, each a process, write to a partition of their own, and read it again. On four cores or
more they have the upper half of them, and the brokers the lower half. On fewer they share them:
then the throughput says little, and the CPU time what it always says.
"""

import multiprocessing
import os
from collections.abc import Callable, Mapping, Set
from contextlib import ExitStack
from itertools import repeat
from multiprocessing.synchronize import Barrier
from pathlib import Path

from odradek.storage.directories.log_share import LogShare
from tests.bench.figures import Figures, medians
from tests.bench.over_the_wire import GB, batch_of, partition_frame, pipelined
from tests.bench.two_brokers import LIMIT_S, Meter
from tests.support.broker_process import BrokerProcess
from tests.support.broker_with_workers import BrokerWithWorkers
from tests.support.process_tree import children_of
from tests.support.stored_batches import FETCH_VERSION, fetch_request
from tests.support.topics import create_topic
from tests.support.wire import WireClient, request_frame

TOPIC = "bench"
CLIENTS = 2
BATCH_BYTES = 65536
FETCH_BYTES = 1 << 20
READ_AGAIN = 8  # a fetched byte costs little
CORES_TO_DIVIDE = 4
PROCESSES = multiprocessing.get_context("spawn")
Work = Callable[[WireClient, int, int], None]


def with_workers(scratch: Path, rounds: int, share: int) -> Figures:
    """Produce of 64 KiB and fetches of 1 MiB by two clients: one process, 1 worker, 2 workers."""
    found: list[Figures] = []
    for number in range(rounds):
        figures: Figures = {}
        for workers in range(3):
            directory = scratch / f"with-{workers}-workers-{number}"
            for name, value in _figures(directory, workers, GB // share).items():
                figures[f"{workers}_workers_{name}"] = value
        found.append(figures)
    return medians(found)


def _figures(directory: Path, workers: int, size_bytes: int) -> Figures:
    broker = BrokerWithWorkers(directory, workers) if workers else BrokerProcess(directory)
    ports = [broker.port] * CLIENTS
    if isinstance(broker, BrokerWithWorkers):
        share = LogShare(0, workers)
        ports = [broker.port_of(share.owner(TOPIC, index)) for index in range(CLIENTS)]
    figures: Figures = {}
    with ExitStack() as stack:
        stack.callback(broker.stop)
        create_topic(broker.start().bootstrap, TOPIC, CLIENTS)
        for pid in (broker.pid, *children_of(broker.pid)):
            os.sched_setaffinity(pid, _cores(of_clients=False))
        works: Mapping[str, tuple[Work, int]] = {"produce": (write, 1), "fetch": (read, READ_AGAIN)}
        for name, (work, times) in works.items():
            for figure, value in _measured(broker, ports, work, times * size_bytes).items():
                figures[f"{name}_{figure}"] = value
    return figures


def _cores(*, of_clients: bool) -> Set[int]:
    """The cores of the clients, or of the broker."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < CORES_TO_DIVIDE:
        return set(cores)
    half = len(cores) // 2
    return set(cores[half:] if of_clients else cores[:half])


def _measured(
    broker: BrokerProcess, ports: list[int], work: Work, size_bytes: int
) -> Mapping[str, float]:
    """Have all clients work at the same time."""
    together = PROCESSES.Barrier(CLIENTS + 1)
    clients = [
        PROCESSES.Process(target=_client, args=(port, work, index, size_bytes // CLIENTS, together))
        for index, port in enumerate(ports)
    ]
    for client in clients:
        client.start()
    together.wait(LIMIT_S)
    meter = Meter(broker)
    together.wait(LIMIT_S)
    figures = meter.moved(size_bytes)
    for client in clients:
        client.join()
    return figures


def _client(port: int, work: Work, partition: int, size_bytes: int, together: Barrier) -> None:
    os.sched_setaffinity(0, _cores(of_clients=True))
    with WireClient(port) as client:
        together.wait(LIMIT_S)
        work(client, partition, size_bytes)
        together.wait(LIMIT_S)


def write(client: WireClient, partition: int, size_bytes: int) -> None:
    """Produce so many bytes to a partition, five requests in flight."""
    frame = partition_frame(TOPIC, partition, batch_of(BATCH_BYTES, 64))
    pipelined(client, repeat(frame, size_bytes // BATCH_BYTES))


def read(client: WireClient, partition: int, size_bytes: int) -> None:
    """Fetch the beginning of a partition, until so many bytes have come."""
    request = fetch_request(TOPIC, partition, 0, FETCH_BYTES)
    frame = request_frame(request, FETCH_VERSION, 1, "bench")
    room = memoryview(bytearray(2 * FETCH_BYTES))
    for _ in range(size_bytes // FETCH_BYTES):
        client.send(frame)
        client.read_frame(room)


WORKLOADS: dict[str, Callable[[Path, int, int], Figures]] = {"with_workers": with_workers}
