"""The workflows of the forge: they parse, and what they name exists."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
pytestmark = pytest.mark.skipif(not FILES, reason="an sdist has no workflows")
# The publisher of each action that may be used.
PUBLISHERS = ("actions/", "docker/", "pypa/")


def jobs_of(file: Path) -> dict[str, dict[str, Any]]:
    jobs: dict[str, dict[str, Any]] = yaml.safe_load(file.read_text())["jobs"]
    return jobs


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_every_action_is_a_standard_one_pinned_to_a_version(file: Path) -> None:
    jobs = jobs_of(file)
    steps = [step for job in jobs.values() for step in job.get("steps", [])]
    assert all("run" in step or "uses" in step for step in steps)
    for action in (step["uses"] for step in steps if "uses" in step):
        assert action.startswith(PUBLISHERS)
        assert re.fullmatch(r"[a-z/-]+@v\d+\.\d+\.\d+", action)
    for job in jobs.values():
        assert set(job.get("needs", [])) <= jobs.keys()
        assert "uses" not in job or (ROOT / job["uses"]).exists()


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_the_make_targets_and_files_that_are_named_exist(file: Path) -> None:
    targets = re.findall(r"^([\w-]+)%?:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    text = file.read_text()
    assert set(re.findall(r"\bmake ([\w-]+)", text)) <= set(targets)
    for path in re.findall(
        r"(?<![\w.-])(?:docker|packaging)/[\w./-]+\.\w+|docker/Dockerfile", text
    ):
        assert (ROOT / path).exists(), path


def test_the_tests_run_on_every_python_that_the_package_allows() -> None:
    (file,) = (file for file in FILES if file.stem == "test")
    versions = jobs_of(file)["check"]["strategy"]["matrix"]["python"]
    (least,) = re.findall(r'requires-python = ">=(.*)"', (ROOT / "pyproject.toml").read_text())
    assert versions == ["3.11", "3.12", "3.13", "3.14"]
    assert versions[0] == least
