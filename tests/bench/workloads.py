"""All workloads by name: those of the table, which `make bench` measures, and those on demand."""

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from tests.bench import (
    assigning,
    authorizing,
    compaction,
    console,
    continuous_archive,
    encrypted,
    fixture,
    groups,
    growth,
    hostile,
    in_process,
    librdkafka,
    logins,
    many_clients,
    metrics_cost,
    over_the_wire,
    perf_tools,
    schema_registry,
    slow_disk,
    spark_archiving,
    spark_reading,
    spark_writing,
    starting,
    transactions,
)
from tests.bench.figures import ODRADEK, Figures, Results, compared
from tests.bench.two_brokers import Brokers, beside_bare, in_turns, running
from tests.support.broker_process import BrokerProcess

MEMORY_AFTER_LOAD = "memory_after_load"
SETTLE_S = 10.0
SETTINGS = {"log.segment.delete.delay.ms": "1000"}
OfABroker = Callable[[BrokerProcess, int], Figures]
OfBoth = Callable[[Brokers, int, int], Results]
Work = Callable[[Path, int, int], Results]


def memory_after_load(brokers: Brokers, rounds: int, share: int) -> Results:
    """Anonymous memory of the brokers that have had all loads of the table, ten seconds later."""
    time.sleep(SETTLE_S)
    return compared(
        {name: [{"memory_MB": each.memory_bytes() / 2**20}] for name, each in brokers.items()}
    )


def _in_turns(work: OfABroker) -> OfBoth:
    def measured(brokers: Brokers, rounds: int, share: int) -> Results:
        return in_turns(brokers, rounds, lambda broker: work(broker, share), warm_rounds=1)

    measured.__doc__ = text_of(work)
    return measured


def _beside_bare(work: OfABroker) -> OfBoth:
    def measured(brokers: Brokers, rounds: int, share: int) -> Results:
        return beside_bare(brokers, rounds, lambda broker: work(broker, share))

    measured.__doc__ = text_of(work)
    return measured


def _alone(work: Callable[[Path, int], Figures]) -> Work:
    def measured(scratch: Path, rounds: int, share: int) -> Results:
        return compared({ODRADEK: [work(scratch, share) for _ in range(rounds)]})

    measured.__doc__ = text_of(work)
    return measured


def _ready(work: Callable[[Path, int, int], Figures]) -> Work:
    def measured(scratch: Path, rounds: int, share: int) -> Results:
        return {ODRADEK: work(scratch, rounds, share)}

    measured.__doc__ = text_of(work)
    return measured


def text_of(work: object) -> str:
    """The first line of the docstring of a workload."""
    documented = work.func if isinstance(work, partial) else work
    return (documented.__doc__ or "").partition("\n")[0]


_OF_A_BROKER: Mapping[str, OfABroker] = {
    **librdkafka.WORKLOADS,
    **perf_tools.WORKLOADS,
    **perf_tools.ON_DEMAND,
    **over_the_wire.WORKLOADS,
    **many_clients.WORKLOADS,
}
# One pair of brokers lives through all of these.
SHARED: Mapping[str, OfBoth] = {
    **perf_tools.COMPARED,
    **{name: _in_turns(work) for name, work in _OF_A_BROKER.items()},
    **{name: _beside_bare(work) for name, work in over_the_wire.BESIDE_BARE.items()},
    **over_the_wire.COMPARED,
    MEMORY_AFTER_LOAD: memory_after_load,
}
# Each of these starts its own brokers, or needs none.
OWN: Mapping[str, Work] = {
    **slow_disk.WORKLOADS,
    **starting.IN_TABLE,
    **fixture.WORKLOADS,
    **fixture.ON_DEMAND,
    **growth.WORKLOADS,
    **starting.WORKLOADS,
    **encrypted.WORKLOADS,
    **groups.WORKLOADS,
    **logins.WORKLOADS,
    **transactions.WORKLOADS,
    **authorizing.WORKLOADS,
    **{name: _ready(work) for name, work in metrics_cost.WORKLOADS.items()},
    **{name: _ready(work) for name, work in spark_reading.WORKLOADS.items()},
    **{name: _ready(work) for name, work in spark_archiving.WORKLOADS.items()},
    **{name: _ready(work) for name, work in spark_writing.WORKLOADS.items()},
    **{name: _alone(work) for name, work in continuous_archive.WORKLOADS.items()},
    **{name: _alone(work) for name, work in in_process.WORKLOADS.items()},
    **{name: _alone(work) for name, work in assigning.WORKLOADS.items()},
    **{name: _alone(work) for name, work in hostile.WORKLOADS.items()},
    **{name: _alone(work) for name, work in console.WORKLOADS.items()},
    **compaction.WORKLOADS,
    **schema_registry.WORKLOADS,
}
ON_DEMAND = {"produce_tiny_batches", "produce_flush_each", *perf_tools.ON_DEMAND}
TABLE = (
    *(name for name in SHARED if name not in ON_DEMAND),
    *slow_disk.WORKLOADS,
    *starting.IN_TABLE,
    *fixture.WORKLOADS,
)
GROWTH = tuple(growth.WORKLOADS)


def measured(
    wanted: set[str], scratch: Path, rounds: int, share: int
) -> Iterator[tuple[str, Results]]:
    """The results of the wanted workloads, one after the other."""
    shared = {name: work for name, work in SHARED.items() if name in wanted}
    if shared:
        with running(scratch, SETTINGS, {}) as brokers:
            for name, work in shared.items():
                yield name, work(brokers, rounds, share)
    for name, own in OWN.items():
        if name in wanted:
            yield name, own(scratch, rounds, share)
