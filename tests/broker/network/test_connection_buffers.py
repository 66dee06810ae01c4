"""The buffers of connections: one that all share, and an own one for what is left over."""

import asyncio
import random
import socket
import struct
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from odradek.broker.network import connection
from odradek.broker.network.answer_sender import ANSWERS_BYTES
from odradek.broker.network.connection import TURN_BYTES, Connection
from odradek.broker.network.output import PlainOutput
from odradek.broker.network.receive_buffer import (
    SHARED_BYTES,
    START_BYTES,
    WAITING_BYTES,
    ReceiveBuffer,
)
from odradek.broker.requests.answer import SlicedAnswer
from odradek.broker.security.session import Session
from odradek.broker.turns.large_turns import LARGE_BYTES
from odradek.protocol.api_keys import ApiKey
from tests.support.fake_server import FakeAnswer, FakeServer
from tests.support.lengths import by_length

PLAIN, WAITS, GIVES_WAY = range(3)
HEADER = struct.Struct(">hhH")
PATIENCE = 1000
MIB = 1 << 20


class Transport:
    """What a connection asks of its transport; the other end of its socket is `peer`."""

    def __init__(self) -> None:
        self.socket, self.peer = socket.socketpair()
        self.is_paused = False
        self._is_closing = False

    def get_extra_info(self, name: str) -> Any:
        return self.socket if name == "socket" else ("127.0.0.1", 1)

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        self._is_closing = True

    abort = close

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False


class Turns:
    """Whether requests of groups must give way, and those that do."""

    def __init__(self) -> None:
        self.have_room = True
        self.waiting: deque[Connection] = deque()

    def has_room_for(self, connection: Connection) -> bool:
        if not self.have_room:
            self.waiting.append(connection)
        return self.have_room

    def next(self) -> None:
        """Serve those that wait."""
        self.have_room = True
        while self.waiting:
            self.waiting.popleft().take_turn()


class Wire:
    """A connection, and the bytes that its client sends."""

    def __init__(self, server: FakeServer, requests: list[bytes]) -> None:
        self.transport = Transport()
        self.connection = Connection(server, SimpleNamespace(name="PLAINTEXT"))
        self.connection.connection_made(self.transport)  # type: ignore[arg-type] # it has what is asked of it
        self.requests = requests
        self.served: list[bytes] = []
        self.left = b"".join(struct.pack(">i", len(one)) + one for one in requests)

    def feed(self, count: int) -> bool:
        """Let the socket read up to so many bytes at once; False: it may not read now."""
        if self.transport.is_paused or not self.left:
            return False
        view = self.connection.get_buffer(65536)
        count = min(count, len(self.left), len(view))
        assert count
        view[:count] = self.left[:count]
        self.left = self.left[count:]
        self.connection.buffer_updated(count)
        return True

    def close(self) -> None:
        self.connection.close(None)
        self.connection.connection_lost(None)
        self.transport.socket.close()
        self.transport.peer.close()


class WiredConnections(FakeServer):
    """Several connections; what each is asked is noted by the wire it came from."""

    def __init__(self, loop: asyncio.AbstractEventLoop, requests: list[list[bytes]]) -> None:
        super().__init__(loop)
        self.turns = Turns()
        self.group_turns = self.turns  # type: ignore[assignment] # it has what is asked of it
        self.parked: list[asyncio.Future[bytes]] = []
        self.answer = b""
        self.lent: set[bytes] = set()  # requests that are served in slices
        self.wires = [Wire(self, one) for one in requests]

    def dispatch(self, session: Session, frame: memoryview) -> FakeAnswer | SlicedAnswer:
        request = bytes(frame)
        wire = next(wire for wire in self.wires if wire.connection.session is session)
        wire.served.append(request)
        if request in self.lent:
            return Lent()
        kind = HEADER.unpack_from(request)[1]
        if kind != WAITS:
            return FakeAnswer(self.answer or request[: HEADER.size])
        self.parked.append(self.loop.create_future())
        return FakeAnswer(pending=self.parked[-1])

    async def resolve(self) -> None:
        """Answer what waits."""
        parked, self.parked = self.parked, []
        for future in parked:
            future.set_result(b"waited")
        await asyncio.sleep(0)

    async def run_to_the_end(self) -> None:
        """Let everything arrive, and everybody be served."""
        for _ in range(PATIENCE):
            for wire in self.wires:
                wire.feed(1 << 20)
            self.turns.next()
            await self.resolve()
            if all(len(wire.served) == len(wire.requests) for wire in self.wires):
                return
        raise AssertionError("a connection is never served")


@pytest.fixture(autouse=True)
def _time_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """No turn ends early because the machine is busy."""
    monkeypatch.setattr(connection, "monotonic", lambda: 1.0)


@contextmanager
def connections_of(*requests: list[bytes]) -> Iterator[WiredConnections]:
    made = WiredConnections(asyncio.get_running_loop(), list(requests))
    try:
        yield made
    finally:
        for wire in made.wires:
            wire.close()
        made.disk.close()


def request(kind: int, size_bytes: int = 0, number: int = 0) -> bytes:
    """A request of a kind, unique by its number, with `size_bytes` after its header."""
    key = ApiKey.HEARTBEAT if kind == GIVES_WAY else ApiKey.METADATA
    return HEADER.pack(key, kind, number) + random.Random(number).randbytes(size_bytes)


Step = Callable[[WiredConnections], Any]

sizes = st.one_of(
    st.integers(0, 600),
    st.integers(START_BYTES - 20, START_BYTES),
    st.integers(SHARED_BYTES - 20, SHARED_BYTES),
    st.integers(0, 80_000),
)
scripts = st.lists(
    st.lists(st.tuples(st.sampled_from([PLAIN, WAITS, GIVES_WAY]), sizes), max_size=6),
    min_size=2,
    max_size=3,
)
steps = st.lists(
    st.one_of(
        st.tuples(st.integers(0, 2), st.one_of(st.integers(1, 700), st.integers(1, 40_000))),
        st.sampled_from(["resolve", "no room", "next turn"]),
    ),
    max_size=40,
)


@settings(max_examples=by_length(50, 3000), deadline=None)
@given(scripts=scripts, steps=steps)
@example(scripts=[[(PLAIN, 100)], [(PLAIN, 100)]], steps=[(0, 50), (1, 50), (0, 60), (1, 60)])
@example(scripts=[[(WAITS, 0), (WAITS, 30_000)], [(PLAIN, 200)]], steps=[(0, 700), (1, 700)])
def test_however_requests_arrive_each_connection_is_served_its_own_whole_and_in_order(
    scripts: list[list[tuple[int, int]]], steps: list[tuple[int, int] | str]
) -> None:
    asyncio.run(serve(scripts, steps))


async def serve(scripts: list[list[tuple[int, int]]], steps: list[tuple[int, int] | str]) -> None:
    requests = [
        [request(*one, number=100 * place + n) for n, one in enumerate(script)]
        for place, script in enumerate(scripts)
    ]
    with connections_of(*requests) as made:
        for step in steps:
            if step == "resolve":
                await made.resolve()
            elif step == "no room":
                made.turns.have_room = False
            elif step == "next turn":
                made.turns.next()
            elif step[0] < len(made.wires):
                made.wires[step[0]].feed(step[1])
        await made.run_to_the_end()
        await made.resolve()
        for wire in made.wires:
            assert wire.served == wire.requests
            own = wire.connection.buffer_bytes
            assert own == 0 or own > SHARED_BYTES, "a small buffer is kept for nothing"


async def test_a_connection_holds_a_buffer_only_while_it_has_unserved_bytes() -> None:
    with connections_of([request(PLAIN, 500, 1), request(PLAIN, 500, 2)]) as made:
        (wire,) = made.wires
        for count, held in ((510, 0), (200, START_BYTES), (310, 0)):
            wire.feed(count)
            assert wire.connection.buffer_bytes == held
        assert wire.served == wire.requests


async def test_a_request_that_waits_for_a_turn_waits_in_a_small_buffer() -> None:
    with connections_of([request(GIVES_WAY, 100)]) as made:
        (wire,) = made.wires
        made.turns.have_room = False
        wire.feed(200)
        assert (wire.served, wire.connection.buffer_bytes) == ([], WAITING_BYTES)
        made.turns.next()
        assert (wire.served, wire.connection.buffer_bytes) == (wire.requests, 0)


@pytest.mark.parametrize("piece", [100, 5000, START_BYTES])
async def test_while_a_request_waits_the_client_may_send_no_more_than_a_buffer(piece: int) -> None:
    many = [request(PLAIN, 490, number) for number in range(100)]
    with connections_of([request(WAITS), *many]) as made:
        (wire,) = made.wires
        wire.feed(4 + HEADER.size)
        said = len(wire.left)
        while wire.feed(piece):
            assert wire.connection.buffer_bytes <= START_BYTES
        assert said - len(wire.left) == START_BYTES
        await made.run_to_the_end()
        assert wire.served == wire.requests
        assert wire.connection.buffer_bytes == 0


async def test_answers_to_small_requests_do_not_move_a_large_buffer_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moved: list[int] = []
    make_room = ReceiveBuffer._make_room

    def noted(buffer: ReceiveBuffer) -> None:
        moved.append(buffer.unserved_bytes)
        make_room(buffer)

    monkeypatch.setattr(ReceiveBuffer, "_make_room", noted)
    waiting = [request(WAITS, 500, number) for number in range(4000)]
    with connections_of([request(PLAIN, MIB), *waiting]) as made:
        (wire,) = made.wires
        while not wire.served:
            wire.feed(MIB)
            await asyncio.sleep(0)
            await asyncio.sleep(0)  # a turn for the large request
        assert wire.connection.buffer_bytes >= MIB
        while len(wire.served) < 100:
            while wire.feed(MIB):
                pass
            await made.resolve()
        assert wire.left
    assert max(moved, default=0) <= START_BYTES


class Lent(SlicedAnswer):
    """The answer to a request that is served in slices, and needs one."""

    def __init__(self) -> None:
        self.pending = None
        self.meter = None

    def begin(self, frame: memoryview) -> None:
        self.response = bytes(frame[: HEADER.size])

    def encoded(self) -> tuple[bytearray, list]:
        return FakeAnswer(self.response).encoded()


async def test_requests_behind_one_that_keeps_its_buffer_are_served() -> None:
    large = request(PLAIN, 2 * MIB - 100, 1)  # its buffer is kept for the next ones
    keeps = request(PLAIN, MIB, 2)
    small = [request(PLAIN, 100, number) for number in range(3, 6)]
    with connections_of([large, keeps, *small]) as made:
        made.lent.add(keeps)
        (wire,) = made.wires
        for _ in range(PATIENCE):
            while wire.feed(2 * MIB):
                pass
            await asyncio.sleep(0)
        assert wire.served == wire.requests


async def test_requests_that_follow_one_that_waited_are_dropped_when_the_client_is_gone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with connections_of(
        [request(WAITS), *(request(PLAIN, 490, number) for number in range(100))]
    ) as made:
        (wire,) = made.wires
        wire.feed(4 + HEADER.size)
        while wire.feed(START_BYTES):
            pass
        wire.transport.peer.close()
        await made.resolve()
        assert wire.transport.is_closing()
        assert wire.served == wire.requests[:1]
    assert caplog.messages == []


def answers_in(wire: Wire) -> list[int]:
    """The sizes of what the client gets by each read, without waiting for more."""
    wire.transport.peer.setblocking(False)
    sizes = []
    while True:
        try:
            sizes.append(len(wire.transport.peer.recv(1 << 20)))
        except BlockingIOError:
            return sizes
        if not sizes[-1]:
            return sizes


@pytest.fixture
def sends(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what connections give to their sockets, call by call."""
    sizes: list[int] = []

    class Counting(PlainOutput):
        def send(self, data: Any, flags: int = 0, /) -> int:
            sizes.append(len(data))
            return super().send(data, flags)

    monkeypatch.setattr(Connection.__init__, "__defaults__", (Counting,))
    return sizes


ANSWER_BYTES = 4 + HEADER.size


async def test_the_answers_to_the_requests_of_one_read_are_sent_together(sends: list[int]) -> None:
    with connections_of([request(PLAIN, 50, number) for number in range(9)]) as made:
        (wire,) = made.wires
        wire.feed(4 * (4 + HEADER.size + 50) + 10)
        assert sends == [4 * ANSWER_BYTES]
        wire.feed(1 << 20)
        assert sends == [4 * ANSWER_BYTES, 5 * ANSWER_BYTES]


async def test_answers_are_sent_before_the_next_request_waits(sends: list[int]) -> None:
    with connections_of(
        [request(PLAIN, 1, 1), request(PLAIN, 1, 2), request(WAITS), request(PLAIN)]
    ) as made:
        (wire,) = made.wires
        wire.feed(1 << 20)
        assert sends == [2 * ANSWER_BYTES]
        await made.resolve()
        assert sends == [2 * ANSWER_BYTES, 4 + len(b"waited"), ANSWER_BYTES]


async def test_answers_are_sent_before_a_bad_frame_closes_the_connection(sends: list[int]) -> None:
    with connections_of([request(PLAIN, 1, 1), request(PLAIN, 1, 2)]) as made:
        (wire,) = made.wires
        wire.left += b"\xff" * 4
        wire.feed(1 << 20)
        assert sends == [2 * ANSWER_BYTES]
        assert wire.transport.is_closing()


async def test_a_bad_frame_closes_the_connection_when_the_client_has_read_the_answers() -> None:
    with connections_of([request(PLAIN, 1, number) for number in range(30)]) as made:
        (wire,) = made.wires
        made.answer = b"x" * 1000
        wire.transport.socket.setblocking(False)
        wire.transport.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        wire.left += b"\xff" * 4
        wire.feed(1 << 20)
        assert not wire.transport.is_closing()
        received = 0
        for _ in range(PATIENCE):
            received += sum(answers_in(wire))
            await asyncio.sleep(0.001)
            if wire.transport.is_closing():
                break
        assert received + sum(answers_in(wire)) == 30 * 1004


async def test_large_answers_to_the_requests_of_one_read_are_not_kept_together(
    sends: list[int],
) -> None:
    with connections_of([request(PLAIN, 1, number) for number in range(4)]) as made:
        (wire,) = made.wires
        made.answer = bytes(ANSWERS_BYTES // 2)
        wire.feed(1 << 20)
        assert sends == [ANSWERS_BYTES + 8] * 2


async def test_a_client_that_sends_without_end_lets_the_others_go_first() -> None:
    with connections_of([request(PLAIN, 1 << 16, number) for number in range(40)]) as made:
        (wire,) = made.wires
        there = len(wire.left)
        while wire.feed(1 << 16):
            assert there - len(wire.left) <= TURN_BYTES + (1 << 16)
        assert wire.left
        await asyncio.sleep(0)
        assert wire.feed(1 << 16)
        await made.run_to_the_end()


async def test_a_client_that_sends_small_requests_is_not_paused() -> None:
    with connections_of([request(PLAIN, 1000, number) for number in range(1000)]) as made:
        (wire,) = made.wires
        while wire.feed(START_BYTES - 1):
            pass
        assert len(wire.served) == 1000


async def test_a_small_request_is_served_between_two_large_ones() -> None:
    large = [request(PLAIN, LARGE_BYTES, number) for number in range(2)]
    with connections_of([large[0]], [large[1]], [request(PLAIN)], [request(PLAIN)]) as made:
        for wire in made.wires[:3]:
            while wire.feed(1 << 20):
                pass
        assert [len(wire.served) for wire in made.wires] == [0, 0, 1, 0]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [len(wire.served) for wire in made.wires] == [1, 0, 1, 0]
        made.wires[3].feed(1 << 20)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [len(wire.served) for wire in made.wires] == [1, 1, 1, 1]
