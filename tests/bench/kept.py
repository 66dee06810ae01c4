"""The figures that the documentation shows: figures.json, which runs with `--keep` write."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.bench.figures import Results
from tests.bench.machine import LOAD

FILE = Path(__file__).with_name("figures.json")
RUNS_KEPT = 3  # one run may have met a slow hour of its machine


@dataclass(slots=True, kw_only=True)
class Run:
    """`machine`: what it is, by name. `results`: by workload."""

    machine: Mapping[str, str] = field(default_factory=dict)
    results: dict[str, Results] = field(default_factory=dict)

    @property
    def kafka_version(self) -> str:
        """Of the Apache Kafka that was measured, such as 4.4.0."""
        return self.machine.get("Apache Kafka", "").partition(",")[0]


@dataclass(slots=True, kw_only=True)
class Kept:
    """`runs`: the last ones of the table, the newest last. `others`: workloads outside of it."""

    runs: list[Run] = field(default_factory=list)
    others: Run = field(default_factory=Run)

    @property
    def newest(self) -> Mapping[str, Results]:
        """The last results of each workload."""
        return {
            name: each for run in (self.others, *self.runs) for name, each in run.results.items()
        }


def load() -> Kept:
    """What was kept; nothing where there is no file."""
    if not FILE.exists():
        return Kept()
    stored = json.loads(FILE.read_text())
    return Kept(runs=[Run(**run) for run in stored["runs"]], others=Run(**stored["others"]))


def begin_run(machine: Mapping[str, str]) -> None:
    """Add a run of the table. The oldest is forgotten, if there are as many as are kept."""
    kept = load()
    kept.runs = [*kept.runs, Run(machine=machine)][-RUNS_KEPT:]
    _store(kept)


def keep(workload: str, results: Results) -> None:
    """Add the results of a workload to the newest run."""
    kept = load()
    kept.runs[-1].results[workload] = _rounded(results)
    _store(kept)


def keep_other(workload: str, results: Results, machine: Mapping[str, str]) -> None:
    """Add the results of a workload outside the table; those of another machine are forgotten."""
    kept = load()
    before = kept.others.results if _same(kept.others.machine, machine) else {}
    kept.others = Run(machine=machine, results={**before, workload: _rounded(results)})
    _store(kept)


def _rounded(results: Results) -> Results:
    return {
        broker: {name: float(f"{value:.4g}") for name, value in figures.items()}
        for broker, figures in results.items()
    }


def _store(kept: Kept) -> None:
    FILE.write_text(json.dumps(asdict(kept), indent=1) + "\n")


def _same(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    return {**one, LOAD: ""} == {**other, LOAD: ""}
