"""Long responses leave connections and memory to others."""

import http.client
import json
import socket
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack, contextmanager

import pytest
from confluent_kafka import Producer

from odradek.broker.console.console import MAX_EXPORTS, MAX_STREAMS, MAX_STREAMS_OF_ONE
from odradek.broker.console.places import Places
from odradek.broker.http.messages import HttpError
from odradek.broker.testing.broker import Broker
from tests.support.console_client import ConsoleClient


async def numbers() -> AsyncGenerator[bytes, None]:
    yield b"1"
    yield b"2"


async def test_there_are_so_many_places_in_all_and_for_one() -> None:
    places = Places("pages", 3, 2)
    held = [places.hold(address, numbers()) for address in ("a", "a", "b")]
    for each in held:
        assert await anext(each) == b"1"
    for address, status in (("a", 503), ("c", 503)):
        with pytest.raises(HttpError) as refused:
            await anext(places.hold(address, numbers()))
        assert refused.value.status == status
    await held[2].aclose()
    with pytest.raises(HttpError) as refused:
        await anext(places.hold("a", numbers()))
    assert refused.value.status == 429
    assert [each async for each in held[0]] == [b"2"]
    assert await anext(places.hold("a", numbers())) == b"1"


@contextmanager
def open_request(
    port: int, path: str, address: str = "127.0.0.1", method: str = "GET"
) -> Iterator[socket.socket]:
    """A client that sends a request and reads nothing."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        client.bind((address, 0))
        client.settimeout(60)
        client.connect(("127.0.0.1", port))
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
        client.sendall(head.encode())
        yield client


def status_of(client: socket.socket) -> int:
    """The status of the response; of it more stays unread."""
    return int(client.recv(12, socket.MSG_WAITALL).split()[1])


def get(port: int, path: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.slow
def test_event_streams_leave_connections_to_others(console: ConsoleClient) -> None:
    port, path = console.port, "/api/v1/topics"
    with ExitStack() as streams:
        for number in range(MAX_STREAMS):
            address = "127.0.0.1" if number < MAX_STREAMS_OF_ONE else "127.0.0.2"
            stream = streams.enter_context(open_request(port, path, address))
            assert status_of(stream) == 200
            if number == MAX_STREAMS_OF_ONE - 1:
                with open_request(port, path) as refused:
                    assert status_of(refused) == 429
        with open_request(port, path, "127.0.0.3") as refused:
            assert status_of(refused) == 503
            with refused.makefile("rb") as answer:
                headers = b"".join(iter(answer.readline, b"\r\n")).lower()
                assert b"application/json" in headers
                length = int(headers.split(b"content-length: ")[1].split()[0])
                assert json.loads(answer.read(length))["error"] == "SERVICE_UNAVAILABLE"
        for other in ("/healthz", "/readyz", "/metrics", path):
            assert get(port, other) == 200
    while True:  # the places come back when the broker has noticed
        with open_request(port, path) as stream:
            if status_of(stream) == 200:
                break


@pytest.mark.slow
def test_a_head_of_a_stream_keeps_no_place(console: ConsoleClient) -> None:
    for _ in range(MAX_STREAMS_OF_ONE + 1):
        with open_request(console.port, "/api/v1/topics", method="HEAD") as client:
            assert status_of(client) == 200


@pytest.mark.slow
def test_so_many_exports_hold_memory_at_once(broker: Broker, console: ConsoleClient) -> None:
    broker.create_topic("large")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for _ in range(20):
        producer.produce("large", bytes(900_000))
    assert producer.flush(60) == 0
    path = "/api/v1/topics/large/messages/export"
    with ExitStack() as exports:
        for _ in range(MAX_EXPORTS):
            assert status_of(exports.enter_context(open_request(console.port, path))) == 200
        for other in (path, "/api/v1/topics/large/partitions/0/messages/0/value"):
            assert get(console.port, other) == 503
