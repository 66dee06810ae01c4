"""The wire codec beside kio's and kafka-python's: `python -m tests.bench.codec [--rounds N]`.

One table, from one run: microseconds to read and to write a request and its response, and how many
times as long the others take. The three libraries take turns in every round, each for a few
milliseconds, and a round goes through all workloads, so that a slow moment of the machine hits all
alike; a figure is the best of all rounds. What they read and write is compared before anything is
timed (codecs_compared.py), the messages are in codec_workloads.py.

The goals are ratios of reading and writing together, of both messages: three times as fast as kio,
five times as fast as kafka-python. A miss is marked, not raised: a machine's speed is no property
of the code. The last columns are the same ratios for what a broker does: it reads the request and
writes the response.
"""

import argparse
import gc
import time
from collections.abc import Callable
from typing import NamedTuple

from tests.bench.codec_workloads import WORKLOADS, Workload
from tests.bench.codecs_compared import LIBRARIES, Work

GOALS = {"kio": 3.0, "kafka-python": 5.0}
TURN_SECONDS = 0.01


class Figures(NamedTuple):
    """What a library needs for a request and its response, in microseconds."""

    read_request: float
    read_response: float
    write_request: float
    write_response: float

    @property
    def read(self) -> float:
        return self.read_request + self.read_response

    @property
    def write(self) -> float:
        return self.write_request + self.write_response

    @property
    def both(self) -> float:
        return self.read + self.write

    @property
    def broker(self) -> float:
        return self.read_request + self.write_response


class Turn:
    """One thing that is timed, again and again; keeps its best figure."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.best = float("inf")
        self._work = work
        self._times = 1
        while self._seconds() < TURN_SECONDS:
            self._times *= 2

    def take(self) -> None:
        """Time it once more."""
        self.best = min(self.best, self._seconds() / self._times)

    def _seconds(self) -> float:
        work = self._work
        started = time.perf_counter()
        for _ in range(self._times):
            work()
        return time.perf_counter() - started


def works_of(workload: Workload) -> dict[str, list[Work]]:
    """Every library's work on the request and on the response; all write the same bytes."""
    works: dict[str, list[Work]] = {library: [] for library in LIBRARIES}
    for message in (workload.request, workload.response):
        expected = message.encode(workload.version)
        for library, prepare in LIBRARIES.items():
            work = prepare(message, workload.version)
            if work.write() != expected:
                raise AssertionError(f"{library} writes {type(message).__name__} differently")
            works[library].append(work)
    return works


Turns = dict[str, list[Turn]]  # by library; in the order of Figures


def turns_of(workload: Workload) -> Turns:
    """What is timed for a workload."""
    return {
        library: [Turn(work) for work in (*(w.read for w in works), *(w.write for w in works))]
        for library, works in works_of(workload).items()
    }


def take(turns: list[Turns], rounds: int) -> None:
    """Time everything once per round."""
    gc.collect()
    gc.disable()  # as timeit does; ours are not even known to the collector, theirs are
    try:
        for _ in range(rounds):
            for turn in (turn for each in turns for library in each.values() for turn in library):
                turn.take()
    finally:
        gc.enable()


def head() -> str:
    """The names of the columns."""
    libraries = "".join(f"{library:>24s} " for library in LIBRARIES)
    figures = f"{'read':>9s}{'write':>8s}{'both':>8s}" * len(LIBRARIES)
    ratios = "".join(f"{'/' + library:>14s}" for library in GOALS)
    return (
        f"{'':26s}{libraries}{'both':>16s}{'as a broker':>30s}\n"
        f"{'microseconds':26s}{figures}{ratios}{ratios}"
    )


def row(workload: Workload, turns: Turns) -> str:
    """One line of the table; a ratio that misses its goal says so."""
    figures = {
        library: Figures(*(turn.best * 1e6 for turn in each)) for library, each in turns.items()
    }
    line = f"{workload.title + f' v{workload.version}':26s}"
    ours = figures["odradek"]
    for each in figures.values():
        line += f"{each.read:9.2f}{each.write:8.2f}{each.both:8.2f}"
    for library, goal in GOALS.items():
        ratio = figures[library].both / ours.both
        missed = "" if ratio >= goal else f"(< {goal:.0f}) "
        line += f"{missed:>7s}{ratio:7.2f}"
    for library in GOALS:
        line += f"{figures[library].broker / ours.broker:14.2f}"
    return line


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.codec", description=__doc__)
    parser.add_argument("--only", default="", help="names of workloads, with commas between")
    parser.add_argument("--rounds", type=int, default=25)
    options = parser.parse_args()
    wanted = set(filter(None, options.only.split(",")))
    workloads = [make() for make in WORKLOADS if not wanted or make.__name__ in wanted]
    turns = [turns_of(workload) for workload in workloads]
    take(turns, options.rounds)
    print(head())
    for workload, each in zip(workloads, turns, strict=True):
        print(row(workload, each))


if __name__ == "__main__":
    main()
