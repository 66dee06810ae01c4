"""A copy of the repository, in which the fast tests of a mutant run.

A mutant is tested by the tests in the folder of its room, or in the nearest folder above, by those
that import its module, and on request by all others of its package. It is killed by the first test
that fails, or that prints nothing for `HANG_SECONDS`. Where a test of that file fails without the
mutant as well, nothing is known.
"""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.mutation.places import Place

HANG_SECONDS = 120.0  # the longest fast test takes a few seconds
_PYTEST = [sys.executable, "-m", "pytest", "-x", "-v", "--tb=no", "-rfE", "-p", "no:cacheprovider"]
_PYTEST += ["--hypothesis-seed=0", "-o", "faulthandler_timeout=0", "-m", "not slow and not java"]
_STARTED_OR_FAILED = re.compile(r"^(?:FAILED |ERROR )?(tests/\S+)", re.MULTILINE)
_PASSED, _NOTHING_TO_RUN = 0, 5


class Copy:
    """A clone of a revision in `root`."""

    def __init__(self, repository: Path, root: Path, revision: str, *, whole: bool) -> None:
        self.root = root
        self._whole = whole  # whether to run all tests of the package
        clone = ["git", "clone", "--quiet", "--shared", "--no-checkout", repository, root]
        subprocess.run(clone, check=True)
        subprocess.run(["git", "checkout", "--quiet", "--detach", revision], check=True, cwd=root)

    def test(self, place: Place) -> str:
        """Test one mutant; the test that killed it, or SURVIVED."""
        file = self.root / place.path
        source = file.read_bytes()
        file.write_bytes(place.mutated(source))
        try:
            killer = self._first_failure(self.tests_of(place.path))
        finally:
            file.write_bytes(source)
        if killer is None:
            return "SURVIVED"
        if fails := self._first_failure([killer.partition("::")[0]]):
            return f"UNKNOWN: {fails} fails without the mutant, too"
        return killer

    def tests_of(self, path: str) -> list[str]:
        """The files that may test a module: first those in its folder that import it."""
        folder = self.root / "tests" / Path(path).parent
        while not any(folder.glob("test_*.py")):
            folder = folder.parent
        parent, _, name = path.removesuffix(".py").removesuffix("/__init__").rpartition("/")
        parent = re.escape("odradek." + parent.replace("/", "."))
        imported = re.compile(rf"{parent}(\.{name}\b| import (\(\s*)?([\w\s,]*\b)?{name}\b)")
        package = self.root / "tests" / Path(path).parts[0]
        ranked: list[tuple[int, Path]] = []
        for file in sorted((self.root / "tests").rglob("test_*.py")):
            imports = imported.search(file.read_text())
            if file.parent == folder:
                ranked.append((0 if imports else 1, file))
            elif imports or (self._whole and file.is_relative_to(package)):
                ranked.append((2 if imports else 3, file))
        return [file.relative_to(self.root).as_posix() for _, file in sorted(ranked)]

    def _first_failure(self, tests: list[str]) -> str | None:
        """The first test that fails or hangs; the first file if none has started."""
        output = self.root / "mutation-output"
        with output.open("wb") as stream:
            pytest = subprocess.Popen(
                [*_PYTEST, *tests],
                cwd=self.root,
                env=os.environ | {"PYTHONPATH": f"{self.root / '.pkg'}:{self.root}"},
                stdout=stream,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        _wait(pytest, output)
        if pytest.returncode in (_PASSED, _NOTHING_TO_RUN):
            return None
        named = _STARTED_OR_FAILED.findall(output.read_text(errors="replace"))
        return named[-1] if named else tests[0]


def _wait(pytest: subprocess.Popen[bytes], output: Path) -> None:
    """Wait for the end of the tests, or end them when they print nothing for long."""
    size = -1
    while output.stat().st_size != size:
        size = output.stat().st_size
        try:
            pytest.wait(HANG_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        return
    os.killpg(pytest.pid, signal.SIGKILL)
    pytest.wait()
