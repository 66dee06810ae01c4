"""The end of a TLS connection: nothing leaves the socket that is not encrypted."""

import asyncio
import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.network import tls_transport
from odradek.broker.network.tls_transport import CHUNK_BYTES, TlsOutput, TlsTransport
from tests.support.broker_in_loop import until
from tests.support.certificates import TlsFiles

SECRET = b"records of a topic" * 1000


class Ends(asyncio.BufferedProtocol):
    """A connection that only notes its end."""

    def __init__(self) -> None:
        self.has_ended = asyncio.Event()
        self.error: Exception | None = None
        self.room = memoryview(bytearray(1024))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.room

    def connection_lost(self, exc: Exception | None) -> None:
        self.error = exc
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


class BadRecordError(ssl.SSLError):
    """An error as OpenSSL reports it."""

    reason = "BAD_RECORD"


class Breaks:
    """The socket of a client that has sent a request before its connection broke."""

    def __init__(self, error: OSError) -> None:
        self.left = [b"request"]
        self.error = error

    def recv_into(self, view: memoryview) -> int:
        if not self.left:
            raise self.error
        request = self.left.pop()
        view[: len(request)] = request
        return len(request)


@pytest.mark.parametrize("error", [ConnectionResetError(), BadRecordError()])
async def test_what_was_received_before_an_error_is_served_and_the_error_is_reported(
    pair: tuple[ssl.SSLSocket, ssl.SSLSocket], error: OSError
) -> None:
    served, _ = pair
    serves = Serves()
    transport = TlsTransport(
        asyncio.get_running_loop(), served, serves, memoryview(bytearray(CHUNK_BYTES))
    )
    breaks: Any = Breaks(error)
    transport.begin_reading(breaks)
    transport._read()
    await serves.has_ended.wait()
    assert serves.received == b"request"
    assert serves.error is error


async def test_requests_before_a_reset_are_received_in_several_turns(
    pair: tuple[ssl.SSLSocket, ssl.SSLSocket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_transport, "TURN_BYTES", 1)
    served, asking = pair
    serves = Serves()
    serves.room = serves.room[: len(b"request")]
    transport = TlsTransport(
        asyncio.get_running_loop(), served, serves, memoryview(bytearray(CHUNK_BYTES))
    )
    asking.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(3):
        asking.send(b"request")
    with socket.socket(fileno=asking.detach()) as beneath:
        beneath.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.begin_reading(served)
    await until(lambda: serves.is_left.is_set() or serves.has_ended.is_set())
    assert serves.received == 3 * b"request"
    transport.abort()


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
