"""Many connections of one thread: requests go out as bytes, answers are handed to who waits.

A connection begins with an ApiVersions, as every client's does, so that it counts as connected when
the broker has let it in. It has one request under way at most, as those of real group members have
while a join is parked. Sockets block: what is sent fits the kernel's buffers, and epoll says when
there is something to read.
"""

import heapq
import itertools
import select
import socket
import struct
import time
from collections.abc import Callable

from odradek.protocol.messages.api_versions import ApiVersionsRequest
from tests.support.wire import request_frame

RECEIVE_BYTES = 256 * 1024
EVENTS = 1024
CONNECT_SECONDS = 60.0
LIMIT_SECONDS = 600.0
HEADER_BYTES = 4  # of an answer: its correlation id
API_VERSIONS_VERSION = 3
GREETING = request_frame(
    ApiVersionsRequest(client_software_name="bench", client_software_version="1"),
    API_VERSIONS_VERSION,
    0,
    "bench",
)

now = time.perf_counter


class Peer:
    """One connection; `answered` is given the bytes behind the correlation id."""

    def __init__(self, port: int, answered: Callable[[bytes], None]) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), CONNECT_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(None)
        self.is_waiting = False
        self.sent_at = 0.0
        self.is_greeted = False
        self._answered = answered
        self._received = b""

    def send(self, frame: bytes | bytearray) -> None:
        """Send a request: a whole frame."""
        assert not self.is_waiting, "one request at a time"
        self.is_waiting = True
        self.sent_at = now()
        self.socket.sendall(frame)

    def readable(self) -> None:
        """Take what has come; a whole answer is handed on."""
        data = self.socket.recv(RECEIVE_BYTES)
        if not data:
            raise ConnectionError("the broker closed the connection of a member")
        if self._received:
            data = self._received + data
        if len(data) < 4 or len(data) < 4 + struct.unpack_from(">i", data)[0]:
            self._received = data
            return
        self._received = b""
        self.is_waiting = False
        if self.is_greeted:
            self._answered(data[4 + HEADER_BYTES :])
        self.is_greeted = True


class Swarm:
    """All connections, and what is to be done at some time."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._peers: dict[int, Peer] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._newcomers: list[Peer] = []

    def __enter__(self) -> "Swarm":
        return self

    def __exit__(self, *_: object) -> None:
        for peer in self._peers.values():
            peer.socket.close()
        self._poll.close()

    def connect(self, port: int, answered: Callable[[bytes], None]) -> Peer:
        """One more connection, to the broker at a port of this machine; `await_greetings` next."""
        peer = Peer(port, answered)
        peer.send(GREETING)
        self._newcomers.append(peer)
        self._peers[peer.socket.fileno()] = peer
        self._poll.register(peer.socket.fileno(), select.EPOLLIN)
        return peer

    def await_greetings(self) -> None:
        """Wait until the broker has answered each new connection."""
        while self._newcomers:
            newcomer = self._newcomers.pop()
            self.run_until(lambda peer=newcomer: peer.is_greeted)  # type: ignore[misc] # bound at once

    def call_at(self, at_s: float, call: Callable[[], None]) -> None:
        """Have something done at a moment of `now`."""
        heapq.heappush(self._timers, (at_s, next(self._order), call))

    def run_until(self, is_over: Callable[[], bool]) -> None:
        """Serve answers and timers until it is over. Raises TimeoutError."""
        if not self.run_for(LIMIT_SECONDS, is_over):
            raise TimeoutError(f"not over within {LIMIT_SECONDS} seconds")

    def run_for(self, seconds: float, is_over: Callable[[], bool] = lambda: False) -> bool:
        """Serve answers and timers for some time, or until it is over: whether it is."""
        end = now() + seconds
        self.call_at(end, lambda: None)  # so that it is not slept over
        while not is_over():
            if now() >= end:
                return False
            self._turn()
        return True

    def _turn(self) -> None:
        timers = self._timers
        moment = now()
        while timers and timers[0][0] <= moment:
            heapq.heappop(timers)[2]()
        wait = min(max(timers[0][0] - now(), 0.0), 1.0) if timers else 1.0
        for descriptor, _ in self._poll.poll(wait, EVENTS):
            self._peers[descriptor].readable()
