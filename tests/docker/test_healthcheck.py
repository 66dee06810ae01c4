"""The container's health check: one ApiVersions round trip with whatever listens there."""

import errno
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.docker_scripts import DOCKER, healthcheck

HEALTHCHECK = DOCKER / "healthcheck.py"
LIMIT_S = 100.0
CERTIFICATE = Path(__file__).parents[1] / "support" / "self_signed.pem"
REQUEST = bytes.fromhex("0000000a 0012 0000 00ddadec ffff")
ANSWER = bytes.fromhex("0000000a 00ddadec 0000 00000000")


@contextmanager
def server(behave: Callable[[socket.socket], None]) -> Iterator[int]:
    """One connection is accepted and handed to `behave`; gives the port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            listening.close()  # no other one is accepted
            with connection:
                behave(connection)

        port = listening.getsockname()[1]
        thread = threading.Thread(target=serve)
        thread.start()
        yield port
        thread.join(10)


def check(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(HEALTHCHECK), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def answering(answer: bytes) -> Callable[[socket.socket], None]:
    def behave(connection: socket.socket) -> None:
        assert connection.recv(100) == REQUEST
        connection.sendall(answer)

    return behave


def test_a_broker_that_answers_is_healthy() -> None:
    with server(answering(ANSWER)) as port:
        done = check(f"127.0.0.1:{port}")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"", "closed before the answer"),
        (ANSWER[:9], "closed before the answer"),
        (ANSWER[:8] + b"\x00\x23" + ANSWER[10:], "error code 35"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "correlation id"),
    ],
)
def test_any_other_answer_is_not(answer: bytes, reason: str) -> None:
    with server(answering(answer)) as port:
        done = check(f"127.0.0.1:{port}")
    assert done.returncode == 1
    assert reason in done.stderr


def test_a_listener_with_tls_is_asked_by_tls() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(LIMIT_S)

        def serve() -> None:
            plain, _ = listening.accept()
            with plain, suppress(OSError):
                context.wrap_socket(plain, server_side=True)
            encrypted = context.wrap_socket(listening.accept()[0], server_side=True)
            with encrypted:
                answering(ANSWER)(encrypted)

        thread = threading.Thread(target=serve)
        thread.start()
        done = check(f"127.0.0.1:{listening.getsockname()[1]}")
        thread.join()
    assert (done.returncode, done.stderr) == (0, "")


def test_nobody_there_is_not_healthy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    assert check(f"127.0.0.1:{port}").returncode == 1


def test_without_an_argument_the_entrypoints_file_is_read(tmp_path: Path) -> None:
    with server(answering(ANSWER)) as port:
        (tmp_path / "odradek-server.properties").write_text(
            "controller.listener.names=CONTROLLER\n"
            f"listeners=CONTROLLER://:1,PLAINTEXT://0.0.0.0:{port},OTHER://:2\n"
        )
        assert check(TMPDIR=str(tmp_path)).returncode == 0


def test_on_a_full_disk_the_entrypoints_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "odradek-server.properties").write_text("listeners=PLAINTEXT://:19092")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(os, "write", fail)
    assert healthcheck.written_address() == ("localhost", 19092, False)


def test_the_file_is_found_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "odradek-server.properties").write_text("listeners=PLAINTEXT://:19092")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    monkeypatch.chdir(tmp_path)
    assert healthcheck.places()[-1] == tmp_path
    monkeypatch.setattr(healthcheck, "places", lambda: [tmp_path / "missing", tmp_path])
    assert healthcheck.written_address() == ("localhost", 19092, False)


@pytest.mark.parametrize(
    ("listeners", "address"),
    [
        ("listeners=PLAINTEXT://:9092", ("localhost", 9092, False)),
        ("listeners=PLAINTEXT://[::]:1", ("::1", 1, False)),
        ("listeners=PLAINTEXT://[fe80::1]:1", ("fe80::1", 1, False)),
        ("  listeners : A://x:1\nlisteners=B://y:2", ("y", 2, False)),
        ("listeners=SSL://:1,PLAINTEXT://:2", ("localhost", 2, False)),
        ("listeners=SASL_SSL://:1,SSL://:2", ("localhost", 1, True)),
        ("listeners=A://:1\nlistener.security.protocol.map=A:SSL", ("localhost", 1, True)),
        ("listeners=SSL\\://:1,\\\n  PLAINTEXT\\://:2", ("localhost", 2, False)),
        ("", ("127.0.0.1", 9092, False)),
    ],
)
def test_the_first_listener_without_tls_is_asked(
    listeners: str, address: tuple[str, int, bool]
) -> None:
    assert healthcheck.address_in(listeners) == address
