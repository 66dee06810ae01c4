"""Spark's own standalone cluster on this machine: a master and workers, as pip's pyspark has them.

Each is a process; the master's page tells which workers it knows. All end with the `with`, by their
ids, as do the executors, which are the workers' children.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections import Counter, defaultdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self
from urllib.error import URLError
from urllib.request import urlopen

from tests.support.broker_process import free_ports
from tests.support.process_tree import children_of
from tests.support.quick_spark import quick_java_options

READY_SECONDS = 300.0
STOP_SECONDS = 100.0
_DEPLOY = "org.apache.spark.deploy"
_LOOPBACK = "127.0.0.1"


class SparkCluster:
    """A master and so many workers, of one core each."""

    def __init__(self, scratch: Path, workers: int = 2) -> None:
        self.port, self._web_port = free_ports(2)
        self._scratch, self._count = scratch, workers
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def master(self) -> str:
        """What `--master` is told."""
        return f"spark://{_LOOPBACK}:{self.port}"

    def __enter__(self) -> Self:
        try:
            self._start("master.Master", "--port", self.port, "--webui-port", self._web_port)
            for number in range(self._count):
                room = self._scratch / f"worker-{number}"
                # Each on a machine of its own, as far as Spark knows.
                host = f"127.0.0.{number + 1}"
                small = ("--cores", "1", "--memory", "1g", "--webui-port", "0")
                self._start("worker.Worker", *small, "--work-dir", room, self.master, host=host)
            self._wait_for_workers()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    @property
    def pids(self) -> list[int]:
        """The master and the workers; the executors are the workers' children."""
        return [process.pid for process in self._processes]

    def log_text(self) -> str:
        """What master and workers wrote so far."""
        logs = sorted(self._scratch.glob("*.log"))
        return "\n".join(path.read_text(errors="replace")[-3000:] for path in logs)

    def _start(self, name: str, *arguments: object, host: str = _LOOPBACK) -> None:
        environment = {
            **os.environ,
            "SPARK_LOCAL_IP": host,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": quick_java_options(),
        }
        command = [str(spark_home() / "bin" / "spark-class"), f"{_DEPLOY}.{name}"]
        command += ["--host", host, *map(str, arguments)]
        log_file = self._scratch / f"{name}-{len(self._processes)}.log"
        with log_file.open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    command,
                    env=environment,
                    cwd=self._scratch,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            )

    def _wait_for_workers(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while self._alive() < self._count:
            assert time.monotonic() < deadline, self.log_text()
            assert all(process.poll() is None for process in self._processes), self.log_text()
            time.sleep(0.05)

    def _alive(self) -> int:
        """How many workers the master knows."""
        page = f"http://{_LOOPBACK}:{self._web_port}/json/"
        try:
            with urlopen(page, timeout=5) as answer:
                return int(json.load(answer)["aliveworkers"])
        except (URLError, ConnectionError, TimeoutError, json.JSONDecodeError):
            return 0  # in HTML: the page for people is there before the one for programs

    def _stop(self) -> None:
        below = [pid for process in self._processes for pid in children_of(process.pid)]
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pid in below:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def spark_home() -> Path:
    """Where pip has put Spark."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def recording(directory: Path) -> dict[str, str]:
    """Settings with which an application records there what it does."""
    directory.mkdir(exist_ok=True)
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": directory.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }


def tasks_of_executors(directory: Path) -> dict[str, Counter[str]]:
    """By the application's name: how many tasks each executor has done with success."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for path in directory.iterdir():
        name = ""
        for line in path.read_text().splitlines():
            event: dict[str, Any] = json.loads(line)
            if event["Event"] == "SparkListenerApplicationStart":
                name = event["App Name"]
            if event["Event"] == "SparkListenerTaskEnd":
                assert event["Task End Reason"]["Reason"] == "Success", event
                found[name][event["Task Info"]["Executor ID"]] += 1
    return dict(found)
