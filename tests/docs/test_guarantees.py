"""Each promise of docs/guarantees.md names tests that hold it."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "guarantees.md"


def test_each_guarantee_names_tests_that_exist() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    promises = [row for row in rows if not row.endswith("| tests |")]
    assert len(promises) > 20
    for row in promises:
        *_, tests, _ = row.split("|")
        paths = re.findall(r"`([^`]+)`", tests)
        assert paths, f"no test: {row}"
        for path in paths:
            named = ROOT / path
            found = [named] if path.endswith(".py") else [*named.rglob("test_*.py")]
            assert found, f"no tests in {path}"
            assert any("def test_" in each.read_text() for each in found), path
