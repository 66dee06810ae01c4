"""The acceptor: who is let in, how many at once, and what happens without descriptors."""

import asyncio
import errno
import logging
import socket
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from odradek.broker.network import acceptor as module
from odradek.broker.network.acceptor import ACCEPTED_PER_TURN, Acceptor

LIMIT_SECONDS = 20.0


class Listening(socket.socket):
    """A listening socket that refuses to accept as often as it is told to."""

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


class House:
    """An acceptor, and what has become of who knocked."""

    def __init__(self) -> None:
        self.guests: list[asyncio.BaseTransport] = []
        self.changed = asyncio.Event()
        self.clients: list[socket.socket] = []
        self.socket = Listening()
        self.socket.bind(("127.0.0.1", 0))
        self.address = self.socket.getsockname()
        self.acceptor = Acceptor(
            asyncio.get_running_loop(), self.socket, lambda: Guest(self), backlog=256
        )

    def knock(self, count: int = 1) -> None:
        """So many connect; the kernel takes them into its queue at once."""
        for _ in range(count):
            self.clients.append(socket.create_connection(self.address))

    async def settled(self, count: int) -> None:
        """Wait until so many have been let in."""
        while len(self.guests) < count:
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), LIMIT_SECONDS)


class Guest(asyncio.BufferedProtocol):
    def __init__(self, house: House) -> None:
        self.house = house

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.house.guests.append(transport)
        self.house.changed.set()

    def get_buffer(self, _: int) -> bytearray:
        return bytearray(1)

    def buffer_updated(self, nbytes: int) -> None: ...


@pytest_asyncio.fixture
async def house() -> AsyncIterator[House]:
    made = House()
    yield made
    if made.socket.fileno() >= 0:
        made.acceptor.close()
    for closing in (*made.guests, *made.clients):
        closing.close()
    await asyncio.sleep(0)


async def test_all_who_wait_are_let_in_within_a_few_turns(house: House) -> None:
    house.knock(ACCEPTED_PER_TURN)
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(house.guests) == ACCEPTED_PER_TURN


async def test_more_than_a_turn_takes_are_let_in_by_the_next_ones(house: House) -> None:
    house.knock(2 * ACCEPTED_PER_TURN + 1)
    await house.settled(2 * ACCEPTED_PER_TURN + 1)


async def test_a_client_that_has_gone_again_keeps_nobody_out(house: House) -> None:
    house.socket.failures = [errno.ECONNABORTED]
    house.knock()
    await house.settled(1)


async def test_without_descriptors_newcomers_wait_and_are_let_in_later(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.01)
    house.socket.failures = [errno.EMFILE, errno.ENFILE]
    with caplog.at_level(logging.ERROR):
        house.knock(2)
        await house.settled(2)
    assert [record.getMessage() for record in caplog.records] == [
        "cannot accept connections for 0.01 s: EMFILE",
        "cannot accept connections for 0.01 s: ENFILE",
    ]


async def test_nobody_is_let_in_after_it_was_closed_while_it_waited(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, watched = asyncio.get_running_loop(), []
    monkeypatch.setattr(module, "RETRY_S", 0.01)
    monkeypatch.setattr(house.acceptor, "_watch", lambda: watched.append(True))
    house.socket.failures = [errno.EMFILE]
    house.knock()
    await asyncio.wait_for(house.socket.has_failed.wait(), LIMIT_SECONDS)
    retry_at = loop.time() + module.RETRY_S
    house.acceptor.close()
    passed = loop.create_future()
    loop.call_at(retry_at + 0.01, passed.set_result, None)
    await passed  # timers go off in the order of their times
    assert not watched
    assert not house.guests
    with pytest.raises(ConnectionRefusedError):
        house.knock()
