"""The schema registry beside Karapace, which is a registry in Python, too.

Karapace takes part if ODRADEK_BENCH_KARAPACE has the command that starts it, such as
`/opt/karapace/bin/python -m karapace`. It gets a broker of its own, which is odradek, too.
The CPU time is that of the process that answers: of Karapace without its broker, of odradek with
all that it does.

Clients keep their connections, and send the next request when the last one is answered. What they
send is made before, and a round of one kind of request ends after so many of them, or seconds.
"""

import json
import os
import re
import select
import shlex
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from tests.bench.figures import ODRADEK, Figures, Results, compared
from tests.bench.swarm import now
from tests.support import process_tree
from tests.support.broker_process import BrokerProcess, free_ports
from tests.support.registry_client import RegistryClient

KARAPACE = "karapace"
COMMAND = "ODRADEK_BENCH_KARAPACE"
CLIENTS = (1, 8)
REQUESTS = 2000
SECONDS = 5.0
WARM_ROUNDS = 1
READY_SECONDS = 60.0
SUBJECT = "orders-value"  # with VERSIONS versions of one schema
VERSIONS = 20
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_SETTINGS = {
    "KARAPACE_HOST": "127.0.0.1",
    "KARAPACE_ADVERTISED_HOSTNAME": "127.0.0.1",
    "KARAPACE_KARAPACE_REGISTRY": "true",
    "KARAPACE_LOG_LEVEL": "WARNING",  # less work than with its default, DEBUG
    "KARAPACE_WAITING_TIME_BEFORE_ACTING_AS_MASTER_MS": "100",
}


class Server:
    """A registry that runs."""

    def __init__(self, port: int, pid: int) -> None:
        self.port = port
        self._pid = pid
        self._next_number = 0
        self.client = RegistryClient(f"http://127.0.0.1:{port}")

    def numbers(self) -> Iterator[int]:
        """Numbers that were not used before."""
        while True:
            self._next_number += 1
            yield self._next_number

    def cpu_seconds(self) -> float:
        return process_tree.cpu_seconds(self._pid)


def schema_registry(scratch: Path, rounds: int, share: int) -> Results:
    """Registrations, look-ups and schemas by id, by 1 and by 8 clients; Karapace beside it."""
    directory = scratch / f"registry-{time.time_ns()}"
    with ExitStack() as stack:
        servers = {ODRADEK: _odradek(stack, directory)}
        command = os.environ.get(COMMAND)
        if command:
            servers[KARAPACE] = _karapace(stack, directory, command)
        else:
            print(f"without Karapace, because {COMMAND} is not set")
        schema_ids = {name: _prepare(server) for name, server in servers.items()}
        found: dict[str, list[Figures]] = {name: [{} for _ in range(rounds)] for name in servers}
        for number in range(-WARM_ROUNDS, rounds):
            for clients in CLIENTS:
                for kind, requests_of in KINDS.items():
                    for name, server in servers.items():
                        requests = requests_of(server, schema_ids[name])
                        figures = _measured(server, clients, requests, REQUESTS // share)
                        if number >= 0:
                            ending = f"{kind}_{clients}"
                            found[name][number] |= {
                                f"{ending}_{figure}": value for figure, value in figures.items()
                            }
        return compared(found)


# -- the servers -----------------------------------------------------------------------------------


def _odradek(stack: ExitStack, directory: Path) -> Server:
    (port,) = free_ports(1)
    settings = {"odradek.registry.listener": f"127.0.0.1:{port}"}
    broker = BrokerProcess(directory / "odradek", settings)
    stack.callback(broker.stop)
    broker.start()
    return Server(port, broker.pid)


def _karapace(stack: ExitStack, directory: Path, command: str) -> Server:
    broker = BrokerProcess(directory / "of-karapace")
    stack.callback(broker.stop)
    broker.start()
    (port,) = free_ports(1)
    settings = {
        **_SETTINGS,
        "KARAPACE_BOOTSTRAP_URI": broker.bootstrap,
        "KARAPACE_PORT": str(port),
        "KARAPACE_ADVERTISED_PORT": str(port),
    }
    log = stack.enter_context((directory / "karapace.log").open("wb"))
    process = subprocess.Popen(
        shlex.split(command), env={**os.environ, **settings}, stdout=log, stderr=log
    )
    stack.callback(process.wait)
    stack.callback(process.kill)
    server = Server(port, process.pid)
    deadline = now() + READY_SECONDS
    while True:  # it answers before it is elected
        if process.poll() is not None or now() > deadline:
            raise RuntimeError((directory / "karapace.log").read_text()[-4000:])
        try:
            if server.client.ask("PUT", "/config", {"compatibility": "BACKWARD"}).status == 200:
                return server
        except OSError:
            pass
        time.sleep(0.2)


def _prepare(server: Server) -> int:
    """Register what is asked for; return an id."""
    for number in range(VERSIONS):
        schema_id = server.client.register(SUBJECT, _schema(-number))
    return schema_id


# -- the requests ----------------------------------------------------------------------------------


def _schema(number: int) -> str:
    """A record with ten fields and one more, named by the number. Any two are compatible."""
    fields = [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string", "doc": "who has ordered"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "SENT"]}},
        {"name": "total", "type": ["null", "double"], "default": None},
        {"name": "lines", "type": {"type": "array", "items": "string"}, "default": []},
        {"name": "notes", "type": {"type": "map", "values": "string"}, "default": {}},
        {"name": "paid", "type": "boolean", "default": False},
        {"name": "weight", "type": "float", "default": 0.0},
        {"name": "currency", "type": "string", "default": "EUR"},
        {"name": f"more_{number}".replace("-", "m"), "type": ["null", "string"], "default": None},
    ]
    return json.dumps(
        {"type": "record", "name": "Order", "namespace": "shop.orders", "fields": fields}
    )


def _post(path: str, schema: str) -> bytes:
    body = json.dumps({"schema": schema}).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n"
        "Content-Type: application/vnd.schemaregistry.v1+json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _new_subjects(server: Server, schema_id: int) -> Iterator[bytes]:
    for number in server.numbers():
        yield _post(f"/subjects/new-{number}-value/versions", _schema(number))


def _new_versions(server: Server, schema_id: int) -> Iterator[bytes]:
    subject = f"versions-{next(server.numbers())}"
    for number in server.numbers():
        yield _post(f"/subjects/{subject}/versions", _schema(number))


def _known(server: Server, schema_id: int) -> Iterator[bytes]:
    request = _post(f"/subjects/{SUBJECT}/versions", _schema(0))
    while True:
        yield request


def _look_ups(server: Server, schema_id: int) -> Iterator[bytes]:
    request = _post(f"/subjects/{SUBJECT}", _schema(0))
    while True:
        yield request


def _by_id(server: Server, schema_id: int) -> Iterator[bytes]:
    accepted = "application/vnd.schemaregistry.v1+json"
    head = f"GET /schemas/ids/{schema_id} HTTP/1.1\r\nHost: localhost\r\nAccept: {accepted}\r\n\r\n"
    while True:
        yield head.encode()


KINDS: Mapping[str, Callable[[Server, int], Iterator[bytes]]] = {
    "new_subjects": _new_subjects,
    "new_versions": _new_versions,
    "known": _known,
    "look_up": _look_ups,
    "by_id": _by_id,
}


# -- the clients -----------------------------------------------------------------------------------


def _measured(server: Server, clients: int, requests: Iterator[bytes], count: int) -> Figures:
    ready = [next(requests) for _ in range(count)]
    sockets = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(clients)]
    try:
        cpu_s, began = server.cpu_seconds(), now()
        answered = _ask_all(sockets, ready, began + SECONDS)
        seconds, cpu_s = now() - began, server.cpu_seconds() - cpu_s
    finally:
        for each in sockets:
            each.close()
    return {"per_s": answered / seconds, "cpu_us_each": cpu_s / answered * 1e6}


def _ask_all(sockets: list[socket.socket], requests: list[bytes], deadline: float) -> int:
    """Send the requests, and return how many were answered until the last one or the deadline."""
    waiting = iter(requests)
    received = {each.fileno(): b"" for each in sockets}
    by_number = {each.fileno(): each for each in sockets}
    answered = 0
    with select.epoll() as poll:
        for each, request in zip(sockets, waiting, strict=False):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            poll.register(each.fileno(), select.EPOLLIN)
            each.sendall(request)
        while by_number:
            for number, _ in poll.poll():
                data = received[number] + by_number[number].recv(1 << 16)
                if not _is_whole(data):
                    received[number] = data
                    continue
                received[number] = b""
                answered += 1
                following = None if now() > deadline else next(waiting, None)
                if following is None:
                    poll.unregister(number)
                    del by_number[number]
                else:
                    by_number[number].sendall(following)
    return answered


def _is_whole(data: bytes) -> bool:
    """Whether this is a whole response. Raises RuntimeError if it is an error."""
    head, end, body = data.partition(b"\r\n\r\n")
    if not end:
        if not data:
            raise ConnectionError("the server has closed a connection")
        return False
    length = _LENGTH.search(head)
    if not head.startswith(b"HTTP/1.1 200") or length is None:
        raise RuntimeError(data[:2000].decode(errors="replace"))
    return len(body) >= int(length[1])


WORKLOADS: dict[str, Callable[[Path, int, int], Results]] = {"schema_registry": schema_registry}
