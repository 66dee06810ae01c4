"""Prometheus' own query engine: a Go program, built where Go and its modules can be had."""

import json
import math
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.go_programs import build, why_no_go
from tests.support.metrics import Series

SOURCE = Path(__file__).with_name("promql_evaluator")
ADDED = {"instance": "127.0.0.1:9404", "job": "odradek"}
# Every range in a query is longer, and rates need two samples.
INTERVAL_MS = 15_000
LIMIT_SECONDS = 300.0


class Result(NamedTuple):
    """How many series an expression gives, or why it cannot be evaluated."""

    series: int
    error: str


def why_no_engine() -> str | None:
    """Why the engine cannot be built here, or None."""
    return why_no_go(SOURCE)


def evaluate(expressions: Sequence[str], scrapes: Sequence[Series]) -> list[Result]:
    """Evaluate each at the time of the last scrape. A comparison filters nothing."""
    samples: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
    for number, scrape in enumerate(scrapes, 1):
        for sample in scrape.samples:
            labels = tuple(sorted({"__name__": sample.name, **sample.labels, **ADDED}.items()))
            if math.isfinite(sample.value):
                samples.setdefault(labels, []).append((number * INTERVAL_MS, sample.value))
    question = {
        "at_ms": len(scrapes) * INTERVAL_MS,
        "expressions": expressions,
        "series": [{"labels": dict(key), "samples": found} for key, found in samples.items()],
    }
    with tempfile.TemporaryDirectory() as directory:
        program = build(SOURCE, Path(directory))
        done = subprocess.run(
            [program],
            input=json.dumps(question),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=LIMIT_SECONDS,
        )
    return [Result(**each) for each in json.loads(done.stdout)]
