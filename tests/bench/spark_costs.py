"""What Spark needs for a piece of work, with its connector and with odradek.

The CPU is that of Spark and all its Python workers, and of the broker where it has a part in it.
`_x` is how many times better odradek is.
"""

import statistics
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from tests.support.broker_process import BrokerProcess
from tests.support.process_tree import children_of, own_cpu_seconds
from tests.support.spark_cluster import SparkCluster
from tests.support.spark_process import SparkProcess

PAUSE_SECONDS = 0.05
CLUSTER = "cluster"  # a master and two workers of one core each, on this machine
MASTERS = ("local[1]", "local[2]", CLUSTER)
SOURCES = ("kafka", "odradek")
Figures = dict[str, float]
Answer = TypeVar("Answer")


class Cost(NamedTuple):
    """What a piece of work took."""

    seconds: float
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class MeteredSpark:
    """A session, and the processes that work for it, without their children."""

    process: SparkProcess
    pids: Sequence[int]


@contextmanager
def running_spark(scratch: Path, conf: Mapping[str, str], master: str) -> Iterator[MeteredSpark]:
    """A session on one of MASTERS."""
    with ExitStack() as running:
        pids: Sequence[int] = ()
        if master == CLUSTER:
            directory = scratch / "cluster"
            directory.mkdir(exist_ok=True)
            cluster = running.enter_context(SparkCluster(directory))
            master, pids = cluster.master, cluster.pids
        process = running.enter_context(SparkProcess(scratch, conf, master))
        yield MeteredSpark(process, [process.pid, *pids])


def costs_of(
    kafka: BrokerProcess,
    spark: MeteredSpark,
    work: Callable[[], tuple[float, Answer]],
    *,
    with_broker: bool,
) -> tuple[Cost, Answer]:
    """`work` tells its seconds, and what else there is to know."""
    of_broker = kafka.cpu_seconds()
    meter = CpuMeter(spark.pids)
    seconds, answer = work()
    used = meter.end()
    if with_broker:
        used += kafka.cpu_seconds() - of_broker
    return Cost(seconds, used), answer


class CpuMeter(threading.Thread):
    """The CPU that processes and their children use from now on, looked at again and again.

    Not a difference of two sums: Spark ends Python workers that have had nothing to do for a
    minute, and nobody waits for them, so their time is in no sum behind that.
    """

    def __init__(self, pids: Sequence[int]) -> None:
        super().__init__(name="cpu-meter", daemon=True)
        self._pids = pids
        self._ended = threading.Event()
        self._last: dict[int, float] = {}
        self._look()
        self._before = sum(self._last.values())
        self.start()

    def run(self) -> None:
        while not self._ended.wait(PAUSE_SECONDS):
            self._look()

    def end(self) -> float:
        """Look once more, and stop; the seconds of CPU."""
        self._ended.set()
        self.join()
        self._look()
        return sum(self._last.values()) - self._before

    def _look(self) -> None:
        for root in self._pids:
            for pid in [root, *children_of(root)]:
                with suppress(OSError):  # it has just ended
                    self._last[pid] = own_cpu_seconds(pid)


def compared(label: str, records: int, costs: Mapping[str, list[Cost]]) -> Figures:
    """Thousands of records a second and a CPU second, by median; odradek's in the connector's."""
    rates = {
        source: (
            records / statistics.median(each.seconds for each in found) / 1000,
            records / statistics.median(each.cpu_seconds for each in found) / 1000,
        )
        for source, found in costs.items()
    }
    figures: Figures = {}
    for place, unit in enumerate(("krec_s", "krec_cpu_s")):
        for source in rates:
            figures[f"{label}_{source}_{unit}"] = rates[source][place]
        figures[f"{label}_{unit}_x"] = rates["odradek"][place] / rates["kafka"][place]
    return figures


def growth(figures: Figures) -> Figures:
    """How many times faster each piece of work is with the second core."""
    one, two = (f"{master}_" for master in MASTERS[:2])
    return {
        f"two_cores_{name.removeprefix(one).removesuffix('_krec_s')}_x": figures[
            two + name.removeprefix(one)
        ]
        / rate
        for name, rate in figures.items()
        if name.startswith(one) and name.endswith("_krec_s")
    }
