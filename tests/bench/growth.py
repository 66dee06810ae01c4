"""How throughput, CPU and memory grow with partitions and with connections.

Each number of them has its own pair of brokers, so that nothing is left over from another one.
"""

from collections.abc import Callable
from functools import partial
from itertools import cycle, islice
from pathlib import Path

from tests.bench.figures import Figures, Results
from tests.bench.many_clients import produced
from tests.bench.over_the_wire import batch_of, partition_frame, pipelined
from tests.bench.two_brokers import Meter, in_turns, running
from tests.support.broker_process import BrokerProcess
from tests.support.wire import WireClient

SIZES = (1, 10, 100, 1000, 5000)
TOPIC = "growing"
REQUESTS = 50_000
SECONDS = 5.0
SETTINGS = {
    "socket.listen.backlog.size": "4096",  # with 50 the kernel lets many wait a second
    "max.connections": "20000",
}


def growth_of_partitions(scratch: Path, rounds: int, share: int) -> Results:
    """A record of 100 bytes a request, to one partition after the other, five in flight."""

    def at_size(size: int) -> Results:
        with running(scratch, SETTINGS, {TOPIC: size}) as brokers:
            return in_turns(brokers, rounds, measure, warm_rounds=1)

    def measure(broker: BrokerProcess) -> Figures:
        return _to_each_in_turn(broker, frames, REQUESTS // share)

    results: Results = {}
    for size in SIZES:
        frames = [partition_frame(TOPIC, number, batch_of(100, 1)) for number in range(size)]
        _add(results, size, at_size(size))
    return results


def _to_each_in_turn(broker: BrokerProcess, frames: list[bytes], requests: int) -> Figures:
    meter = Meter(broker)
    with WireClient(broker.port) as client:
        pipelined(client, islice(cycle(frames), requests))
    return meter.done(requests) | {"memory_MB": broker.memory_bytes() / 2**20}


def growth_of_connections(scratch: Path, rounds: int, share: int) -> Results:
    """Connections that send a record of 100 bytes when the last is acknowledged, acks=all."""
    results: Results = {}
    for size in SIZES:
        with running(scratch, SETTINGS, {}) as brokers:
            found = in_turns(
                brokers,
                rounds,
                partial(produced, seconds=SECONDS / share, busy=size),
                warm_rounds=1,
            )
        _add(results, size, found)
    return results


def _add(results: Results, size: int, found: Results) -> None:
    """Note the figures of one size under names that begin with it."""
    for broker, figures in found.items():
        named = {f"{size}_{name}": value for name, value in figures.items()}
        results.setdefault(broker, {}).update(named)


WORKLOADS: dict[str, Callable[[Path, int, int], Results]] = {
    work.__name__: work for work in (growth_of_partitions, growth_of_connections)
}
