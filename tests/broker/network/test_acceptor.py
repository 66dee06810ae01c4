"""The acceptor: how many connections it accepts per turn, and what it does without descriptors."""

import asyncio
import errno
import logging
import socket
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from odradek.broker.network import acceptor as module
from odradek.broker.network.acceptor import ACCEPTED_PER_TURN, Acceptor

LIMIT_SECONDS = 100.0


class Listening(socket.socket):
    """A listening socket whose `accept` raises the errors in `failures` first."""

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[int] = []
        self.has_failed = asyncio.Event()

    def accept(self) -> tuple[socket.socket, object]:
        if self.failures:
            number = self.failures.pop(0)
            self.has_failed.set()
            raise OSError(number, errno.errorcode[number])
        return super().accept()


class Rig:
    """An acceptor, the clients that have connected, and the connections that it accepted."""

    def __init__(self) -> None:
        self.accepted: list[asyncio.BaseTransport] = []
        self.changed = asyncio.Event()
        self.clients: list[socket.socket] = []
        self.socket = Listening()
        self.socket.bind(("127.0.0.1", 0))
        self.address = self.socket.getsockname()
        loop = asyncio.get_running_loop()
        self.acceptor = Acceptor(
            loop,
            self.socket,
            lambda: AcceptedConnection(self),
            backlog=256,
        )

    def connect(self, count: int = 1) -> None:
        """Connect `count` clients; the kernel queues them at once."""
        for _ in range(count):
            self.clients.append(socket.create_connection(self.address))

    async def settled(self, count: int) -> None:
        """Wait until `count` connections have been accepted."""
        while len(self.accepted) < count:
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), LIMIT_SECONDS)


class AcceptedConnection(asyncio.BufferedProtocol):
    def __init__(self, rig: Rig) -> None:
        self.rig = rig

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.rig.accepted.append(transport)
        self.rig.changed.set()

    def get_buffer(self, _: int) -> bytearray:
        return bytearray(1)

    def buffer_updated(self, nbytes: int) -> None: ...


@pytest_asyncio.fixture
async def rig() -> AsyncIterator[Rig]:
    made = Rig()
    yield made
    if made.socket.fileno() >= 0:
        made.acceptor.close()
    for transport in made.accepted:
        transport.close()
    for client in made.clients:
        client.close()
    await asyncio.sleep(0)


async def test_all_waiting_clients_are_accepted_within_a_few_turns(rig: Rig) -> None:
    rig.connect(ACCEPTED_PER_TURN)
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(rig.accepted) == ACCEPTED_PER_TURN


async def test_clients_over_the_limit_of_a_turn_are_accepted_in_the_next_turns(rig: Rig) -> None:
    rig.connect(2 * ACCEPTED_PER_TURN + 1)
    await rig.settled(2 * ACCEPTED_PER_TURN + 1)


async def test_a_client_that_has_disconnected_does_not_stop_the_acceptor(rig: Rig) -> None:
    rig.socket.failures = [errno.ECONNABORTED]
    rig.connect()
    await rig.settled(1)


async def test_without_descriptors_new_clients_wait_and_are_accepted_later(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.01)
    rig.socket.failures = [errno.EMFILE, errno.ENFILE]
    with caplog.at_level(logging.INFO):
        rig.connect(2)
        await rig.settled(2)
    assert [record.getMessage() for record in caplog.records] == [
        "no connection is accepted until others are closed: EMFILE (raise ulimit -n, or "
        "LimitNOFILE of the service)",
    ]


async def test_an_acceptor_that_is_closed_while_it_waits_does_not_accept_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, watched = asyncio.get_running_loop(), []
    monkeypatch.setattr(module, "RETRY_S", 0.01)
    monkeypatch.setattr(rig.acceptor, "_watch", lambda: watched.append(True))
    rig.socket.failures = [errno.EMFILE]
    rig.connect()
    await asyncio.wait_for(rig.socket.has_failed.wait(), LIMIT_SECONDS)
    retry_at = loop.time() + module.RETRY_S
    rig.acceptor.close()
    passed = loop.create_future()
    loop.call_at(retry_at + 0.01, passed.set_result, None)
    await passed  # the loop calls timers in the order of their times
    assert not watched
    assert not rig.accepted
    with pytest.raises(ConnectionRefusedError):
        rig.connect()
