"""Benchmarks: `python -m tests.bench [--only NAME,NAME] [--rounds N] [--quick]`.

Prints a table of medians; nothing is asserted, for a machine's speed is no property of the code.
The clients are hand-made and cost next to nothing, so that the figures are the broker's own.
`ODRADEK_TEST_BROKER=kafka` measures Apache Kafka with the very same requests.
`python -m tests.bench.codec` compares the wire codec with those of other libraries.
"""

import argparse
import statistics
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.bench import (
    assigning,
    authorizing,
    compaction,
    encrypted,
    fixture,
    groups,
    hostile,
    in_process,
    logins,
    metrics_cost,
    over_the_wire,
    spark_archiving,
    spark_reading,
    spark_writing,
    starting,
    transactions,
)
from tests.support.broker_process import make_broker, running_broker
from tests.support.compaction import LOOKS_SOON

STARTS = 3
Figures = Mapping[str, float]


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", default="", help="names of workloads, with commas between")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a fifth of the work")
    options = parser.parse_args()
    wanted = set(filter(None, options.only.split(",")))
    share = 5 if options.quick else 1
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        for name, work in {**in_process.WORKLOADS, **assigning.WORKLOADS}.items():
            if not wanted or name in wanted:
                report(name, [work(Path(scratch), share) for _ in range(options.rounds)])
        compared = {
            **starting.WORKLOADS,
            **encrypted.WORKLOADS,
            **fixture.WORKLOADS,
            **metrics_cost.WORKLOADS,
            **groups.WORKLOADS,
            **logins.WORKLOADS,
            **transactions.WORKLOADS,
            **authorizing.WORKLOADS,
            **spark_reading.WORKLOADS,
            **spark_archiving.WORKLOADS,
            **spark_writing.WORKLOADS,
        }
        for name, compare in compared.items():
            if name in wanted:  # they take minutes
                report(name, [compare(Path(scratch), options.rounds, share)])
        if not wanted or wanted & {"start", *over_the_wire.WORKLOADS}:
            against_a_broker(Path(scratch), wanted, options.rounds, share)
        if "hostile_batches" in wanted:  # likewise
            figures = [hostile.hostile_batches(Path(scratch), share) for _ in range(options.rounds)]
            report("hostile_batches", figures)
        if "compaction" in wanted:  # likewise
            with running_broker(Path(scratch) / "compaction", LOOKS_SOON) as broker:
                figures = [compaction.compaction(broker, share) for _ in range(options.rounds)]
                report("compaction", figures)


def against_a_broker(scratch: Path, wanted: set[str], rounds: int, share: int) -> None:
    """The workloads that need a broker, on one that lives through all of them."""
    if not wanted or "start" in wanted:
        report("start", [start_once(scratch / f"start-{n}") for n in range(STARTS)])
    with running_broker(scratch / "broker", {"log.retention.ms": "-1"}) as broker:
        for name, work in over_the_wire.WORKLOADS.items():
            if not wanted or name in wanted:
                report(name, [work(broker, share) for _ in range(rounds)])
        report("after", [{"memory_MB": broker.memory_bytes() / 2**20}])


def start_once(directory: Path) -> Figures:
    """Seconds from the start of the process to its first answer, on an empty directory."""
    broker = make_broker(directory)
    started = over_the_wire.now()
    broker.start()
    seconds = over_the_wire.now() - started
    memory = broker.memory_bytes()
    broker.terminate()
    return {"seconds": seconds, "memory_MB": memory / 2**20}


def report(name: str, rounds: list[Figures]) -> None:
    """One line a figure: the median of all rounds."""
    for figure in rounds[0]:
        median = statistics.median(each[figure] for each in rounds)
        print(f"{name:24s} {figure:44s} {median:14.3f}", flush=True)


if __name__ == "__main__":
    main()
