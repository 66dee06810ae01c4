"""The figures that the documentation shows: figures.json, which a run with `--keep` writes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.figures import Results
from tests.bench.machine import LOAD

FILE = Path(__file__).with_name("figures.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """`machine`: what it is, by name. `results`: by workload."""

    machine: Mapping[str, str] = field(default_factory=dict)
    results: Mapping[str, Results] = field(default_factory=dict)


def load() -> Kept:
    """What was kept last; nothing where there is no file."""
    return Kept(**json.loads(FILE.read_text())) if FILE.exists() else Kept()


def keep(workload: str, results: Results, machine: Mapping[str, str]) -> None:
    """Add the results of a workload; those of another machine are forgotten."""
    before = load()
    others = before.results if _same(before.machine, machine) else {}
    rounded = {
        broker: {name: float(f"{value:.4g}") for name, value in figures.items()}
        for broker, figures in results.items()
    }
    kept = {"machine": machine, "results": {**others, workload: rounded}}
    FILE.write_text(json.dumps(kept, indent=1) + "\n")


def _same(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    return {**one, LOAD: ""} == {**other, LOAD: ""}
