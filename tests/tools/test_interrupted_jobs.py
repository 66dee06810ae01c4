"""Ctrl-C in a job of `odradek pipeline`, in processes and on Spark; what Spark logs meanwhile."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odradek.pipeline.jobs.archive.job import ArchiveSettings
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.pipeline.session import why_no_spark
from odradek.protocol.compression import CompressionType
from odradek.tools.pipeline.quiet_spark import quiet_settings
from tests.support.archives import archive_here, at, rows_of, seen
from tests.support.crashing_files import QuickFiles
from tests.support.lengths import LONG, only_long
from tests.support.log_box import NOW_MS, LogBox, batch_of, put
from tests.support.quick_spark import quick_java_options

SAID = "error: interrupted: finished work is kept, and the next run continues from there"
OF_THE_JVM = "WARNING: Using incubator modules"  # said before it reads a setting of anybody's
ENDS_WITHIN_S = 60.0


class Interrupted:
    """A job in a process group of its own, as a terminal starts it.

    A shell starts what it runs in the background with SIGINT ignored, and children inherit that.
    """

    def __init__(self, root: Path, *arguments: object) -> None:
        self._mark = f"ODRADEK_TEST_MARK={root.name}-{time.monotonic_ns()}"
        name, _, value = self._mark.partition("=")
        self._said = root / "stderr"
        heeded = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
        program = f"{heeded}; from odradek.tools.cli import main; main()"
        command = [sys.executable, "-c", program, "pipeline", *map(str, arguments)]
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, name: value},
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
            )

    def when(self, is_time: Callable[[], object]) -> int:
        """Interrupt it then, as a terminal does; the exit code."""
        return self._ended(is_time, lambda: os.killpg(self._process.pid, signal.SIGINT))

    def killed_when(self, is_time: Callable[[], object]) -> int:
        """Kill the process then, but not its workers; the exit code."""
        return self._ended(is_time, self._process.kill)

    def _ended(self, is_time: Callable[[], object], end: Callable[[], None]) -> int:
        try:
            while not is_time():
                assert self._process.poll() is None, self.said()
                time.sleep(0.01)
            end()
            return self._process.wait(ENDS_WITHIN_S)
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()

    def said(self) -> list[str]:
        """The lines on standard error."""
        lines = self._said.read_text().splitlines()
        return [line for line in lines if not line.startswith(OF_THE_JVM)]

    def left(self) -> list[int]:
        """Processes that outlive it; those that are left for good are killed."""
        deadline = time.monotonic() + 10
        while (found := self._marked()) and time.monotonic() < deadline:
            time.sleep(0.02)
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return found

    def workers(self) -> list[int]:
        """The processes that it has started."""
        return [pid for pid in self._marked() if pid != self._process.pid]

    def _marked(self) -> list[int]:
        found = []
        for place in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if place.name.isdigit() and self._mark.encode() in (place / "environ").read_bytes():
                    found.append(int(place.name))
        return found


def logs(root: Path) -> Path:
    """A topic of a few records, and one that takes a minute to read: zeros, well compressed."""
    small = LogBox(root / "log", files=QuickFiles())
    log = small.open()
    put(log, b"a", b"b")
    log.close(NOW_MS)
    large = LogBox(root / "log", files=QuickFiles())
    large.directory = root / "log" / "zeros-0"
    log = large.open()
    batch = batch_of(bytes(1 << 20), compression=CompressionType.ZSTD)
    for _ in range(20_000):
        log.append(batch, now_ms=NOW_MS)
    log.close(NOW_MS)
    return root / "log"


def check_that_a_run_completes(path: Path, archive: Path) -> None:
    settings = ArchiveSettings(
        log_directories=[path],
        archive=at(archive),
        topics=TopicChoice(names=["orders"]),
        until_end=True,
    )
    assert archive_here(settings, QuickFiles()).total().records == 2
    assert [row[:5] for row in rows_of(seen(at(archive)))] == [
        ("orders", 0, 0, b"k", b"a"),
        ("orders", 0, 1, b"k", b"b"),
    ]


@pytest.mark.slow
def test_interrupted_or_killed_processes_leave_nothing_behind(tmp_path: Path) -> None:
    """While one writes; in long runs also while the workers start."""
    path, archive = logs(tmp_path), tmp_path / "archive"
    arguments = ("archive", archive, "--path", path, "--until-end", "--processes", 2)
    if LONG:
        job = Interrupted(tmp_path, *arguments)
        assert (job.when(job.workers), job.left(), job.said()) == (130, [], [SAID])

    job = Interrupted(tmp_path, *arguments)
    code = job.when(lambda: list(archive.glob("topic=*/*/*")))
    assert (code, job.left(), job.said()) == (130, [], [SAID])

    job = Interrupted(tmp_path, *arguments)
    assert job.killed_when(lambda: list(archive.glob("topic=*/*/*"))) == -signal.SIGKILL
    assert (job.left(), job.said()) == ([], [])
    check_that_a_run_completes(path, archive)


@pytest.mark.slow
@pytest.mark.skipif(why_no_spark() is not None, reason=str(why_no_spark()))
@only_long("processes are interrupted above")
def test_an_interrupted_spark_says_so_in_a_line_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """While the JVM comes up, and while a task writes."""
    path, archive = logs(tmp_path), tmp_path / "archive"
    spark = ("--master", "local[1]", "--conf", f"spark.local.dir={tmp_path}")
    quick = ("--conf", f"spark.driver.extraJavaOptions={quick_java_options()}")
    first = ("archive", tmp_path / "first", "--path", path, "--until-end")
    job = Interrupted(tmp_path, *first, *spark, *quick)
    assert job.when(job.said) == 130
    assert (job.left(), job.said()) == ([], ["starting Spark on local[1]", SAID])

    job = Interrupted(tmp_path, "archive", archive, "--path", path, "--until-end", *spark, *quick)
    assert job.when(lambda: list(archive.glob("topic=*/*/*"))) == 130
    assert (job.left(), job.said()) == ([], ["starting Spark on local[1]", SAID])
    check_that_a_run_completes(path, archive)


def test_spark_says_errors_only_unless_the_user_wants_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Dx=y")
    assert quiet_settings({}) == {"spark.log.level": "ERROR"}
    ours, theirs = os.environ["SPARK_SUBMIT_OPTS"].split()
    assert theirs == "-Dx=y"
    file = Path(ours.removeprefix("-Dlog4j2.configurationFile=file://"))
    assert "rootLogger.level = error" in file.read_text()
    wanted: dict[str, Any] = {"spark.log.level": "INFO"}
    assert quiet_settings(wanted) == wanted


def test_a_log4j_file_of_the_users_own_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "log4j2.properties").touch()
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    monkeypatch.delenv("SPARK_SUBMIT_OPTS", raising=False)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert quiet_settings({"a": "b"}) == {"a": "b"}
    assert "SPARK_SUBMIT_OPTS" not in os.environ
