"""The documentation builds as a site, without a warning."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT

pytestmark = pytest.mark.slow


@pytest.mark.skipif(find_spec("material") is None, reason="the extra `docs` is not installed")
def test_the_site_builds(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "guarantees" / "index.html").exists()
