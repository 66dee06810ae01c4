"""What a broker sends to systemd, received by a real socket."""

import os
import signal
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.broker_process import SERVE, against_apache_kafka

pytestmark = [
    pytest.mark.skipif(against_apache_kafka(), reason="odradek's own notifications"),
    pytest.mark.slow,
]


def serve(directory: Path, environment: Mapping[str, str]) -> "subprocess.Popen[str]":
    words = [*SERVE, "--port=0", f"--override=log.dirs={directory / 'data'}"]
    return subprocess.Popen(
        words, env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("abstract", [False, True])
def test_systemd_is_notified_of_the_start_the_watchdog_and_the_stop(
    abstract: bool, tmp_path: Path
) -> None:
    path = f"odradek-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.settimeout(60)
        receiver.bind("\0" + path if abstract else path)
        environment = {"NOTIFY_SOCKET": "@" + path if abstract else path, "WATCHDOG_USEC": "100000"}
        with serve(tmp_path, environment) as broker:
            received = [receiver.recv(100) for _ in range(3)]
            broker.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, broker.pid, os.WSTOPPED | os.WNOWAIT)
            received += drain(receiver)
            assert drain(receiver, within_s=0.3) == []  # a stopped process does not report
            broker.send_signal(signal.SIGCONT)
            broker.terminate()
            while received[-1] != b"STOPPING=1":
                received.append(receiver.recv(100))
            _, log = broker.communicate(timeout=60)
    assert (broker.returncode, received[0], received[-1]) == (0, b"READY=1", b"STOPPING=1")
    assert set(received[1:-1]) == {b"WATCHDOG=1"}
    assert "WARNING" not in log


def drain(receiver: socket.socket, within_s: float = 0.0) -> list[bytes]:
    """The datagrams that have arrived or arrive within this time."""
    receiver.settimeout(within_s)
    found = []
    try:
        while True:
            found.append(receiver.recv(100))
    except (BlockingIOError, TimeoutError):
        return found
    finally:
        receiver.settimeout(60)


def test_the_watchdog_of_another_process_gets_no_reports(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.settimeout(60)
        receiver.bind(path)
        environment = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}
        with serve(tmp_path, environment) as broker:
            received = [receiver.recv(100)]
            broker.terminate()
            received.append(receiver.recv(100))
            broker.communicate(timeout=60)
    assert received == [b"READY=1", b"STOPPING=1"]


def test_a_broker_whose_notify_socket_is_gone_serves_all_the_same(tmp_path: Path) -> None:
    environment = {"NOTIFY_SOCKET": str(tmp_path / "nobody")}
    with serve(tmp_path, environment) as broker:
        assert broker.stderr is not None
        warning = next(line for line in broker.stderr if "NOTIFY_SOCKET" in line)
        broker.terminate()
        broker.communicate(timeout=60)
    assert "READY=1 was not sent" in warning
    assert broker.returncode == 0
