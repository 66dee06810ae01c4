"""What no client should send. It costs the sender its connection, and nobody else anything."""

import contextlib
import random
import re
import selectors
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.produce import ProduceResponse
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.support.broker_process import (
    BrokerProcess,
    against_apache_kafka,
    make_broker,
    why_no_broker,
)
from tests.support.bystander import PRODUCE_VERSION, Bystander, produce_request
from tests.support.lengths import SEED, by_length, only_long
from tests.support.wire import WireClient, request_frame

MIB = 1 << 20
LARGEST_REQUEST = by_length(16 * MIB, 100 * MIB)
QUEUED_BYTES = by_length(32 * MIB, 256 * MIB)
PATIENCE_SECONDS = 60.0
STALL_SECONDS = 60.0  # a frame that makes no progress is closed within this time
HARM_SECONDS = 5.0  # longer than this no innocent request may take

API_VERSIONS = request_frame(
    ApiVersionsRequest(client_software_name="t", client_software_version="1"), 3, 1, "cut"
)
TLS_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(range(189))

only_odradek = pytest.mark.skipif(against_apache_kafka(), reason="says what odradek promises")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    reason = why_no_broker()
    if reason:
        pytest.skip(reason)
    settings = {
        "socket.request.max.bytes": str(LARGEST_REQUEST),
        "queued.max.request.bytes": str(QUEUED_BYTES),
    }
    process = make_broker(tmp_path_factory.mktemp("hostile"), settings)
    try:
        yield process.start()
        assert process.crashes_in_log() == [], process.log_text()[-4000:]
    finally:
        process.stop()


@pytest.fixture
def bystander(broker: BrokerProcess, topic: str) -> Iterator[Bystander]:
    """Works throughout the test, and must not notice it."""
    with Bystander(broker.port, topic) as innocent:
        yield innocent
    assert max(innocent.round_trips, default=0) < HARM_SECONDS


# Where clients connect from that do so many times: their lines are limited, also for others.
MANY_TIMES = "127.0.0.2"


class Log:
    """The lines that the broker writes while a test runs."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker
        self._before = len(broker.log_text())

    def lines_about(self, port: int) -> list[str]:
        """What it said about the connection that came from `port`."""
        said = self._broker.log_text()[self._before :]
        return [line for line in said.splitlines() if re.search(rf"127\.0\.0\.\d:{port}\b", line)]

    def the_line_about(self, port: int) -> str:
        """Waits for the one line; fails when there are more, or none."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (lines := self.lines_about(port)) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(lines) == 1, f"{len(lines)} lines about one connection: {lines}"
        return lines[0]

    def check_lines_about(self, port: int) -> None:
        """Fails when there are several. Of many connections most have none (ClientLineLimit)."""
        assert len(self.lines_about(port)) <= 1
        self._before = len(self._broker.log_text())  # a later connection may have the same port


@pytest.fixture
def log(broker: BrokerProcess) -> Log:
    return Log(broker)


def produce_frame(topic: str) -> bytes:
    """A whole Produce request of one record."""
    batch = build_batch([Record(key=b"k", value=b"never", timestamp_ms=1_700_000_000_000)])
    return request_frame(produce_request(topic, bytes(batch)), PRODUCE_VERSION, 1, "cut")


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def header(key: int, version: int) -> bytes:
    return struct.pack(">hhih", key, version, 1, 1) + b"h"


IMPOSSIBLE = {
    "http": (b"GET / HTTP/1.1\r\nHost: localhost:9092\r\n\r\n", "HTTP"),
    "http post": (b"POST /topics/x HTTP/1.1\r\nContent-Length: 3\r\n\r\n{}\n", "HTTP"),
    "tls hello": (TLS_HELLO, "TLS"),
    "two gigabytes": (struct.pack(">i", 0x7FFFFFFF) + b"x" * 100, "2147483647"),
    "over the limit by one": (struct.pack(">i", LARGEST_REQUEST + 1), str(LARGEST_REQUEST + 1)),
    "negative length": (struct.pack(">i", -1) + b"x" * 100, "-1"),
    "most negative length": (struct.pack(">i", -(2**31)), "-2147483648"),
    "nothing in the frame": (framed(b""), ""),
    "header cut short": (framed(b"\x00\x12"), ""),
    "no such api": (framed(header(9999, 0)), "9999"),
    "negative api": (framed(header(-1, 0)), "-1"),
    "no such version": (framed(header(3, 999) + b"\x00"), "999"),
    "client id longer than the frame": (framed(struct.pack(">hhih", 18, 0, 1, 999) + b"x"), ""),
    "an array of two billion": (framed(header(3, 1) + struct.pack(">i", 0x7FFFFFFF)), ""),
    "a varint without an end": (framed(header(18, 3) + b"\x00" + b"\xff" * 20), ""),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_cannot_be_a_request_closes_its_connection(
    name: str, broker: BrokerProcess, bystander: Bystander, log: Log
) -> None:
    data, word = IMPOSSIBLE[name]
    with WireClient(broker.port) as client:
        client.send(data)
        assert client.is_closed_by_peer(PATIENCE_SECONDS)
        if not against_apache_kafka():
            assert word in log.the_line_about(client.local_port)


def test_garbage_of_any_kind_closes_its_connection(
    broker: BrokerProcess, bystander: Bystander, log: Log
) -> None:
    chance = random.Random(SEED)
    for _ in range(by_length(100, 2000)):
        with WireClient(broker.port, own_host=MANY_TIMES) as client:
            garbage = chance.randbytes(chance.randrange(5, 400))
            with contextlib.suppress(OSError):  # closed already
                client.send(framed(garbage) if chance.random() < 0.7 else garbage)
                client.socket.shutdown(socket.SHUT_WR)
            assert client.is_closed_by_peer(PATIENCE_SECONDS), garbage.hex()
            if not against_apache_kafka():
                log.check_lines_about(client.local_port)


@pytest.mark.parametrize("kind", ["api versions", "produce"])
def test_a_frame_cut_at_every_byte_is_dropped(
    kind: str, broker: BrokerProcess, bystander: Bystander, topic: str, log: Log
) -> None:
    frame = API_VERSIONS if kind == "api versions" else produce_frame(topic)
    for cut in range(1, len(frame)):
        with WireClient(broker.port, own_host=MANY_TIMES) as client:
            client.send(frame[:cut])
            client.socket.shutdown(socket.SHUT_WR)
            assert client.is_closed_by_peer(PATIENCE_SECONDS), f"cut at {cut}"
            if not against_apache_kafka():
                log.check_lines_about(client.local_port)
    # The bystander writes to the same topic: had one of the cut requests been served, its offsets
    # would no longer be its own.


@pytest.mark.parametrize("kind", ["api versions", "produce"])
def test_a_frame_whose_length_was_cut_too_is_refused_or_answered(
    kind: str, broker: BrokerProcess, bystander: Bystander
) -> None:
    frame = API_VERSIONS if kind == "api versions" else produce_frame("never-made")
    for cut in range(4, len(frame) - 1):
        with WireClient(broker.port) as client:
            client.send(framed(frame[4:cut]))
            with contextlib.suppress(OSError):
                client.socket.shutdown(socket.SHUT_WR)
            client.socket.settimeout(PATIENCE_SECONDS)
            with contextlib.suppress(ConnectionError):
                while client.socket.recv(65536):
                    pass  # an error answer is as good as a closed connection


def test_every_flipped_byte_of_a_produce_leaves_the_broker_in_health(
    broker: BrokerProcess, bystander: Bystander
) -> None:
    frame = bytearray(produce_frame("flipped"))
    for position in range(4, len(frame)):
        flipped = frame.copy()
        flipped[position] ^= 0xFF
        with WireClient(broker.port) as client:
            client.send(bytes(flipped))
            with contextlib.suppress(OSError):
                client.socket.shutdown(socket.SHUT_WR)
            client.socket.settimeout(PATIENCE_SECONDS)
            with contextlib.suppress(ConnectionError):
                while client.socket.recv(65536):
                    pass


def test_a_request_that_comes_byte_by_byte_is_answered(
    broker: BrokerProcess, bystander: Bystander
) -> None:
    with WireClient(broker.port) as client:
        frame = client.frame_of(
            ApiVersionsRequest(client_software_name="t", client_software_version="1"), 3
        )
        for position in range(len(frame)):
            client.send(frame[position : position + 1])
            time.sleep(0.002)
        assert client.read_answer(ApiVersionsResponse, 3).error_code == 0


def test_requests_sent_all_at_once_are_answered_in_order(
    broker: BrokerProcess, bystander: Bystander
) -> None:
    request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
    with WireClient(broker.port) as client:
        client.send(b"".join(client.frame_of(request, 3) for _ in range(500)))
        numbers = [struct.unpack_from(">i", client.read_frame())[0] for _ in range(500)]
    assert numbers == list(range(1, 501))


def test_a_client_that_never_reads_costs_only_its_own_answers(
    broker: BrokerProcess, bystander: Bystander
) -> None:
    request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
    before = broker.memory_bytes()
    with WireClient(broker.port) as client:
        frames = b"".join(client.frame_of(request, 3) for _ in range(1000))
        client.socket.settimeout(0.5)
        with contextlib.suppress(TimeoutError, ConnectionError):
            for _ in range(200):
                client.send(frames)
        grown = broker.memory_bytes() - before
    if not against_apache_kafka():
        assert grown < 16 * MIB, f"{grown / MIB:.0f} MiB for answers that nobody reads"


class Stallers:
    """Clients that send most of a large frame and stop. One thread feeds them all."""

    def __init__(self, port: int, count: int, announced: int, sent: int) -> None:
        self._selector = selectors.DefaultSelector()
        self._left: dict[socket.socket, int] = {}
        self.ports: list[int] = []
        self.closed = 0
        for _ in range(count):
            client = socket.create_connection(("127.0.0.1", port))
            self.ports.append(client.getsockname()[1])
            client.sendall(struct.pack(">i", announced) + header(0, PRODUCE_VERSION))
            client.setblocking(False)
            self._left[client] = sent
            self._selector.register(client, selectors.EVENT_READ | selectors.EVENT_WRITE)

    def feed(self, seconds: float, watch: Callable[[], None]) -> None:
        """Send what the broker takes, for so long or until it has closed all of them."""
        chunk = bytes(256 * 1024)
        deadline = time.monotonic() + seconds
        while self._left and time.monotonic() < deadline:
            for key, events in self._selector.select(0.1):
                client = key.fileobj
                assert isinstance(client, socket.socket)
                try:
                    if events & selectors.EVENT_READ and client.recv(1) == b"":
                        self._drop(client)
                    elif events & selectors.EVENT_WRITE:
                        self._send(client, chunk)
                except ConnectionError:
                    self._drop(client)
            watch()

    def send_a_byte(self) -> None:
        """Send a byte of each request that is still open."""
        for client in self._left:
            with contextlib.suppress(ConnectionError):
                client.send(b"\0")

    def _send(self, client: socket.socket, chunk: bytes) -> None:
        self._left[client] -= client.send(chunk[: self._left[client]])
        if self._left[client] == 0:
            self._selector.modify(client, selectors.EVENT_READ)

    def _drop(self, client: socket.socket) -> None:
        self.closed += 1
        self._selector.unregister(client)
        del self._left[client]
        client.close()

    def close(self) -> None:
        """Close those that are left."""
        for client in list(self._left):
            self._drop(client)
        self._selector.close()


class Stalled(NamedTuple):
    """Clients that have sent a part of a frame, with the number of bytes, and what is logged."""

    clients: Mapping[WireClient, int]
    log: Log


@pytest.fixture(scope="module")
def stalled(broker: BrokerProcess) -> Iterator[Stalled]:
    """One stops inside the length, one after it. All tests that ask for them share the wait."""
    with WireClient(broker.port) as only_prefix, WireClient(broker.port) as half:
        clients = {only_prefix: 3, half: 10}
        log = Log(broker)
        for client, size in clients.items():
            client.send(API_VERSIONS[:size])
        yield Stalled(clients, log)


@pytest.mark.slow
@pytest.mark.usefixtures("stalled")
@only_odradek
@only_long("a request that stops is closed by the clock in test_clock_jumps.py")
def test_many_large_requests_that_never_end_cannot_exhaust_the_memory(
    broker: BrokerProcess, bystander: Bystander, log: Log
) -> None:
    count, size = by_length(12, 100), by_length(10, 50) * MIB
    before = broker.memory_bytes()
    highest = 0

    def watch() -> None:
        nonlocal highest
        highest = max(highest, broker.memory_bytes() - before)

    stallers = Stallers(broker.port, count, size, size - MIB)
    try:
        stallers.feed(by_length(60, 300), watch)
        assert highest < QUEUED_BYTES + 32 * MIB, f"{highest / MIB:.0f} MiB"
        assert stallers.closed == count, "they hold their memory for ever"
        lines = [line for port in stallers.ports for line in log.lines_about(port)]
        assert lines
        assert all(re.search(rf"\b{size + 4}\b", line) for line in lines)
    finally:
        stallers.close()


@pytest.mark.slow
@only_odradek
def test_large_requests_that_come_byte_by_byte_give_way_to_another(
    broker: BrokerProcess, bystander: Bystander, log: Log
) -> None:
    announced = QUEUED_BYTES // 3 - 4  # and the length
    stallers = Stallers(broker.port, 3, announced, MIB)
    large = framed(header(3, 99) + bytes(3 * MIB))  # of a version that is not served
    try:
        stallers.feed(1, lambda: None)
        # From an address of whose clients the broker has logged nothing: there is a limit.
        with (
            WireClient(broker.port, own_host="127.0.0.4") as client,
            ThreadPoolExecutor() as threads,
        ):
            sent = threads.submit(client.socket.sendall, large)
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not sent.done() or not log.lines_about(client.local_port):
                assert time.monotonic() < deadline, "it waits for ever"
                stallers.send_a_byte()
                time.sleep(0.1)
            assert client.is_closed_by_peer()
    finally:
        stallers.close()


@pytest.mark.slow
@only_odradek
@only_long("a request that stops is closed by the clock in test_clock_jumps.py")
def test_a_frame_that_makes_no_progress_is_closed_in_the_end(
    stalled: Stalled, bystander: Bystander
) -> None:
    for client, sent in stalled.clients.items():
        assert client.is_closed_by_peer(STALL_SECONDS)
        line = stalled.log.the_line_about(client.local_port)
        stopped = re.search(r"stopped at (\d+) for (\d+) ms", line)
        assert stopped, line
        assert int(stopped[1]) == sent
        assert int(stopped[2]) < STALL_SECONDS * 1000


@only_odradek
def test_a_frame_may_be_long_if_it_keeps_coming(
    broker: BrokerProcess, bystander: Bystander
) -> None:
    with WireClient(broker.port) as client:
        frame = client.frame_of(produce_request("never", bytes(12 * MIB)), PRODUCE_VERSION)
        for start in range(0, len(frame), MIB):
            client.send(frame[start : start + MIB])
            time.sleep(0.02)
        answer = client.read_answer(ProduceResponse, PRODUCE_VERSION)
    [partition] = answer.responses[0].partition_responses
    assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
