"""What worker processes gain and cost: 1 and 2 workers beside one process (odradek.workers).

Two clients, each a process, write to a partition of their own, and read it again. They have the
upper half of the cores, and the brokers the lower half. With two cores all processes of a broker
share one, so its throughput cannot grow, and the CPU time for a gigabyte says what workers cost.
With four cores, two workers have a core each.

`produce_N_limit_MB_per_s` is a projection: what N workers move if each of them, and the broker's
own process, has a core that it uses fully. It follows from the CPU time of two workers, where one
of them or the broker's own process is the first to be busy all the time. No more can be expected,
because it leaves out what else may be the limit: the clients, the network, the disk, the memory.
Beside the throughput that was measured, the limits of 1 and 2 workers show how good it is.
"""

import multiprocessing
import os
import shutil
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import ExitStack
from functools import partial
from itertools import repeat
from multiprocessing.synchronize import Barrier
from pathlib import Path

from odradek.storage.directories.log_share import LogShare
from tests.bench.figures import ODRADEK, ONE_PROCESS, Figures, Results, compared
from tests.bench.over_the_wire import GB, batch_of, partition_frame, pipelined
from tests.bench.two_brokers import LIMIT_S, Meter
from tests.support.broker_process import BrokerProcess
from tests.support.broker_with_workers import BrokerWithWorkers
from tests.support.process_tree import children_of, own_cpu_seconds
from tests.support.stored_batches import FETCH_VERSION, fetch_request
from tests.support.topics import create_topic
from tests.support.wire import WireClient, request_frame

TOPIC = "bench"
CLIENTS = 2
BATCH_BYTES = 65536
FETCH_BYTES = 1 << 20
READ_AGAIN = 8  # a fetched byte costs little
PROJECTED = (1, 2, 4, 8)
PROCESSES = multiprocessing.get_context("spawn")
Work = Callable[[WireClient, int, int], None]
Measured = Mapping[str, Figures]  # by the name of the work


def with_workers(scratch: Path, rounds: int, share: int) -> Results:
    """Produce of 64 KiB and fetches of 1 MiB by two clients: 1 and 2 workers beside one process."""
    ours: list[Figures] = []
    alone: list[Figures] = []
    for _ in range(rounds):
        one_process, *others = [
            _of_broker(scratch / "with-workers", workers, GB // share) for workers in range(3)
        ]
        ours.append(_named(others) | _projected(others[-1]))
        alone.append(_named([one_process] * len(others)))
    return compared({ODRADEK: ours, ONE_PROCESS: alone})


def _named(by_workers: Sequence[Measured]) -> Figures:
    """The figures by the work and the number of workers, from 1 on."""
    return {
        f"{work}_{workers}_workers_{name}": value
        for workers, measured in enumerate(by_workers, 1)
        for work, figures in measured.items()
        for name, value in figures.items()
    }


def _projected(measured: Measured) -> Figures:
    """The throughput of more workers at which a process is busy all the time."""
    return {
        f"{work}_{workers}_limit_MB_per_s": limit_of(workers, figures)
        for work, figures in measured.items()
        for workers in PROJECTED
    }


def limit_of(workers: int, figures: Figures) -> float:
    """The throughput of so many workers in MB/s, by the figures of others."""
    own_s = figures["own_cpu_s_per_GB"]
    of_a_worker_s = (figures["cpu_s_per_GB"] - own_s) / workers
    return 1024 / max(of_a_worker_s, own_s)


def _of_broker(directory: Path, workers: int, size_bytes: int) -> Measured:
    broker = BrokerWithWorkers(directory, workers) if workers else BrokerProcess(directory)
    ports = [broker.port] * CLIENTS
    if isinstance(broker, BrokerWithWorkers):
        share = LogShare(0, workers)
        ports = [broker.port_of(share.owner(TOPIC, index)) for index in range(CLIENTS)]
    with ExitStack() as stack:
        stack.callback(partial(shutil.rmtree, directory))
        stack.callback(broker.stop)
        create_topic(broker.start().bootstrap, TOPIC, CLIENTS)
        for pid in (broker.pid, *children_of(broker.pid)):
            _pin(pid, _cores(of_clients=False))
        return {
            "produce": _measured(broker, ports, write, size_bytes),
            "fetch": _measured(broker, ports, read, READ_AGAIN * size_bytes),
        }


def _pin(pid: int, cores: Set[int]) -> None:
    """Give a process, with all its threads, these cores."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), cores)


def _cores(*, of_clients: bool) -> Set[int]:
    """The cores of the clients, or of the broker."""
    cores = sorted(os.sched_getaffinity(0))
    half = len(cores) // 2
    return set(cores[half:] if of_clients else cores[:half] or cores)


def _measured(broker: BrokerProcess, ports: list[int], work: Work, size_bytes: int) -> Figures:
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
    own_before_s = own_cpu_seconds(broker.pid)
    together.wait(LIMIT_S)
    figures = meter.moved(size_bytes)
    own_s = own_cpu_seconds(broker.pid) - own_before_s
    figures["own_cpu_s_per_GB"] = own_s / (size_bytes / GB)
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


WORKLOADS: dict[str, Callable[[Path, int, int], Results]] = {"with_workers": with_workers}
