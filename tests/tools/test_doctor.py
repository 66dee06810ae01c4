"""`odradek doctor` on set-ups that are sound, and on some that are broken."""

import json
import os
import re
import resource
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from odradek.broker.testing import Broker
from odradek.protocol.api_keys import ApiKey
from odradek.tools.app import app
from odradek.tools.client.listener_probe import find_mismatch

Run = Callable[..., Result]
CERTIFICATE = Path(__file__).parents[1] / "support" / "self_signed.pem"


def problems(result: Result) -> list[str]:
    """Each problem with its advice, as a line. The exit code must agree."""
    found = [
        f"{each['text']} -> {each['advice']}"
        for each in json.loads(result.stdout)
        if each["health"] == "problem"
    ]
    assert result.exit_code == int(bool(found)), result.output
    return found


def examine(*words: str) -> list[str]:
    return problems(CliRunner().invoke(app, ["doctor", "--json", *words]))


@pytest.fixture
def server_properties(tmp_path: Path) -> Path:
    """A file for a broker that could be started here."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    file = tmp_path / "server.properties"
    file.write_text(f"listeners=PLAINTEXT://127.0.0.1:{port}\nlog.dirs={tmp_path / 'data'}\n")
    return file


def test_a_sound_broker_has_no_problems(run: Run, server_properties: Path) -> None:
    assert problems(run("doctor", str(server_properties), "--json")) == []
    shown = run("doctor").stdout
    assert "clients are told 127.0.0.1:" in shown
    assert "the clocks of broker and client agree" in shown


def test_a_broker_with_zookeeper_is_sound(run: Run, broker: Broker) -> None:
    broker.pretend({ApiKey.DESCRIBE_QUORUM: -1})
    assert problems(run("doctor", "--json")) == []


@pytest.mark.parametrize("level", [0, 1])
def test_transactions_of_a_lower_version_are_reported(level: int, tmp_path: Path) -> None:
    words = ["-f", f"transaction.version={level}", "--override", f"log.dirs={tmp_path / 'data'}"]
    assert CliRunner().invoke(app, ["format", *words]).exit_code == 0
    with Broker(tmp_path) as broker:
        done = CliRunner().invoke(app, ["doctor", "--json", "-b", broker.bootstrap_servers])
    (found,) = (each for each in json.loads(done.stdout) if each["health"] == "warning")
    assert found["text"].startswith(f"transaction.version is {level}: ")
    assert "--feature transaction.version=2" in found["advice"]


def test_nobody_listens_there() -> None:
    (found,) = examine("-b", "127.0.0.1:1")
    assert "Connection refused" in found
    assert "odradek serve" in found


def test_an_address_is_no_name_of_a_host() -> None:
    (found,) = examine("-b", "a..b:9092")
    assert "a..b is no name of a host" in found


def test_the_broker_of_the_file_is_asked_unless_another_is_named(server_properties: Path) -> None:
    (found,) = examine(str(server_properties))
    (listeners, _) = server_properties.read_text().splitlines()
    assert listeners.removeprefix("listeners=PLAINTEXT://") in found
    (found,) = examine(str(server_properties), "-b", "127.0.0.1:1")
    assert "127.0.0.1:1 " in found


def test_the_advertised_listener_is_wrong(tmp_path: Path) -> None:
    settings = {"advertised.listeners": "PLAINTEXT://nowhere.invalid:9092"}
    with Broker(tmp_path, settings) as broker:
        (found,) = examine("-b", broker.bootstrap_servers)
    assert "clients are told nowhere.invalid:9092" in found
    assert "set advertised.listeners" in found


def test_the_client_wants_tls_and_the_port_is_plain(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SSL\n")
    (found,) = problems(run("doctor", "--json", "--config", str(file)))
    assert "without TLS" in found
    assert "security.protocol=PLAINTEXT" in found


@contextmanager
def accepting(answer: Callable[[socket.socket], object]) -> Iterator[int]:
    """A port where each connection gets that answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    try:
                        answer(connection)
                    except OSError:
                        continue

        thread = threading.Thread(target=accept)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_plain_port_gets_no_tls_from_a_plain_client() -> None:
    requests = []

    def answer(connection: socket.socket) -> None:
        requests.append(connection.recv(14, socket.MSG_WAITALL))
        connection.sendall(struct.pack(">ii", 4, 1))

    with accepting(answer) as port:
        assert find_mismatch("127.0.0.1", port, uses_tls=False) is None
    # One request: ApiVersions v0 with correlation id 1 and no client id.
    assert requests == [struct.pack(">ihhih", 10, 18, 0, 1, -1)]


def test_the_port_wants_tls_and_the_client_is_plain() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)

    def shake_hands(connection: socket.socket) -> None:
        context.wrap_socket(connection, server_side=True).close()

    with accepting(shake_hands) as port:
        (found,) = examine("-b", f"127.0.0.1:{port}")
    assert "speaks TLS" in found
    assert "security.protocol=SSL" in found


def test_another_program_listens_there() -> None:
    with accepting(lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n")) as port:
        (found,) = examine("-b", f"127.0.0.1:{port}")
    assert "does not answer as a Kafka broker does" in found


def test_the_disk_is_full(run: Run, broker: Broker) -> None:
    broker.fill_disk()
    (found,) = problems(run("doctor", "--json"))
    assert "has 0 B left of " in found
    assert "make room" in found


@pytest.mark.parametrize(("ahead_s", "word"), [(3600, "ahead of"), (-3600, "behind")])
def test_the_clock_is_wrong(run: Run, broker: Broker, ahead_s: int, word: str) -> None:
    broker.set_clock(round((time.time() + ahead_s) * 1000))
    (found,) = problems(run("doctor", "--json"))
    assert word in found
    assert "NTP" in found


def test_the_port_is_taken(run: Run, broker: Broker, server_properties: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server_properties.write_text(f"listeners=PLAINTEXT://127.0.0.1:{port}\nlog.dirs=/tmp/x\n")
        (found,) = problems(run("doctor", str(server_properties), "--json"))
    assert f"127.0.0.1:{port} is taken by process {os.getpid()} (" in found


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("nowhere.invalid", "Name or service not known|name resolution"),
        ("192.0.2.1", "Cannot assign requested address"),
    ],
)
def test_a_listener_that_cannot_be_bound_is_no_end_of_the_checks(
    run: Run, server_properties: Path, host: str, reason: str
) -> None:
    text = server_properties.read_text()
    server_properties.write_text(text.replace("//127.0.0.1:", f"//{host}:"))
    done = run("doctor", str(server_properties), "--json")
    (found,) = problems(done)
    assert re.search(rf"cannot listen on {host}:\d+: .*({reason})", found)
    assert "the clock is not behind the logs" in done.stdout


def test_a_directory_that_cannot_be_read_is_no_end_of_the_checks(
    run: Run, server_properties: Path, tmp_path: Path
) -> None:
    directory = tmp_path / ("x" * 300)
    server_properties.write_text(f"listeners=PLAINTEXT://127.0.0.1:0\nlog.dirs={directory}\n")
    done = run("doctor", str(server_properties), "--json")
    assert all(each.startswith(f"{directory}: File name too long") for each in problems(done))
    assert done.exit_code == 1
    assert "the clocks of broker and client agree" in done.stdout


def test_a_segment_that_is_deleted_meanwhile_is_passed_over(
    run: Run, server_properties: Path, tmp_path: Path
) -> None:
    log = tmp_path / "data" / "orders-0" / "0.log"
    log.parent.mkdir(parents=True)
    log.symlink_to("deleted")
    assert problems(run("doctor", str(server_properties), "--json")) == []


def test_the_limit_of_files_is_low(
    run: Run, server_properties: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 256))
    (found,) = problems(run("doctor", str(server_properties), "--json"))
    assert "256 files" in found
    assert "ulimit -n" in found


def test_the_file_is_wrong_or_written_in_the_future(
    run: Run, server_properties: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.properties"
    bad.write_text("num.partitions=many\n")
    (found,) = problems(run("doctor", str(bad), "--json"))
    assert "num.partitions" in found
    log = tmp_path / "data" / "orders-0" / "0.log"
    log.parent.mkdir(parents=True)
    log.touch()
    os.utime(log, (time.time() + 3600,) * 2)
    (found,) = problems(run("doctor", str(server_properties), "--json"))
    assert "after the present time" in found
