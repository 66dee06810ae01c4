"""The documentation builds as a site, without a warning."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT

pytestmark = pytest.mark.slow


@pytest.mark.skipif(find_spec("material") is None, reason="the extra `docs` is not installed")
def test_the_site_builds(tmp_path: Path) -> None:
    for file in (ROOT / "mkdocs.yml", *ROOT.glob("*.md")):
        shutil.copy(file, tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    # The pages are UTF-8 where the locale has another encoding, too.
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        command,
        check=False,
        cwd=tmp_path,
        env={**os.environ, **locale},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    site = tmp_path / "site"
    assert (site / "guarantees" / "index.html").exists()
    listed = re.findall(
        r"^- \[.+\]\((.+)\)$", (site / "llms.txt").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert {"index.md", "architecture.md", "compatibility/systems.md"} <= set(listed)
    for place in listed:
        assert (site / place).read_text(encoding="utf-8").startswith(("# ", "<!--")), place
