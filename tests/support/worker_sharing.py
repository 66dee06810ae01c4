"""How `--dist loadfile` shares the tests between the workers of pytest-xdist.

A worker is given whole files. The tests that ask for the Spark session are the exception: one
worker is given all of them, because each worker that needs the session starts a JVM. The scheduler
sees no fixtures, only the ids of tests; the fixture `spark` has a parameter that shows in them.

The parts that take longest begin first, so that none of them ends long after the others. How long
each took is in durations.json, which `make durations` writes. A part that is not in it begins at
once: it is new.
"""

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

DURATIONS = Path(__file__).parents[1] / "durations.json"
_PARAMETERS = re.compile(r"\[(.*)\]$")


def part_of(nodeid: str) -> str:
    """The part that a test belongs to: its file, or the tests on Spark."""
    parameters = _PARAMETERS.search(nodeid)
    if parameters and "on_spark" in parameters[1].split("-"):
        return "spark"
    return nodeid.partition("::")[0]


def longest_first(items: list[pytest.Item], seconds: Mapping[str, float]) -> None:
    """Order the tests by the duration of their part; those of a part stay as they are."""
    items.sort(key=lambda item: -seconds.get(part_of(item.nodeid), float("inf")))


class LongestFirst(LoadFileScheduling):  # type: ignore[misc] # xdist has no types
    """Gives the parts to workers in the order in which they were collected."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return part_of(nodeid)


class DurationsOfParts:
    """Adds up the seconds of each part, and writes them to durations.json at the end."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Setup, call or teardown of a test has ended, in any worker."""
        self._seconds[part_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        """All tests have ended."""
        rounded = {part: round(spent) for part, spent in sorted(self._seconds.items())}
        DURATIONS.write_text(json.dumps(rounded, indent=1) + "\n")
