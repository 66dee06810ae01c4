"""Which bootstrap server a command uses, and how long it waits for one."""

import socket
import time
from collections.abc import Callable
from typing import NoReturn

import pytest

from odradek.tools.client import servers
from odradek.tools.client.failure import CommandError
from odradek.tools.client.servers import listening_server
from odradek.tools.client.wire import WireCluster


def refuse(*_: object) -> NoReturn:
    raise ConnectionRefusedError("Connection refused")


def without_librdkafka(address: str) -> WireCluster:
    return WireCluster({"bootstrap.servers": address})


def never(*_: object) -> NoReturn:
    raise AssertionError("nothing is waited for")


def test_a_broker_on_this_machine_that_is_starting_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))  # connections are refused until it listens
        host, port = server.getsockname()
        monkeypatch.setattr(time, "sleep", lambda _: server.listen())
        assert listening_server(f"{host}:{port}") == (host, port)


@pytest.mark.parametrize("connect", [listening_server, without_librdkafka])
@pytest.mark.parametrize("host", ["localhost", "127.0.0.2", "[::1]"])
def test_a_broker_that_does_not_start_is_waited_for_until_a_deadline(
    monkeypatch: pytest.MonkeyPatch, host: str, connect: Callable[[str], object]
) -> None:
    waits = []
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(time, "sleep", waits.append)
    monkeypatch.setattr(servers, "START_S", 0.01)
    with pytest.raises(CommandError, match="Connection refused; is the broker running"):
        connect(f"{host}:9092")
    assert waits


def test_a_broker_elsewhere_that_refuses_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(time, "sleep", never)
    with pytest.raises(CommandError, match="Connection refused; is the broker running"):
        listening_server("broker.example:9092,192.0.2.1:9092")
