"""odradek where lz4, zstandard, google-re2 and uvloop are not installed: they are hidden from it.

`make long` runs all that `make without-libraries` runs.
"""

import os
import subprocess
import sys

import pytest

from tests.docs.markdown import ROOT
from tests.support.lengths import LENGTH_VARIABLE, by_length

pytestmark = pytest.mark.slow

HIDDEN = "lz4,zstandard,re2,uvloop"
HIDDEN_ON_WINDOWS = f"{HIDDEN},fcntl,resource,termios"
SHORT = [
    "tests/config/test_linear_patterns.py",
    "tests/broker/network",
    "tests/conformance/test_codecs.py",
]
LONG = [
    *SHORT,
    "tests/protocol",
    "tests/storage",
    "tests/config",
    "tests/broker",
    "tests/coordinator",
    "tests/conformance/test_python_clients.py",
    "tests/conformance/test_consumer_protocol.py",
    "tests/conformance/test_groups.py",
]
CHOICES = """
import asyncio
from odradek.broker.common.event_loop import new_event_loop
from odradek.config.re2_options import re2_library
from odradek.protocol.codec_libraries import lz4_library, zstd_library
assert new_event_loop is asyncio.SelectorEventLoop
print(re2_library().__name__, lz4_library().__name__, zstd_library().__name__)
"""
IMPORTS = """
import odradek.tools.cli, odradek.tools.serve, odradek.broker.lifecycle.run
import odradek.broker.network.server, odradek.broker.handlers, odradek.broker.testing.broker
"""


def run_without(hidden: str, *words: str) -> subprocess.CompletedProcess[str]:
    hook = ROOT / "tests/support/without_libraries"
    path = os.pathsep.join([str(hook), str(ROOT), str(ROOT / ".pkg")])
    # Each test at its short length: more of them run where the length is long.
    environment = {name: value for name, value in os.environ.items() if name != LENGTH_VARIABLE}
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env={**environment, "PYTHONPATH": path, "ODRADEK_HIDDEN_MODULES": hidden},
        capture_output=True,
        text=True,
        check=False,
    )


def test_others_take_their_place() -> None:
    done = run_without(HIDDEN, "-c", CHOICES)
    assert done.stdout.split() == [
        "odradek.config.linear_patterns",
        "odradek.protocol.codec_libraries.lz4_cramjam",
        "odradek.protocol.codec_libraries.zstd_cramjam",
    ], done.stderr


def test_nothing_is_imported_that_windows_does_not_have() -> None:
    done = run_without(HIDDEN_ON_WINDOWS, "-c", IMPORTS)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_tests_pass_without_them() -> None:
    tests = by_length(SHORT, LONG)
    done = run_without(
        HIDDEN, "-m", "pytest", "-q", "-n", "2", "-m", "not slow and not java", *tests
    )
    assert done.returncode == 0, done.stdout
