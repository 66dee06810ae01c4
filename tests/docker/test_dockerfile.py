"""The Dockerfile, as far as it can be read without a container engine."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docker" / "Dockerfile").read_text()
IGNORE = (ROOT / "docker" / "Dockerfile.dockerignore").read_text().splitlines()
BUILD, FINAL = TEXT.split("FROM scratch\n")


def test_the_base_is_pinned_and_no_step_of_the_last_stage_can_run_a_program() -> None:
    assert re.findall(r"^FROM (\S+)", BUILD, re.MULTILINE) == ["python:3.12.12-slim-trixie"]
    assert "\nRUN " not in FINAL


def test_the_user_is_a_number_so_that_kubernetes_can_check_that_it_is_not_root() -> None:
    assert re.findall(r"^USER (\S+)", FINAL, re.MULTILINE) == ["1000:1000"]


@pytest.mark.parametrize(
    "name", sorted(set(re.findall(r"(?<!tests/)docker/([a-z_]+\.(?:py|txt))", TEXT)))
)
def test_every_file_that_is_named_exists_and_is_in_the_build_context(name: str) -> None:
    assert (ROOT / "docker" / name).exists()
    assert f"!docker/*{Path(name).suffix}" in IGNORE or f"!docker/{name}" in IGNORE


def test_the_build_context_has_every_package_of_the_wheel() -> None:
    wheel = re.search(r"wheel\]\nonly-include = \[(.*)\]", (ROOT / "pyproject.toml").read_text())
    assert wheel
    for entry in re.findall(r'"([^"]+)"', wheel[1]):
        assert f"!{entry.split('/')[0]}" in IGNORE


def test_the_directories_of_other_images_belong_to_the_user() -> None:
    for directory in ("/var/lib/odradek", "/var/lib/kafka/data", "/bitnami/kafka"):
        assert f"/volumes{directory}" in BUILD
