"""Workers of Kafka Connect in distributed mode, a process each: started, killed, started again.

They support exactly-once sources. Besides Kafka's connectors for files they have `FilesSource`.
"""

import functools
import http.client
import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.support.broker_process import free_ports
from tests.support.java_tools import JavaTools, why_no_java
from tests.support.kafka_jars import connect_jars, why_no_jars

LIMIT_SECONDS = 120.0
REQUEST_SECONDS = 20.0
# To compare what workers say about brokers: ODRADEK_TEST_CONNECT_LOG=info.
LOG_LEVEL = os.environ.get("ODRADEK_TEST_CONNECT_LOG", "warn")
_FILES_SOURCE = Path(__file__).with_name("FilesSource.java")
_JAVA = JavaTools(connect_jars)
_CONVERTER = "org.apache.kafka.connect.storage.StringConverter"
# A dead worker is noticed soon, and its tasks are not kept for it.
_SETTINGS = {
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "status.storage.topic": "connect-status",
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "offset.storage.partitions": "2",
    "status.storage.partitions": "1",
    "key.converter": _CONVERTER,
    "value.converter": _CONVERTER,
    "exactly.once.source.support": "enabled",
    "plugin.discovery": "service_load",
    "scheduled.rebalance.max.delay.ms": "200",
    "session.timeout.ms": "2000",
    "heartbeat.interval.ms": "300",
    # The consumers of sinks.
    "consumer.isolation.level": "read_committed",
    "consumer.session.timeout.ms": "2000",
    "consumer.heartbeat.interval.ms": "300",
}


@functools.cache
def why_no_connect() -> str | None:
    """Why workers cannot run here, or None: the reason a test gives for being skipped."""
    if shutil.which("javac") is None:
        return "javac not found: the test's own connector cannot be compiled"
    return why_no_java() or (why_no_jars() if connect_jars() is None else None)


def compile_connectors(folder: Path) -> None:
    """Compile FilesSource into a directory that workers can have on their class path."""
    command = ["javac", "-cp", f"{connect_jars()}/*", "-d", str(folder), str(_FILES_SOURCE)]
    subprocess.run(command, check=True, timeout=LIMIT_SECONDS)
    services = folder / "META-INF" / "services"
    services.mkdir(parents=True)
    services.joinpath("org.apache.kafka.connect.source.SourceConnector").write_text("FilesSource")


# A worker that still starts or reads its topics; a rebalance; a timeout.
_PASSING = (404, 409, 500, 503)


class ConnectError(AssertionError):
    """A worker has ended, or refused a request, or did not answer in time."""


class ConnectWorker:
    """One worker; it is found by its port, which stays the same when it is started again."""

    def __init__(self, directory: Path, bootstrap: str, connectors: Path) -> None:
        directory.mkdir(parents=True)
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        self.log_file = directory / "worker.log"
        self._connectors = connectors
        self._properties = directory / "worker.properties"
        settings = {"bootstrap.servers": bootstrap, "listeners": self.url, "group.id": "connect"}
        lines = [f"{key}={value}\n" for key, value in {**_SETTINGS, **settings}.items()]
        self._properties.write_text("".join(lines))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not been killed; it may have ended by itself."""
        return self._process is not None

    def start(self) -> None:
        """Start it; `ask` waits until it serves."""
        assert self._process is None, "the worker is running already"
        level = f"-Dorg.slf4j.simpleLogger.defaultLogLevel={LOG_LEVEL}"
        dated = "-Dorg.slf4j.simpleLogger.showDateTime=true"
        dates = "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS"
        command = _JAVA.java("-Xmx256m", level, dated, dates)
        command[-1] += f":{self._connectors}"
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, main, str(self._properties)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def kill(self) -> None:
        """SIGKILL: it leaves no group and ends no transaction."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def check_alive(self) -> None:
        """Raise ConnectError if it has ended by itself."""
        if self._process is not None and self._process.poll() is not None:
            raise ConnectError(f"the worker ended by itself:\n{self.log_text()[-4000:]}")

    def log_text(self) -> str:
        """All that it has written."""
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """The answer to a request, which is JSON, or None when it has no body.

        It is asked again while it starts or its group rebalances. Raises ConnectError.
        """
        deadline = time.monotonic() + LIMIT_SECONDS
        while True:
            self.check_alive()
            try:
                return self._ask_once(method, path, body)
            except (OSError, http.client.HTTPException) as error:
                said, passes = str(error), True
                if isinstance(error, urllib.error.HTTPError):
                    said, passes = error.read().decode(errors="replace"), error.code in _PASSING
            if not passes or time.monotonic() > deadline:
                raise ConnectError(f"{method} {path}: {said}\n{self.log_text()[-4000:]}")
            time.sleep(0.1)

    def _ask_once(self, method: str, path: str, body: object) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as answer:
            text = answer.read()
        return json.loads(text) if text else None
