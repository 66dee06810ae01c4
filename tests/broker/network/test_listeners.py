"""The ports of the listeners: all of them are bound, or none."""

import errno
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from odradek.broker.network import listeners
from odradek.broker.network.listeners import ListenError, bind_listeners, with_ports
from odradek.config.listeners import Listener, SecurityProtocol
from odradek.storage.files import Files
from tests.support.broker_in_loop import broker_in_loop, until
from tests.support.wire import WireClient


def listener(name: str, host: str) -> Listener:
    return Listener(name, host, 0, SecurityProtocol.PLAINTEXT)


def test_a_free_port_is_free_for_each_address_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    both = [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "127.0.0.2")]
    tried: list[int] = []
    bound = listeners._bound

    def bound_or_taken(
        family: socket.AddressFamily, address: str, port: int, options: Sequence[int]
    ) -> socket.socket | None:
        if address == "127.0.0.2":
            tried.append(port)
            if len(tried) == 1:
                raise OSError(errno.EADDRINUSE, "Address already in use")
        return bound(family, address, port, options)

    monkeypatch.setattr(listeners, "_addresses", lambda *_: both)
    monkeypatch.setattr(listeners, "_bound", bound_or_taken)
    (made,) = bind_listeners([listener("A", "localhost")])
    ports = {sock.getsockname()[1] for sock in made.sockets}
    made.close()
    assert len(tried) > 1  # another process may have one, too
    assert ports == {tried[-1]}


@pytest.mark.parametrize("system", ["linux", "darwin"])
def test_a_port_that_is_shared_is_bound_again(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", system)
    (first,) = bind_listeners([listener("A", "127.0.0.1")], shares_ports=True)
    again = with_ports([listener("A", "127.0.0.1")], [first.port])
    (second,) = bind_listeners(again, shares_ports=True)
    for bound in (first, second):
        (sock,) = bound.sockets
        reuses = bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT))
        assert reuses is (system != "linux")
        bound.close()


@pytest.mark.parametrize("host", ["ü" * 80, "a" * 80 + ".example", "ü..example"])
def test_a_host_that_is_no_name_is_refused_and_no_port_stays_bound(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[socket.socket] = []
    bound = listeners._bound

    def noted(
        family: socket.AddressFamily, address: str, port: int, options: Sequence[int]
    ) -> socket.socket | None:
        sock = bound(family, address, port, options)
        assert sock is not None
        opened.append(sock)
        return sock

    monkeypatch.setattr(listeners, "_bound", noted)
    with pytest.raises(ListenError, match="cannot listen on"):
        bind_listeners([listener("A", "127.0.0.1"), listener("B", host)])
    assert [sock.fileno() for sock in opened] == [-1]


async def test_a_client_that_vanishes_is_noticed(tmp_path: Path) -> None:
    async with broker_in_loop([tmp_path], Files()) as broker:
        connections = broker._running._server.connections
        with WireClient(broker.port):
            await until(lambda: connections)
            (connection,) = connections
            output = connection._sender._output
            assert output.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
