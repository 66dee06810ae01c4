"""The connection alone, with a scripted dispatcher and a client socket."""

import asyncio
import logging
import os
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio

from odradek.broker.network.answer_sender import CHECKED_MS, FILE_CHUNK_BYTES
from odradek.broker.network.connection import Connection
from odradek.broker.network.frame_memory import FrameMemory
from odradek.broker.network.receive_buffer import START_BYTES
from odradek.broker.network.serving_state import FINISHING
from odradek.broker.requests.answer import RefusedRequestError
from odradek.protocol.api_keys import ApiKey
from odradek.storage.files import Files, OpenFile
from odradek.storage.log import RecordsSlice
from tests.support.broker_in_loop import until
from tests.support.fake_server import LIMIT, FakeAnswer, FakeServer

MIB = 1024 * 1024
UNREAD_BYTES = 60_000  # less than ANSWERS_BYTES, so that it is sent after the requests are served


class Client:
    """The other end, with the framing done."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, *requests: bytes) -> None:
        self.writer.write(b"".join(struct.pack(">i", len(r)) + r for r in requests))

    async def receive(self) -> bytes:
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        return await self.reader.readexactly(size)

    async def ended(self) -> bool:
        try:
            return await self.reader.read() == b""
        except ConnectionResetError:
            return True


class FilesSeen(Files):
    """Notes where pages are checked before they are sent; `is_cold`: none can be copied."""

    def __init__(self, *, is_cold: bool = False) -> None:
        self.checked: list[int] = []
        self._is_cold = is_cold

    def pread_cached(self, file: OpenFile, size: int, position: int) -> bytes | None:
        return None if self._is_cold else super().pread_cached(file, size, position)

    def is_cached(self, file: OpenFile, size: int, position: int) -> bool:
        self.checked.append(position)
        return super().is_cached(file, size, position)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[FakeServer]:
    made = FakeServer(asyncio.get_running_loop())
    yield made
    for connection in made.connections:
        connection.close(None)
    made.disk.close()


@pytest_asyncio.fixture
async def client(server: FakeServer) -> AsyncIterator[Client]:
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(
        lambda: Connection(server, SimpleNamespace(name="PLAINTEXT")), "127.0.0.1", 0
    )
    port = listening.sockets[0].getsockname()[1]
    made = Client(*await asyncio.open_connection("127.0.0.1", port))
    yield made
    made.writer.close()
    listening.close()
    await asyncio.wait_for(server.lost.wait(), 5)


async def test_requests_are_answered_in_order(server: FakeServer, client: Client) -> None:
    requests = [b"request %d" % number for number in range(500)]
    client.send(*requests)
    assert [await client.receive() for _ in requests] == requests


async def test_a_request_may_come_byte_by_byte(server: FakeServer, client: Client) -> None:
    for byte in struct.pack(">i", 5) + b"hello":
        client.writer.write(bytes([byte]))
        await client.writer.drain()
        await asyncio.sleep(0)
    assert await client.receive() == b"hello"


async def test_a_large_request_grows_the_buffer_and_small_ones_shrink_it(
    server: FakeServer, client: Client
) -> None:
    client.send(b"x" * MIB)
    await client.receive()
    connection = server.connections[0]
    assert connection.buffer_bytes >= MIB
    for _ in range(100):
        client.send(b"small")
        await client.receive()
    assert connection.buffer_bytes == 0


async def test_the_buffer_of_a_request_that_needed_a_grant_is_freed_when_it_is_answered(
    server: FakeServer, client: Client
) -> None:
    request = b"x" * (5 * MIB)
    pending = asyncio.get_running_loop().create_future()
    server.answers[request] = FakeAnswer(pending=pending)
    client.send(request)
    await until(lambda: server.served)
    (connection,) = server.connections
    assert connection.buffer_bytes == 0
    assert server.frame_memory.granted_bytes == 4 + len(request)
    pending.set_result(b"answer")
    assert await client.receive() == b"answer"
    assert server.frame_memory.granted_bytes == 0


def has_arrived(server: FakeServer, request: bytes) -> bool:
    """Whether this is what the first connection has received and not served."""
    connection = server.connections[0]
    return connection._received.unserved_bytes == 4 + len(request)


async def test_the_next_request_waits_until_the_one_before_is_answered(
    server: FakeServer, client: Client
) -> None:
    pending = asyncio.get_running_loop().create_future()
    server.answers[b"slow"] = FakeAnswer(pending=pending)
    client.send(b"slow", b"quick")
    await asyncio.wait_for(server.has_served.wait(), 5)
    await until(lambda: has_arrived(server, b"quick"))
    assert server.served == [b"slow"]
    pending.set_result(b"at last")
    assert [await client.receive(), await client.receive()] == [b"at last", b"quick"]


def heartbeat(number: int) -> bytes:
    return struct.pack(">hh", ApiKey.HEARTBEAT, 4) + b"%d" % number


async def test_requests_that_wait_for_a_turn_keep_their_place_in_their_own_connection(
    server: FakeServer, client: Client
) -> None:
    requests = [
        heartbeat(number) if number % 5 else b"request %d" % number for number in range(300)
    ]
    client.send(*requests)
    assert [await client.receive() for _ in requests] == requests


async def test_other_requests_pass_those_that_wait_for_a_turn(
    server: FakeServer, client: Client
) -> None:
    address = client.writer.get_extra_info("peername")
    other = Client(*await asyncio.open_connection(*address))
    many = 500
    client.send(*(heartbeat(number) for number in range(many)))
    other.send(b"produce")
    assert await other.receive() == b"produce"
    assert len(server.served) < many // 2
    assert [await client.receive() for _ in range(many)] == [heartbeat(n) for n in range(many)]
    other.writer.close()


async def test_a_connection_that_is_lost_while_it_waits_for_a_turn_is_skipped(
    server: FakeServer, client: Client
) -> None:
    many = 500
    client.send(*(heartbeat(number) for number in range(many)))
    await asyncio.wait_for(server.has_served.wait(), 5)
    server.connections[0].close(None)
    served = len(server.served)
    await asyncio.wait_for(server.lost.wait(), 5)
    await until(lambda: not server.group_turns._waiting)
    assert len(server.served) == served < many


async def test_the_work_that_a_client_waits_for_is_cancelled_when_it_disconnects(
    server: FakeServer, client: Client
) -> None:
    pending = asyncio.get_running_loop().create_future()
    server.answers[b"slow"] = FakeAnswer(pending=pending)
    client.send(b"slow")
    await asyncio.wait_for(server.has_served.wait(), 5)
    client.writer.close()
    await asyncio.wait_for(server.lost.wait(), 5)
    assert pending.cancelled()


def end(client: Client, how: str) -> None:
    """End the client's side of the connection."""
    if how == "half":
        client.writer.write_eof()
    elif how == "close":
        client.writer.close()
    else:
        sock = client.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.writer.transport.abort()


async def ended_while_busy(
    server: FakeServer, client: Client, how: str, *requests: bytes, runs_on: bool = True
) -> asyncio.Future[Any]:
    """Send requests, and end when the first one waits. Returns what it waits for."""
    pending = asyncio.get_running_loop().create_future()
    server.answers[b"slow"] = FakeAnswer(pending=pending, runs_on=runs_on)
    client.send(b"slow", *requests)
    size = sum(4 + len(request) for request in requests)
    await until(lambda: server.connections and server.connections[0]._waiting)
    connection = server.connections[0]
    await until(lambda: connection._received.unserved_bytes == size)
    end(client, how)
    await until(lambda: connection._state.has_ended)
    return pending


@pytest.mark.parametrize("how", ["half", "close", "reset"])
async def test_what_a_client_has_sent_before_its_end_is_served(
    server: FakeServer, client: Client, how: str
) -> None:
    throttled = server.answers[b"much"] = FakeAnswer()
    throttled.response, throttled.meter = None, Meter(50)
    server.answers[b"acks=0"] = None
    pending = await ended_while_busy(server, client, how, b"much", b"acks=0", b"acks=0")
    assert server.served == [b"slow"]
    assert not server.lost.is_set()
    pending.set_result(None)  # as for acks=0: nothing is sent that could fail
    await asyncio.wait_for(server.lost.wait(), 5)
    assert server.served == [b"slow", b"much", b"acks=0", b"acks=0"]


async def test_a_client_that_has_shut_down_its_side_gets_its_answers(
    server: FakeServer, client: Client
) -> None:
    pending = await ended_while_busy(server, client, "half", b"quick")
    pending.set_result(b"at last")
    assert [await client.receive(), await client.receive()] == [b"at last", b"quick"]
    assert await client.ended()


async def test_requests_that_wait_for_others_are_cancelled_at_the_end_and_the_next_are_served(
    server: FakeServer, client: Client
) -> None:
    again = asyncio.get_running_loop().create_future()
    server.answers[b"again"] = FakeAnswer(pending=again)
    server.answers[b"acks=0"] = None
    pending = await ended_while_busy(server, client, "close", b"again", b"acks=0", runs_on=False)
    await asyncio.wait_for(server.lost.wait(), 5)
    assert pending.cancelled()
    assert again.cancelled()
    assert server.served == [b"slow", b"again", b"acks=0"]


async def test_an_answer_that_cannot_be_sent_ends_what_a_client_has_left(
    server: FakeServer, client: Client
) -> None:
    pending = await ended_while_busy(server, client, "reset", b"too late")
    pending.set_result(b"at last")
    await asyncio.wait_for(server.lost.wait(), 5)
    assert server.served == [b"slow"]


async def test_a_connection_has_ended_when_its_request_has(
    server: FakeServer, client: Client
) -> None:
    pending = asyncio.get_running_loop().create_future()
    server.answers[b"slow"] = FakeAnswer(pending=pending, runs_on=True)
    client.send(b"slow", b"too late")
    await until(lambda: server.connections and server.connections[0]._waiting)
    server.connections[0].close("there are too many connections")
    assert await client.ended()
    await until(lambda: server.connections[0]._is_lost)
    assert not server.lost.is_set(), "what its request still opens would never be closed"
    pending.set_result(b"too late")
    await asyncio.wait_for(server.lost.wait(), 5)
    assert server.served == [b"slow"]


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_a_client_that_has_ended_does_not_hold_up_a_stop(
    server: FakeServer, client: Client, how: str
) -> None:
    pending = await ended_while_busy(server, client, how, b"too late")
    (connection,) = server.connections
    connection.finish()
    assert not pending.cancelled(), "its request may take until the broker stops waiting"
    connection.close("the broker stops")
    await asyncio.wait_for(server.lost.wait(), 5)
    assert pending.cancelled()
    assert server.served == [b"slow"]


async def test_a_request_without_an_answer_does_not_delay_the_next(
    server: FakeServer, client: Client
) -> None:
    server.answers[b"acks=0"] = None
    client.send(b"acks=0", b"next")
    assert await client.receive() == b"next"


@pytest.mark.parametrize("size", [-1, -(2**31), LIMIT + 1, 2**31 - 1])
async def test_an_impossible_length_closes_the_connection_with_one_line(
    server: FakeServer, client: Client, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "odradek"):
        client.writer.write(struct.pack(">i", size) + b"tail")
        assert await client.ended()
    assert len(caplog.messages) == 1
    assert str(size) in caplog.messages[0]


async def test_a_refused_request_closes_the_connection_with_its_reason(
    server: FakeServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    server.answers[b"bad"] = RefusedRequestError("API key 99 is not served")
    with caplog.at_level(logging.WARNING, "odradek"):
        client.send(b"bad", b"next")
        assert await client.ended()
    assert server.served == [b"bad"]
    assert "API key 99 is not served" in caplog.messages[0]


async def test_a_slice_of_a_file_is_sent_between_bytes(
    server: FakeServer, client: Client, tmp_path: Path
) -> None:
    data = os.urandom(3 * MIB)
    path = tmp_path / "file"
    path.write_bytes(data)
    file = Files().open(path)
    server.answers[b"fetch"] = FakeAnswer(
        b"before", RecordsSlice(file, 100, 2 * MIB), b"between", RecordsSlice(file, 0, 10), b"end"
    )
    client.send(b"fetch", b"next")
    expected = b"before" + data[100 : 100 + 2 * MIB] + b"between" + data[:10] + b"end"
    assert await client.receive() == expected
    assert await client.receive() == b"next"


async def test_small_slices_of_files_are_sent_between_bytes(
    server: FakeServer, client: Client, tmp_path: Path
) -> None:
    data = os.urandom(3000)
    path = tmp_path / "file"
    path.write_bytes(data)
    file = Files().open(path)
    slices = [RecordsSlice(file, *each) for each in ((5, 2000), (7, 0), (0, 10), (2990, 10))]
    for cold in (False, True):
        server.files = FilesSeen(is_cold=cold)
        server.answers[b"fetch"] = FakeAnswer(
            slices[0], b"a", slices[1], slices[2], b"b", slices[3]
        )
        client.send(b"fetch", b"next")
        assert await client.receive() == data[5:2005] + b"a" + data[:10] + b"b" + data[2990:]
        assert await client.receive() == b"next"
        assert bool(server.files.checked) == cold, "cached slices are copied, others are not"


@pytest.mark.parametrize("pause_ms", [0, 2 * CHECKED_MS])
async def test_pages_are_checked_again_if_the_client_did_not_read_for_a_while(
    server: FakeServer, client: Client, tmp_path: Path, pause_ms: int
) -> None:
    data = os.urandom(8 * MIB)
    path = tmp_path / "file"
    path.write_bytes(data)
    times = [0]
    server.timer_ms = lambda: times[0]
    server.files = FilesSeen()
    server.answers[b"fetch"] = FakeAnswer(RecordsSlice(Files().open(path), 0, len(data)))
    client.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
    client.send(b"fetch")
    await until(lambda: server.connections and server.connections[0].is_unread)
    times[0] = pause_ms
    assert await client.receive() == data
    checks = [position % FILE_CHUNK_BYTES for position in server.files.checked]
    assert any(checks) == bool(pause_ms)


async def test_a_client_that_reads_slowly_gets_every_byte(
    server: FakeServer, client: Client, tmp_path: Path
) -> None:
    data = os.urandom(16 * MIB)
    path = tmp_path / "file"
    path.write_bytes(data)
    server.answers[b"fetch"] = FakeAnswer(RecordsSlice(Files().open(path), 0, len(data)))
    sock = client.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 1024)
    client.send(b"fetch", b"next")
    await until(lambda: has_arrived(server, b"next") and server.connections[0].is_unread)
    assert server.served == [b"fetch"]
    assert await client.receive() == data
    assert await client.receive() == b"next"


@pytest_asyncio.fixture
async def reluctant(server: FakeServer, client: Client) -> AsyncIterator[Client]:
    """A client that reads nothing. The sockets' buffers together hold less than UNREAD_BYTES."""
    sock = socket.socket()
    # Before it connects: a window that was offered is not taken back.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 1024)
    sock.setblocking(False)
    await server.loop.sock_connect(sock, client.writer.get_extra_info("peername"))
    made = Client(*await asyncio.open_connection(sock=sock))
    made.send(b"hello")
    assert await made.receive() == b"hello"
    output: Any = server.connections[-1]._sender._output
    output.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1024)
    transport: Any = made.writer.transport
    transport.pause_reading()
    yield made
    made.writer.close()


async def left_unread(
    server: FakeServer, reluctant: Client, pending: asyncio.Future[None]
) -> bytes:
    """Ask for a large answer, which the client does not read, and for one that waits for `pending`.

    Returns what the large answer is, once it fills the buffers.
    """
    data = os.urandom(UNREAD_BYTES)
    server.answers[b"large"] = FakeAnswer(data)
    server.answers[b"slow"] = FakeAnswer(pending=pending)
    reluctant.send(b"large", b"slow")
    connection = server.connections[-1]
    await until(lambda: connection.is_unread and connection._waiting is not None)
    return data


@pytest.mark.parametrize("does_client_read", [False, True])
async def test_a_late_answer_follows_what_the_client_has_not_read_yet(
    server: FakeServer, reluctant: Client, does_client_read: bool
) -> None:
    pending = asyncio.get_running_loop().create_future()
    data = await left_unread(server, reluctant, pending)
    connection = server.connections[-1]
    transport: Any = reluctant.writer.transport
    sock = reluctant.writer.get_extra_info("socket")
    received = os.read(sock.fileno(), 1024) if does_client_read else b""
    connection._waited(server.answers[b"slow"], done(b"at last"))
    transport.resume_reading()
    wanted = b"".join(struct.pack(">i", len(each)) + each for each in (data, b"at last"))
    rest = reluctant.reader.readexactly(len(wanted) - len(received))
    assert received + await asyncio.wait_for(rest, 5) == wanted


async def test_a_request_that_fails_late_closes_the_connection_after_the_answers_before_it(
    server: FakeServer, reluctant: Client
) -> None:
    pending = asyncio.get_running_loop().create_future()
    data = await left_unread(server, reluctant, pending)
    connection = server.connections[-1]
    transport: Any = reluctant.writer.transport
    pending.set_exception(RefusedRequestError("it is refused"))
    await until(lambda: connection._waiting is None)
    transport.resume_reading()
    assert await reluctant.receive() == data
    assert await reluctant.ended()


async def test_a_broken_frame_closes_the_connection_after_the_answers_before_it(
    server: FakeServer, reluctant: Client
) -> None:
    data = os.urandom(UNREAD_BYTES)
    server.answers[b"large"] = FakeAnswer(data)
    connection = server.connections[-1]
    reluctant.writer.write(struct.pack(">i", 5) + b"large" + b"\xff" * START_BYTES)
    await until(lambda: connection._state.holds & FINISHING)
    assert connection._is_paused or connection.get_buffer(-1), "it is read into an empty buffer"
    transport: Any = reluctant.writer.transport
    transport.resume_reading()
    assert await reluctant.receive() == data
    assert await reluctant.ended()


async def test_a_connection_that_breaks_under_an_unsent_answer_waits_for_nothing(
    server: FakeServer, reluctant: Client
) -> None:
    server.answers[b"large"] = FakeAnswer(os.urandom(UNREAD_BYTES))
    reluctant.send(b"large", b"next")
    connection = server.connections[-1]
    await until(lambda: connection.is_unread)
    transport: Any = connection._transport
    connection.connection_lost(ssl.SSLError("broken"))
    assert server.lost.is_set()
    transport.abort()


def done(result: bytes) -> asyncio.Future[bytes]:
    future = asyncio.get_running_loop().create_future()
    future.set_result(result)
    return future


async def test_a_file_that_ends_too_early_cuts_the_connection(
    server: FakeServer, client: Client, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"short")
    server.answers[b"fetch"] = FakeAnswer(RecordsSlice(Files().open(path), 0, 100))
    client.send(b"fetch")
    with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
        await client.receive()


async def test_finish_answers_the_current_request_and_no_new_one(
    server: FakeServer, client: Client
) -> None:
    pending = asyncio.get_running_loop().create_future()
    server.answers[b"slow"] = FakeAnswer(pending=pending)
    client.send(b"slow", b"too late")
    await asyncio.wait_for(server.has_served.wait(), 5)
    server.connections[0].finish()
    pending.set_result(b"done")
    assert await client.receive() == b"done"
    assert await client.ended()
    assert server.served == [b"slow"]


async def test_large_frames_wait_for_memory_and_go_on_when_it_is_free(
    server: FakeServer, client: Client
) -> None:
    server.frame_memory = FrameMemory(server.loop, 4 * MIB)
    other = Connection(server, SimpleNamespace(name="OTHER"))
    assert server.frame_memory.try_grant(other, 3 * MIB)
    client.send(b"x" * (3 * MIB))
    await until(lambda: server.connections and server.connections[0].waits_for_memory)
    assert server.served == []
    server.frame_memory.release(other)
    assert await client.receive() == b"x" * 20


async def test_a_frame_of_the_largest_size_is_received_when_the_memory_is_limited_to_it(
    server: FakeServer, client: Client
) -> None:
    server.max_request_bytes = 3 * MIB
    server.frame_memory = FrameMemory(server.loop, server.max_request_bytes)
    client.send(b"x" * server.max_request_bytes)
    assert await client.receive() == b"x" * 20


async def test_a_client_that_disconnects_in_the_middle_of_a_request_is_logged_in_one_line(
    server: FakeServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "odradek"):
        client.writer.write(struct.pack(">i", 100) + b"only so much")
        await client.writer.drain()
        client.writer.close()
        await asyncio.wait_for(server.lost.wait(), 5)
    assert len(caplog.messages) == 1
    assert "16 of 104 bytes" in caplog.messages[0]


async def test_an_answer_that_cannot_be_written_closes_the_connection_with_its_traceback(
    server: FakeServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    server.answers[b"bad"] = FakeAnswer(None)
    with caplog.at_level(logging.WARNING, "odradek"):
        client.send(b"bad")
        assert await client.ended()
    assert caplog.records[0].exc_info
    assert "failed inside the broker" in caplog.messages[-1]


class Meter:
    """What a request has used: it throttles the client."""

    def __init__(self, throttle_ms: int) -> None:
        self.throttle_ms = throttle_ms
        self.is_finished = False

    def resume(self) -> None:
        """The answer is encoded."""

    def finish(self) -> None:
        self.is_finished = True


async def test_the_next_request_of_a_throttled_client_waits_for_that_time(
    server: FakeServer, client: Client
) -> None:
    answer = server.answers[b"much"] = FakeAnswer(b"done")
    answer.meter = meter = Meter(250)
    loop = asyncio.get_running_loop()
    began = loop.time()
    client.send(b"much", b"quick")
    assert await client.receive() == b"done"
    assert meter.is_finished
    await until(lambda: has_arrived(server, b"quick"))
    assert server.served == [b"much"]
    server.timer_ms = lambda: 77
    assert await client.receive() == b"quick"
    assert loop.time() - began > 0.19
    # The time by which it was throttled does not count as idle.
    assert server.connections[0].last_active_ms == 77


async def test_a_throttled_connection_closes_at_once_when_the_server_stops(
    server: FakeServer, client: Client
) -> None:
    answer = server.answers[b"much"] = FakeAnswer(b"done")
    answer.meter = Meter(60_000)
    client.send(b"much", b"quick")
    assert await client.receive() == b"done"
    await until(lambda: has_arrived(server, b"quick"))
    server.connections[0].finish()
    assert await client.ended()
    assert server.served == [b"much"]
