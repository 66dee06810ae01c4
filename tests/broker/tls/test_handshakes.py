"""Handshakes alone: they do not stop the event loop, and are limited in number and in time."""

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from odradek.broker.network import tls_handshakes
from odradek.broker.network.acceptor import Acceptor
from odradek.broker.network.connection import Connection
from odradek.broker.network.tls_handshakes import Handshakes
from odradek.broker.network.tls_transport import output_of
from odradek.broker.security.principal import Principal, RefusedClientError
from odradek.config.listeners import SecurityProtocol
from tests.support.broker_in_loop import until
from tests.support.certificates import TlsFiles
from tests.support.fake_server import FakeServer

LISTENER = SimpleNamespace(name="SSL", security_protocol=SecurityProtocol.SSL)
LIMIT = 3
CLOSE_NOTIFY = bytes.fromhex("15 0303 0002 0100")  # an alert (RFC 8446, 6.1)
LIMIT_SECONDS = 100.0


class SlowTls:
    """Certificates whose check of a client waits until the test lets it go on."""

    def __init__(self, files: TlsFiles) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(files.server_pem)
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.checked = 0
        self.refusal: Exception | None = None

    def check(self, sock: ssl.SSLSocket) -> Principal:
        self.checked += 1
        self.may_go_on.wait()
        if self.refusal is not None:
            raise self.refusal
        return Principal("User", "ann")


class Rig:
    """A listening socket, its handshakes, and clients."""

    def __init__(self, files: TlsFiles) -> None:
        loop = asyncio.get_running_loop()
        self.server = FakeServer(loop)
        self.tls = SlowTls(files)
        self.handshakes = Handshakes(loop)
        self.handshakes.limit = LIMIT
        self.context = ssl.create_default_context(cafile=str(files.ca))
        listening = socket.create_server(("127.0.0.1", 0))
        self.address = listening.getsockname()
        make_connection = partial(Connection, self.server, LISTENER, output_of)
        self.acceptor = Acceptor(loop, listening, make_connection, 64, set_up=self._set_up)
        self.clients: list[socket.socket] = []

    async def _set_up(self, connection: Connection, client: socket.socket) -> None:
        self.handshakes.begin(client, connection, self.tls)

    async def half_open(self) -> None:
        """A client that connects and says nothing."""
        count = len(self.server.connections)
        self.clients.append(socket.create_connection(self.address))
        await until(lambda: len(self.server.connections) > count)

    async def send_hello(self, client: socket.socket) -> None:
        """Send the first bytes of a handshake, and wait until the broker waits for the next."""
        outgoing = ssl.MemoryBIO()
        tls = self.context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
        with suppress(ssl.SSLWantReadError):
            tls.do_handshake()
        client.settimeout(LIMIT_SECONDS)
        client.sendall(outgoing.read())
        await asyncio.to_thread(client.recv, 1)
        await until(lambda: all(each.waits_for_client for each in self.handshakes._unfinished))

    async def open(self) -> ssl.SSLSocket:
        """A client whose side of the handshake is complete."""
        count = len(self.server.connections)
        plain = await asyncio.to_thread(socket.create_connection, self.address, LIMIT_SECONDS)
        wrap = partial(self.context.wrap_socket, plain, server_hostname="localhost")
        client = await asyncio.to_thread(wrap)
        self.clients.append(client)
        await until(lambda: len(self.server.connections) > count)
        return client

    async def ask(self, client: ssl.SSLSocket, request: bytes) -> bytes:
        client.sendall(len(request).to_bytes(4) + request)
        answer = await asyncio.to_thread(client.recv, 1_000)
        return answer[4:]

    def open_count(self) -> int:
        transports = (connection._transport for connection in self.server.connections)
        return sum(each is not None and not each.is_closing() for each in transports)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    made = Rig(TlsFiles(tmp_path))
    yield made
    made.tls.may_go_on.set()
    made.acceptor.close()
    for client in made.clients:
        client.close()
    for connection in made.server.connections:
        connection.close(None)
    await until(lambda: not made.open_count())
    made.handshakes.close()
    made.server.disk.close()


async def test_others_are_served_while_a_handshake_works(rig: Rig) -> None:
    first = await rig.open()
    assert await rig.ask(first, b"before") == b"before"
    rig.tls.may_go_on.clear()
    slow = await rig.open()
    await until(lambda: rig.tls.checked == 2)
    assert await rig.ask(first, b"meanwhile") == b"meanwhile"
    assert rig.server.connections[0].session.principal == Principal("User", "ann")
    rig.tls.may_go_on.set()
    assert await rig.ask(slow, b"at last") == b"at last"


async def test_the_oldest_silent_client_goes_when_there_are_too_many(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.tls.may_go_on.clear()
    busy = await rig.open()  # the oldest, but it waits for the broker
    await until(lambda: rig.tls.checked == 1)
    for _ in range(2 * LIMIT):
        await rig.half_open()
    assert rig.open_count() == LIMIT
    assert f"there are {LIMIT} unfinished TLS handshakes" in caplog.text
    rig.tls.may_go_on.set()
    assert await rig.ask(busy, b"served") == b"served"


async def test_a_client_that_has_answered_stays_when_there_are_too_many(rig: Rig) -> None:
    for _ in range(LIMIT):
        await rig.half_open()
    first, second, *_ = rig.handshakes._unfinished
    await rig.send_hello(rig.clients[0])
    await rig.half_open()
    assert first in rig.handshakes._unfinished
    assert second not in rig.handshakes._unfinished


async def test_a_client_that_ends_its_handshake_is_closed_without_a_line_in_the_log(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    await rig.half_open()
    await rig.send_hello(rig.clients[0])
    rig.clients[0].sendall(CLOSE_NOTIFY)
    await until(lambda: not rig.open_count())
    assert caplog.messages == []


async def test_a_handshake_that_takes_too_long_ends(
    rig: Rig, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_handshakes, "HANDSHAKE_S", 0.02)
    monkeypatch.setattr(tls_handshakes, "CHECK_EVERY_S", 0.01)
    await rig.half_open()
    await until(lambda: not rig.open_count())
    assert "its TLS handshake was not complete after 0.02 s" in caplog.text


async def test_a_client_that_is_closed_while_a_thread_works_for_it_is_forgotten(rig: Rig) -> None:
    rig.tls.may_go_on.clear()
    await rig.open()
    await until(lambda: rig.tls.checked == 1)
    rig.server.connections[0].close("enough")
    await asyncio.sleep(0)
    assert not rig.server.lost.is_set()  # the thread still has the socket
    rig.tls.may_go_on.set()
    await rig.server.lost.wait()
    assert not rig.handshakes._unfinished


async def test_a_client_that_may_not_connect_is_refused_with_the_reason(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.tls.refusal = RefusedClientError("nobody knows it")
    client = await rig.open()
    assert await asyncio.to_thread(client.recv, 1) == b""
    assert "TLS handshake failed: nobody knows it" in caplog.text


async def test_a_client_is_closed_at_once_if_its_check_fails_inside_the_broker(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.tls.refusal = IndexError("no such group")
    client = await rig.open()
    assert await asyncio.to_thread(client.recv, 1) == b""
    assert not rig.handshakes._unfinished
    assert "no such group" in caplog.text
