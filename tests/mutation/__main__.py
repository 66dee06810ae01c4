"""Mutation: `python -m tests.mutation [--count N] [--seed N] [--under PATH] [--revision NAME]`.

Mutates places of a revision, one at a time, in a copy of the repository, and runs fast tests: those
in the folder of the room, or in the nearest folder above, and those that import the module. The
table says which test killed each mutant: the first that failed, or that printed nothing for
`HANG_SECONDS`. Where a test of that file fails without the mutant as well, nothing is known.
`--only 7,19` repeats these lines of the table. `--whole` runs all fast tests of the package.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from tests.mutation.places import Place, chosen_places

REPOSITORY = Path(__file__).resolve().parents[2]
HANG_SECONDS = 120.0  # the longest fast test takes a few seconds
_PYTEST = [sys.executable, "-m", "pytest", "-x", "-v", "--tb=no", "-rfE", "-p", "no:cacheprovider"]
_PYTEST += ["--hypothesis-seed=0", "-o", "faulthandler_timeout=0", "-m", "not slow and not java"]
_STARTED_OR_FAILED = re.compile(r"^(?:FAILED |ERROR )?(tests/\S+)", re.MULTILINE)


def main() -> None:
    """Mutate what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--count", type=int, default=50, help="how many places")
    parser.add_argument("--seed", type=int, default=1, help="chooses the places")
    parser.add_argument("--under", default="", help="only files whose path begins like this")
    parser.add_argument("--revision", default="HEAD", help="what of the repository is mutated")
    parser.add_argument("--only", default="", help="numbers of lines of the table")
    parser.add_argument("--whole", action="store_true", help="run all fast tests of the package")
    options = parser.parse_args()
    only = [int(number) for number in options.only.split(",") if number]
    survived = tested = 0
    with tempfile.TemporaryDirectory(prefix="mutation-", ignore_cleanup_errors=True) as scratch:
        copy = Path(scratch) / "copy"
        subprocess.run(["git", "clone", "-q", "--shared", "-n", REPOSITORY, copy], check=True)
        subprocess.run(["git", "-C", copy, "checkout", "-q", options.revision], check=True)
        places = chosen_places(copy, options.seed, options.count, options.under)
        for number, place in enumerate(places, 1):
            if not only or number in only:
                killer = killed_by(copy, place, tests_of(copy, place.path, whole=options.whole))
                print(f"{number:3d} {place}\n      {killer or 'SURVIVED'}", flush=True)
                survived, tested = survived + (not killer), tested + 1
    print(f"{tested} mutants, of which {survived} survived")


def tests_of(copy: Path, path: str, *, whole: bool) -> list[str]:
    """The files that may test a module: first those in its folder that import it."""
    folder = copy / "tests" / Path(path).parent
    while not any(folder.glob("test_*.py")):
        folder = folder.parent
    parent, _, name = path.removesuffix(".py").removesuffix("/__init__").rpartition("/")
    parent = re.escape("odradek." + parent.replace("/", "."))
    imported = re.compile(rf"{parent}(\.{name}\b| import (\(\s*)?([\w\s,]*\b)?{name}\b)")
    package = copy / "tests" / Path(path).parts[0]
    ranked: list[tuple[int, Path]] = []
    for file in sorted((copy / "tests").rglob("test_*.py")):
        rank = 2 * (file.parent != folder) + (imported.search(file.read_text()) is None)
        if rank < 3 or (whole and file.is_relative_to(package)):
            ranked.append((rank, file))
    return [file.relative_to(copy).as_posix() for _, file in sorted(ranked)]


def killed_by(copy: Path, place: Place, tests: list[str]) -> str | None:
    """The test that fails with the mutant and not without it; None if there is none."""
    file = copy / place.path
    source = file.read_bytes()
    file.write_bytes(place.mutated(source))
    try:
        killer = first_failure(copy, tests)
    finally:
        file.write_bytes(source)
    if killer is not None and (fails := first_failure(copy, [killer.partition("::")[0]])):
        return f"UNKNOWN: {fails} fails without the mutant, too"
    return killer


def first_failure(copy: Path, tests: list[str]) -> str | None:
    """The first test that fails or hangs; the first file if none has started."""
    output, command = copy / "mutation-output", [*_PYTEST, *tests]
    environment = os.environ | {"PYTHONPATH": f"{copy / '.pkg'}:{copy}"}
    with output.open("wb") as stream:
        pytest = subprocess.Popen(
            command, cwd=copy, env=environment, stdout=stream, stderr=stream, start_new_session=True
        )
    size = -1
    while pytest.poll() is None and output.stat().st_size != size:
        size = output.stat().st_size
        with suppress(subprocess.TimeoutExpired):
            pytest.wait(HANG_SECONDS)
    if pytest.poll() is None:
        os.killpg(pytest.pid, signal.SIGKILL)
    if pytest.wait() in (0, 5):  # passed, or there was nothing to run
        return None
    named = _STARTED_OR_FAILED.findall(output.read_text(errors="replace"))
    return named[-1] if named else tests[0]


if __name__ == "__main__":
    main()
