"""A broker in a process of its own: started, killed, started again on the same directory and port.

`ODRADEK_TEST_BROKER=kafka` starts Apache Kafka in odradek's place: a test that fails there is wrong
itself. Both are started from the same settings, and are ended by process id, never by name.
"""

import contextlib
import functools
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self, TypeVar

from odradek.config.properties import parse_properties, render_properties
from tests.support import process_tree
from tests.support.java_tools import java_tools_of, why_no_java
from tests.support.kafka_jars import BROKER_VERSION

READY_SECONDS = 180.0
STOP_SECONDS = 300.0  # Java writes an archive of its classes while others keep the disk busy
# The command as it was installed beside this Python.
SERVE = (str(Path(sys.executable).with_name("odradek")), "serve")
# Below the range that the kernel gives to outgoing connections: a client that retries while its
# broker is down could otherwise be given that very port, and connect to itself.
# Test processes that run side by side have ports of their own: while a test restarts its broker,
# nobody else may take the port. Workers of pytest-xdist divide the ports. Other runs of the tests
# on the machine see those that this process holds.
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
PORTS = range(20_000 + WORKER, 32_000, WORKERS)

# What a test wants: groups form at once, and members may be declared dead quickly.
TEST_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "log.retention.ms": "-1",  # the records of many tests are dated long ago
    "group.min.session.timeout.ms": "500",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


class BrokerDiedError(RuntimeError):
    """The process ended, or did not answer in time; the message ends with its log."""


def against_apache_kafka() -> bool:
    """Whether this run checks the tests themselves, on Apache Kafka."""
    return os.environ.get("ODRADEK_TEST_BROKER", "odradek") == "kafka"


# Sockets that are bound to the newest ports and do not listen: brokers can, with SO_REUSEADDR.
_held: deque[socket.socket] = deque()
MAX_HELD = 200


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody uses now, held for this process."""
    found: list[int] = []
    start = (os.getpid() * 37 + time.monotonic_ns() // 1000) % len(PORTS)
    for step in range(len(PORTS)):
        port = PORTS[(start + step) % len(PORTS)]
        with contextlib.suppress(OSError):
            _hold(port)
            found.append(port)
        if len(found) == count:
            return found
    raise RuntimeError("no free port")


def _hold(port: int) -> None:
    """Bind a port. Raises OSError if another socket is bound to it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", port))
    holder = socket.socket()
    _held.append(holder)
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", port))
    if len(_held) > MAX_HELD:
        _held.popleft().close()


class BrokerProcess:
    """odradek as its users start it: `odradek serve FILE`, with a data directory of its own."""

    name = "odradek"
    clean_exit_codes: tuple[int, ...] = (0,)

    def __init__(self, directory: Path, overrides: Mapping[str, str] | None = None) -> None:
        self.directory = directory
        self.data = directory / "data"
        self.log_file = directory / "broker.log"
        self.port, self._second_port = free_ports(2)
        self.settings = {**TEST_SETTINGS, **self._listeners(), **(overrides or {})}
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)

    @property
    def bootstrap(self) -> str:
        """What a client is told: host:port."""
        return f"127.0.0.1:{self.port}"

    @property
    def is_running(self) -> bool:
        """Whether it was started and neither ended by a method here nor by itself."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The id of the running process."""
        return self._running().pid

    # -- its life -------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start it and wait until it answers a request."""
        self.start_without_waiting()
        self.wait_until_ready()
        return self

    def format(self, *options: str) -> None:
        """Format its directory, which is new."""
        command, _, file = self._command()
        subprocess.run([command, "format", file, *options], check=True, capture_output=True)

    def start_without_waiting(self) -> None:
        """Start it; it may be killed before it is ready."""
        assert self._process is None, f"{self.name} is running already"
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )

    def wait_until_ready(self, within_s: float = READY_SECONDS) -> None:
        """Return when an ApiVersions request has been answered; raises BrokerDiedError."""
        deadline = time.monotonic() + within_s
        while True:
            answers = self._answers()  # somebody's, who may have taken its port
            self.check_alive()
            if answers:
                return
            if time.monotonic() > deadline:
                raise BrokerDiedError(f"{self.name} is not ready:\n{self.log_text()[-4000:]}")
            time.sleep(0.01)

    def check_alive(self) -> None:
        """Raises BrokerDiedError if it has ended by itself, and nobody has waited for that."""
        if self._process is not None and self._process.poll() is not None:
            code = self._process.returncode
            self._process = None
            raise BrokerDiedError(f"{self.name} ended with {code}:\n{self.log_text()[-4000:]}")

    def kill(self) -> None:
        """SIGKILL: nothing is flushed, closed or said."""
        process = self._running()
        process.kill()
        process.wait()
        self._process = None

    def terminate(self) -> int:
        """SIGTERM, and wait for the end; the exit code."""
        return self._end(signal.SIGTERM)

    def interrupt(self) -> int:
        """SIGINT, as control-C sends it, and wait for the end; the exit code."""
        return self._end(signal.SIGINT)

    def hang_up(self) -> int:
        """SIGHUP, as a terminal that is closed sends it, and wait for the end; the exit code."""
        return self._end(signal.SIGHUP)

    def stop(self) -> None:
        """End it, however it is; nothing happens when it has ended already."""
        if self._process is None:
            return
        try:
            self.terminate()
        finally:
            if self._process is not None:
                self.kill()

    def wait_for_end(self) -> int:
        """Wait until it ends by itself; the exit code."""
        code = self._running().wait(STOP_SECONDS)
        self._process = None
        return code

    def _end(self, number: signal.Signals) -> int:
        process = self._running()
        process.send_signal(number)
        try:
            code = process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise BrokerDiedError(
                f"no end after {number.name}:\n{self.log_text()[-4000:]}"
            ) from None
        self._process = None
        return code

    def _running(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None, f"{self.name} is not running"
        return self._process

    def _answers(self) -> bool:
        request = struct.pack(">hhih", 18, 0, 7, 0)  # ApiVersions v0, correlation id 7, no name
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self.port), 1) as client,
        ):
            client.settimeout(5)
            client.sendall(struct.pack(">i", len(request)) + request)
            return client.recv(8)[4:] == struct.pack(">i", 7)
        return False

    # -- what it says and uses ------------------------------------------------------------------

    def log_text(self) -> str:
        """All that it has written since the directory was made."""
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def crashes_in_log(self) -> list[str]:
        """Lines that a broker in good health never writes."""
        return re.findall(
            r"^.*(?:Traceback \(most recent|never retrieved).*$", self.log_text(), re.MULTILINE
        )

    def cpu_seconds(self) -> float:
        """User and system time that it and its children have used so far."""
        return process_tree.cpu_seconds(self.pid)

    def memory_bytes(self) -> int:
        """Anonymous memory of it and its children that is resident, without the page cache."""
        return process_tree.anonymous_bytes(self.pid)

    def open_files(self) -> int:
        """How many file descriptors it holds."""
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    # -- how it is started ----------------------------------------------------------------------

    def _listeners(self) -> dict[str, str]:
        return {
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(self.data),
        }

    def _command(self) -> list[str]:
        shipped = parse_properties((Path(__file__).parents[2] / "server.properties").read_bytes())
        file = self.directory / "server.properties"
        file.write_bytes(render_properties({**shipped, **self.settings}))
        return [*SERVE, str(file)]


class ApacheKafkaProcess(BrokerProcess):
    """The reference, as a single KRaft node. Settings that are odradek's own are left out."""

    name = "kafka"
    clean_exit_codes = (0, 143)  # a JVM that SIGTERM ended says 143

    def __init__(
        self,
        directory: Path,
        overrides: Mapping[str, str] | None = None,
        version: str = BROKER_VERSION,
    ) -> None:
        super().__init__(directory, overrides)
        self._version = version
        self._tools = java_tools_of(version)

    def crashes_in_log(self) -> list[str]:
        return []

    def _listeners(self) -> dict[str, str]:
        controller = f"127.0.0.1:{self._second_port}"
        ours = super()._listeners()
        return {
            **ours,
            "process.roles": "broker,controller",
            "node.id": "0",
            "controller.quorum.voters": f"0@{controller}",
            "listeners": f"{ours['listeners']},CONTROLLER://{controller}",
            "controller.listener.names": "CONTROLLER",
        }

    def _command(self) -> list[str]:
        if not (self.data / "meta.properties").exists():
            self.format()
        return [*self._java(), "kafka.Kafka", str(self._write_properties())]

    def _write_properties(self) -> Path:
        properties = self.directory / "server.properties"
        lines = [
            f"{key}={value}"
            for key, value in self.settings.items()
            if not key.startswith("odradek.")
        ]
        properties.write_text("\n".join(lines) + "\n")
        return properties

    def format(self, *options: str) -> None:
        dynamic = [] if "controller.quorum.voters" in self.settings else ["--standalone"]
        self._tools.run(
            *("kafka.tools.StorageTool", "format", "-t", "Y45AvnC3Rhqkz8Ak_NyCPA", *dynamic),
            *(*options, "-c", str(self._write_properties())),
        )

    def _java(self) -> list[str]:
        return self._tools.java("-Xmx1G", *_class_archive(self._version))


class ArchivingKafkaProcess(ApacheKafkaProcess):
    """Apache Kafka that writes an archive of its loaded classes when it ends."""

    def __init__(self, directory: Path, option: str, version: str) -> None:
        super().__init__(directory, version=version)
        self._option = option

    def _java(self) -> list[str]:
        return self._tools.java("-Xmx1G", self._option)


@functools.cache
def _class_archive(version: str) -> list[str]:
    """The option that names the archive; made at first use."""

    def make(option: str) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            broker = ArchivingKafkaProcess(Path(scratch), option, version)
            try:
                broker.start()
            finally:
                broker.stop()

    return java_tools_of(version).class_archive("broker", make)


class WarmedKafkaProcess(ApacheKafkaProcess):
    """Apache Kafka to be measured: the JVM as kafka-server-start.sh sets it up, all compilers on.

    It starts more slowly, and is at its best only after some time under load.
    """

    def _java(self) -> list[str]:
        shipped = ["-Xmx1G", "-Xms1G", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
        return self._tools.java(*shipped, "-XX:InitiatingHeapOccupancyPercent=35", lives_long=True)


def make_broker(directory: Path, overrides: Mapping[str, str] | None = None) -> BrokerProcess:
    """The broker that this run tests, not started yet."""
    kind = ApacheKafkaProcess if against_apache_kafka() else BrokerProcess
    return kind(directory, overrides)


Kind = TypeVar("Kind", bound=BrokerProcess)


@contextlib.contextmanager
def running(broker: Kind) -> Iterator[Kind]:
    """The broker, which serves inside the `with`, and is ended behind it."""
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()


@contextlib.contextmanager
def running_broker(
    directory: Path, overrides: Mapping[str, str] | None = None
) -> Iterator[BrokerProcess]:
    """A broker that serves inside the `with`, and is ended behind it."""
    with running(make_broker(directory, overrides)) as broker:
        yield broker


def why_no_broker() -> str | None:
    """Why the broker of this run cannot be started here, or None."""
    return why_no_java() if against_apache_kafka() else None
