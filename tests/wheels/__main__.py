"""Resolves the wheels for each system, and writes the table of docs/compatibility/systems.md."""

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable

from packaging.requirements import Requirement

from tests.docs.markdown import ROOT

PAGE = ROOT / "docs/compatibility/systems.md"
BEGIN, END = "<!-- begin: python -m tests.wheels -->\n", "<!-- end -->\n"
# By system: its platform tags, its `sys_platform`, and what was run there.
MANYLINUX = ("2_17", "2_24", "2_26", "2_27", "2_28", "2_31", "2_34")
SYSTEMS = {
    "Linux, glibc, x86_64": (
        ["manylinux2014_x86_64", *(f"manylinux_{each}_x86_64" for each in MANYLINUX)],
        "linux",
    ),
    "Linux, glibc, aarch64": (
        ["manylinux2014_aarch64", *(f"manylinux_{each}_aarch64" for each in MANYLINUX)],
        "linux",
    ),
    "Linux, musl, x86_64": (["musllinux_1_1_x86_64", "musllinux_1_2_x86_64"], "linux"),
    "Linux, musl, aarch64": (["musllinux_1_1_aarch64", "musllinux_1_2_aarch64"], "linux"),
    "macOS 14, arm64": (["macosx_14_0_arm64"], "darwin"),
    "macOS 14, x86_64": (["macosx_14_0_x86_64"], "darwin"),
    "Windows, x86_64": (["win_amd64"], "win32"),
}
# Each with its ABI tags.
PYTHONS = {
    "3.11": ["cp311", "abi3"],
    "3.12": ["cp312", "abi3"],
    "3.13": ["cp313", "abi3"],
    "3.14": ["cp314", "abi3"],
    "3.15": ["cp315", "abi3"],
    "3.14t": ["cp314t"],
}
RAN = {
    ("Linux, glibc, x86_64", "3.11"): ("yes", "all tests"),
    ("Linux, glibc, x86_64", "3.12"): ("yes", "fast tests of protocol, storage, config"),
    ("Linux, glibc, x86_64", "3.13"): ("yes", "fast tests of protocol, storage, config"),
}
NOT_RUN = ("not run", "not run")
NEEDED_BY_THEM = ["cffi"]  # what the requirements need and is compiled


def requirements(extra: str | None, python: str, system: str) -> list[str]:
    """The project's requirements on a system: of the extra, or those that it always has."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = project["optional-dependencies"][extra] if extra else project["dependencies"]
    version = python.removesuffix("t")
    environment = {"sys_platform": system, "python_version": version}
    wanted = []
    for requirement in map(Requirement, lines):
        if requirement.marker is None or requirement.marker.evaluate(environment):
            requirement.marker = None
            wanted.append(str(requirement))
    return wanted


def resolves(wanted: Iterable[str], tags: list[str], python: str) -> bool:
    """Whether pip finds wheels for all of them. Downloads none."""
    with tempfile.TemporaryDirectory() as target:
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--no-deps"]
        command += ["--ignore-installed", "--target", target, "--only-binary=:all:"]
        command += ["--implementation", "cp", "--python-version", python.removesuffix("t")]
        for abi in [*PYTHONS[python], "none"]:
            command += ["--abi", abi]
        for tag in tags:
            command += ["--platform", tag]
        done = subprocess.run([*command, *wanted], capture_output=True, text=True, check=False)
    if done.returncode and "No matching distribution" not in done.stderr:
        raise RuntimeError(done.stderr)
    return not done.returncode


def missing(wanted: list[str], tags: list[str], python: str) -> list[str]:
    """The names of the requirements that have no wheels."""
    return [each.partition(">")[0] for each in wanted if not resolves([each], tags, python)]


def table() -> str:
    lines = [
        "| system | Python | `odradek` resolves | no wheels, replaced | imported | what ran |",
        "|---|---|---|---|---|---|",
    ]
    for name, (tags, system) in SYSTEMS.items():
        for python in PYTHONS:
            needed = requirements(None, python, system) + NEEDED_BY_THEM
            fast = requirements("fast", python, system)
            has_all = resolves(needed + fast, tags, python)
            without = [] if has_all else missing(fast, tags, python)
            has_all = has_all or resolves(needed, tags, python)
            without += ["uvloop"] if system == "win32" else []
            cells = [name, python, "yes" if has_all else "**no**", ", ".join(without) or "none"]
            lines.append("| " + " | ".join([*cells, *RAN.get((name, python), NOT_RUN)]) + " |")
    return "".join(f"{line}\n" for line in lines)


def main() -> None:
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(before + BEGIN + "\n" + table() + "\n" + END + after)


if __name__ == "__main__":
    main()
