"""Measures odradek and Apache Kafka in turns: `python -m tests.bench [--only NAME,NAME] [--keep]`.

Prints medians and odradek's ratios to Kafka. Nothing is asserted: a machine's speed is no property
of the code. Without `--only` it measures the table of docs/performance.md, in about 30 minutes;
`--list` names all workloads. `python -m tests.bench.codec` compares the wire codec with those of
other libraries.
"""

import argparse
import tempfile
from pathlib import Path

from tests.bench import chart, growth_chart, kept
from tests.bench.machine import machine
from tests.bench.performance_page import performance_page
from tests.bench.report import HEAD, as_text, lines
from tests.bench.workloads import OWN, SHARED, TABLE, measured, text_of
from tests.docs.pages import MARK, PERFORMANCE


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", default="", help="names of workloads, with commas between")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a fifth of the work")
    parser.add_argument("--keep", action="store_true", help="write the figures into the docs")
    parser.add_argument("--list", action="store_true", help="name all workloads, measure none")
    options = parser.parse_args()
    workloads = {**SHARED, **OWN}
    if options.list:
        for name, work in workloads.items():
            print(f"{name:34s} {text_of(work)}")
        return
    wanted = set(filter(None, options.only.split(","))) or set(TABLE)
    if unknown := wanted - workloads.keys():
        parser.error(f"no workload: {', '.join(sorted(unknown))}")
    if options.keep and options.only and (of_table := wanted & set(TABLE)):
        parser.error(f"the table is kept as a whole, without --only: {', '.join(sorted(of_table))}")
    part = "a fifth" if options.quick else "all"
    here = machine() | {"measured": f"{part} of the work, {options.rounds} rounds"}
    print(*(f"{name}: {text}" for name, text in here.items()), sep="\n")
    print(as_text(HEAD), flush=True)
    if options.keep and not options.only:
        kept.begin_run(here)
    share = 5 if options.quick else 1
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        for name, results in measured(wanted, Path(scratch), options.rounds, share):
            for line in lines(name, results):
                print(as_text(line.cells), flush=True)
            if options.keep and name in TABLE:
                kept.keep(name, results)
            elif options.keep:
                kept.keep_other(name, results, here)
    if options.keep:
        everything = kept.load()
        chart.write(everything.newest, (everything.runs or [everything.others])[-1].kafka_version)
        growth_chart.write(everything.newest, everything.others.kafka_version)
        PERFORMANCE.write_text(MARK + performance_page())


if __name__ == "__main__":
    main()
