"""The version of the package is the one that the changes are for."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_newest_changes_are_those_of_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    newest = next(line for line in lines if line.startswith("## "))
    release, _, development = version.partition(".dev")
    assert newest.split()[1] == release
    assert newest.endswith("(unreleased)") == bool(development)
