"""The end of a TLS connection: nothing leaves the socket that is not encrypted."""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from odradek.broker.network.tls_transport import CHUNK_BYTES, TlsOutput, TlsTransport
from tests.support.certificates import TlsFiles

SECRET = b"records of a topic" * 1000


class Ends(asyncio.BufferedProtocol):
    """A connection that only notes its end."""

    def __init__(self) -> None:
        self.has_ended = asyncio.Event()
        self.room = memoryview(bytearray(1024))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.room

    def connection_lost(self, exc: Exception | None) -> None:
        self.has_ended.set()


class Serves(Ends):
    """A connection that has something to serve when its client ends."""

    def __init__(self) -> None:
        super().__init__()
        self.is_left = asyncio.Event()
        self.received = b""

    def buffer_updated(self, nbytes: int) -> None:
        self.received += bytes(self.room[:nbytes])

    def eof_received(self) -> bool:
        assert not self.is_left.is_set(), "it has ended once"
        self.is_left.set()
        return True


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[ssl.SSLSocket, ssl.SSLSocket]]:
    """The broker's and the client's side of a connection whose handshake is complete."""
    files = TlsFiles(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.server_pem)
    context.num_tickets = 0
    trusting = ssl.create_default_context(cafile=str(files.ca))
    listening = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listening.getsockname())
    accepted, _ = listening.accept()
    listening.close()
    accepted.setblocking(False)
    client.setblocking(False)
    served = context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
    asking = trusting.wrap_socket(
        client, server_hostname="localhost", do_handshake_on_connect=False
    )
    with served, asking:
        while asking.version() is None or served.version() is None:
            for side in (asking, served):
                with suppress(ssl.SSLWantReadError):
                    side.do_handshake()
        yield served, asking


async def test_nothing_is_sent_once_the_client_has_ended_its_tls(
    pair: tuple[ssl.SSLSocket, ssl.SSLSocket],
) -> None:
    served, asking = pair
    ends = Ends()
    transport = TlsTransport(
        asyncio.get_running_loop(), served, ends, memoryview(bytearray(CHUNK_BYTES))
    )
    with pytest.raises(BrokenPipeError):
        transport.output.send(SECRET)  # before the handshake is known to be complete
    transport.begin_reading(served)
    assert transport.output.send(SECRET)
    with suppress(ssl.SSLError):  # it has not read the answer
        asking.unwrap()
    await ends.has_ended.wait()
    with pytest.raises(BrokenPipeError):
        transport.output.send(SECRET)
    with socket.socket(fileno=asking.detach()) as beneath:
        received = beneath.recv(len(SECRET) * 2)
    assert received
    assert SECRET[:100] not in received


async def test_a_protocol_may_serve_what_is_left_when_the_client_has_ended(
    pair: tuple[ssl.SSLSocket, ssl.SSLSocket],
) -> None:
    served, asking = pair
    serves = Serves()
    transport = TlsTransport(
        asyncio.get_running_loop(), served, serves, memoryview(bytearray(CHUNK_BYTES))
    )
    transport.begin_reading(served)
    asking.send(b"request")
    with suppress(ssl.SSLError):  # it waits for the broker's end
        asking.unwrap()
    await serves.is_left.wait()
    assert serves.received == b"request"
    transport.pause_reading()
    transport.resume_reading()
    await asyncio.sleep(0)
    assert transport.output.send(SECRET[:100])
    transport.close()
    await serves.has_ended.wait()
    with socket.socket(fileno=asking.detach()) as beneath:
        assert SECRET[:100] not in beneath.recv(1000)


async def test_a_protocol_without_room_does_not_hold_the_event_loop(
    pair: tuple[ssl.SSLSocket, ssl.SSLSocket],
) -> None:
    class Full(Ends):
        asked = 0

        def get_buffer(self, sizehint: int) -> memoryview:
            self.asked += 1
            assert self.asked == 1, "it is asked again in the same turn"
            return self.room[:0]

    served, asking = pair
    full = Full()
    transport = TlsTransport(
        asyncio.get_running_loop(), served, full, memoryview(bytearray(CHUNK_BYTES))
    )
    transport.begin_reading(served)
    asking.send(b"request")
    transport._read()
    assert full.asked == 1
    transport.abort()


@pytest.mark.parametrize("error", [ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError])
def test_an_answer_to_a_client_that_has_ended_is_a_broken_pipe(error: type[Exception]) -> None:
    class Ended:
        def send(self, _data: bytes) -> int:
            raise error

    output = TlsOutput(Ended(), memoryview(b""))  # type: ignore[arg-type] # as much as is needed
    output.encrypts = True
    with pytest.raises(BrokenPipeError):
        output.send(b"late")
