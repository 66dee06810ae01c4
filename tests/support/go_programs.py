"""Go programs of tests, built where Go and their modules can be had."""

import functools
import shutil
import subprocess
from pathlib import Path


@functools.cache
def why_no_go(source: Path) -> str | None:
    """Why the program of a directory cannot be built here, or None."""
    if shutil.which("go") is None:
        return "needs Go"
    done = subprocess.run(
        ["go", "mod", "download"], cwd=source, capture_output=True, text=True, check=False
    )
    return f"needs the modules of {source / 'go.mod'}: {done.stderr}" if done.returncode else None


def build(source: Path, directory: Path) -> Path:
    """Build the program of a directory into another one, and return its file."""
    program = directory / source.name
    subprocess.run(["go", "build", "-o", program, "."], cwd=source, check=True)
    return program
