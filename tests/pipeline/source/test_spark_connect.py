"""Reading in a session of Spark Connect, which is in another process than Spark."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from odradek.pipeline.session import why_no_spark
from tests.support.lengths import only_long
from tests.support.log_box import LogBox, put
from tests.support.quick_spark import quick_java_options
from tests.support.spark_process import ROOT

pytestmark = pytest.mark.slow
LIMIT_SECONDS = 120


@only_long("the other kind of session reads in test_spark_batch.py")
def test_batches_and_streams_are_read_and_jobs_say_what_they_need(tmp_path: Path) -> None:
    reason = why_no_spark()
    if reason or find_spec("grpc") is None:
        pytest.skip(reason or "grpc is not installed: pip install 'odradek[connect]'")
    data, room = tmp_path / "data", tmp_path / "room"
    room.mkdir()
    log = LogBox(data).open()
    for number in range(4):
        put(log, b"%d" % number)
    program = [sys.executable, "-m", "tests.support.connect_program"]
    completed = subprocess.run(
        [*program, data, room, quick_java_options()],
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        cwd=ROOT,
    )
    assert completed.returncode == 0, completed.stderr
    seen = json.loads(completed.stdout.splitlines()[-1])
    assert (seen["batch"], seen["stream"]) == ([2, 3], [0, 1, 2, 3])
    assert "a session of Spark Connect does not have" in seen["job"]
